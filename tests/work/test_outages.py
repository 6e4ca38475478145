"""What a worker logs when the database is away."""

import pytest
from django.db import OperationalError, connection
from structlog.testing import capture_logs

from work import outages

pytestmark = [pytest.mark.once, pytest.mark.django_db]

GONE = OperationalError("connection refused")


@pytest.fixture
def away(monkeypatch):
    monkeypatch.setattr(outages, "_answers", lambda: False)
    monkeypatch.setattr(outages, "_away_since", None)


def events(logs):
    return [(each["event"], each["log_level"]) for each in logs]


def test_it_is_told_once_when_it_goes_and_once_when_it_is_back(away):
    with capture_logs() as logs:
        assert all(outages.is_outage(GONE) for _ in range(100))
        outages.record_answer()
        outages.record_answer()

    assert events(logs) == [("worker.database_away", "warning"), ("worker.database_back", "warning")]


def test_it_is_told_again_after_a_minute(away, monkeypatch):
    with capture_logs() as logs:
        outages.is_outage(GONE)
        monkeypatch.setattr(outages, "_logged_at", outages._logged_at - outages.REMIND_SECONDS)
        assert all(outages.is_outage(GONE) for _ in range(100))

    assert events(logs) == [("worker.database_away", "warning"), ("worker.database_still_away", "warning")]


def test_an_error_of_a_database_that_is_there_is_another_matter(db):
    connection.ensure_connection()
    with capture_logs() as logs:
        assert not outages.is_outage(OperationalError("no such table"))

    assert logs == []
