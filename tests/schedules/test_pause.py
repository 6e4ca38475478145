from datetime import UTC, datetime, timedelta

import pytest

from schedules import firing, handler, history
from schedules.models import DueSlot, JobRun, ScheduledJob
from tests.factories import W1, DueSlotFactory, events_of
from tests.schedules.declared import FREQUENT, frequent

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
QUARTER = timedelta(minutes=15)

pytestmark = pytest.mark.django_db


@pytest.fixture
def paused(jobs, at):
    """A job that was paused while one of its slots was waiting."""
    at(NOON)
    jobs(FREQUENT)
    at(NOON + QUARTER)
    firing.fire(frequent, actor=W1)
    row = ScheduledJob.objects.get()
    history.pause(row, actor="olga", reason="a feed is broken")
    row.refresh_from_db()
    return row


def test_a_pause_is_in_the_history_with_who_made_it_and_why(paused):
    assert (paused.paused_by, paused.paused_at) == ("olga", NOON + QUARTER)
    event = events_of(paused).get(kind="JOB_PAUSED")
    assert (event.actor, event.message) == ("olga", "a feed is broken")


def test_what_is_paused_is_not_paused_again(paused):
    assert not history.pause(paused, actor="ravi")

    paused.refresh_from_db()
    assert paused.paused_by == "olga"


def test_what_goes_on_is_not_resumed(paused):
    assert history.resume(paused, actor="ravi")
    assert not history.resume(paused, actor="ravi")

    paused.refresh_from_db()
    assert (paused.paused_at, paused.paused_by) == (None, "")


def test_a_slot_that_waits_when_its_job_is_paused_is_passed_over(paused):
    assert handler.claim(W1) is None

    assert (DueSlot.objects.count(), JobRun.objects.count()) == (0, 0)
    event = events_of(paused).get(kind="SLOTS_PASSED_OVER")
    assert (event.data["first"], event.message) == ((NOON + QUARTER).isoformat(), "the job is paused by olga")


def test_a_slot_that_a_person_asks_for_runs_in_a_pause(paused):
    DueSlot.objects.all().delete()
    DueSlotFactory(job_name="frequent", scheduled_for=NOON, asked_by="olga")

    assert handler.claim(W1).values["scheduled_for"] == NOON


def test_a_slot_that_is_claimed_after_the_pause_runs(paused):
    history.resume(paused, actor="olga")

    assert handler.claim(W1).values["scheduled_for"] == NOON + QUARTER
