"""With ADE_PORTABLE_SQL the kernel writes with the ORM only, and notifies workers all the same."""

import pytest
from django.db import connections

from runs import lifecycle as runs
from runs.models import Run
from tests.factories import W1, RunFactory, claim_of, told
from tests.testwork import lifecycle as errands
from work import clock, lifecycle
from work.changes import EventDraft
from work.sql import returning
from work.sql.bell import CHANNEL

WRITER = ("change_one", "append_events", "set_column", "claim_first", "create")


@pytest.fixture
def without_own_sql(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("the kernel's own SQL was used")

    for name in WRITER:
        monkeypatch.setattr(returning, name, refuse)


@pytest.fixture
def earlier(db):
    """Return a run whose build is ready, for further runs of its document and configuration."""
    return RunFactory(status="succeeded")


def test_a_run_goes_its_way_without_the_kernels_own_sql(earlier, settings, without_own_sql):
    settings.ADE_PORTABLE_SQL = True

    run = runs.submit(earlier.configuration, earlier.input_document, actor="olga")
    claim = runs.claim_next_run(W1)
    lifecycle.record_process(claim, {"pid": 7})
    lifecycle.record_many(claim, [EventDraft("LOG", clock.now(), W1, "a line")])

    assert (claim.id, Run.objects.get(pk=run.pk).process) == (run.pk, {"pid": 7})
    assert runs.succeed(claim_of(Run.objects.get(pk=run.pk)))
    assert told(run) == ["RUN_QUEUED", "RUN_STARTED", "LOG", "RUN_SUCCEEDED"]


@pytest.mark.only_on(*returning.FAST_VENDORS)
def test_without_the_setting_the_kernels_own_sql_is_used(earlier, without_own_sql):
    with pytest.raises(AssertionError, match="own SQL was used"):
        runs.submit(earlier.configuration, earlier.input_document, actor="olga")


@pytest.mark.only_on("postgresql")
@pytest.mark.parametrize("is_portable", [False, True], ids=["own SQL", "portable"])
@pytest.mark.django_db(transaction=True)
def test_workers_are_notified_of_new_work_either_way(is_portable, settings):
    settings.ADE_PORTABLE_SQL = is_portable
    listening = connections.create_connection("default")
    try:
        with listening.cursor() as cursor:
            cursor.execute(f"LISTEN {CHANNEL}")

        errands.add()

        [heard] = listening.connection.notifies(timeout=60, stop_after=1)
        assert heard.payload == "errand"
    finally:
        listening.close()
