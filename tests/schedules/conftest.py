import pytest

from schedules import scheduler
from tests.factories import W1
from tests.schedules import declared
from work import clock


@pytest.fixture(autouse=True)
def schedules_are_on(settings):
    settings.ADE_SCHEDULES = True
    declared.DONE.clear()


@pytest.fixture
def at(monkeypatch):
    """Return a function that sets the clock of ADE and the clock of this host."""

    def at(moment):
        monkeypatch.setattr(clock, "now", lambda: moment)
        monkeypatch.setattr("django.utils.timezone.now", lambda: moment)

    return at


@pytest.fixture
def jobs(settings, db):
    """Return a function that declares exactly these jobs."""

    def jobs(*paths):
        settings.JOBS = list(paths)
        scheduler.sync(actor=W1)

    return jobs
