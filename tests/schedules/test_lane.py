from datetime import UTC, datetime, timedelta

import pytest
import structlog

from schedules import handler, history, job_runs
from schedules.jobs import JobContext, JobFailed, job_named
from schedules.models import DueSlot, JobRun, ScheduledJob
from tests.factories import W1, W2, DueSlotFactory, JobRunFactory, events_of
from tests.schedules import declared
from tests.schedules.declared import BROKEN, EACH, FAILING, FREQUENT, PATIENT
from work import clock
from work.claims import Interrupted

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
QUARTER = timedelta(minutes=15)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def all_of_them(jobs):
    jobs(FREQUENT, PATIENT, EACH, FAILING, BROKEN)


def due(name="frequent", slot=NOON, **columns):
    return DueSlotFactory(job_name=name, scheduled_for=slot, **columns)


def decisions(name="frequent"):
    row = ScheduledJob.objects.get(name=name)
    return list(events_of(row).filter(kind__in=history.DECISIONS).values_list("kind", "message"))


def test_without_a_due_slot_there_is_nothing_to_claim():
    assert handler.claim(W1) is None


def test_a_due_slot_becomes_a_run_of_its_job():
    due()

    claim = handler.claim(W1)

    row = JobRun.objects.get()
    assert (row.pk, row.job_name, row.scheduled_for, row.status) == (claim.id, "frequent", NOON, "running")
    assert (row.lease_owner, row.claim_token) == (W1, 1)
    assert not DueSlot.objects.exists()


def test_the_longest_due_is_the_first():
    now = clock.now()
    for minutes, name in ((1, "frequent"), (3, "patient"), (2, "each")):
        due(name, due_at=now - timedelta(minutes=minutes))

    claimed = [handler.claim(W1).values["job_name"] for _ in range(3)]

    assert claimed == ["patient", "each", "frequent"]


def test_of_equal_moments_the_first_that_came_is_the_first():
    """E10: the order is stable."""
    now = clock.now()
    for name in ("patient", "each", "frequent"):
        due(name, due_at=now)

    assert [handler.claim(W1).values["job_name"] for _ in range(3)] == ["patient", "each", "frequent"]


def test_a_job_that_runs_has_its_next_slot_wait_and_does_not_hold_up_others():
    running = JobRunFactory(job_name="each", scheduled_for=NOON - QUARTER)
    due("each", due_at=clock.now() - QUARTER)
    due("frequent")

    assert handler.claim(W1).values["job_name"] == "frequent"
    assert handler.claim(W1) is None

    job_runs.succeed(handler.Claim(job_runs.JOB_RUN_STATES, running.pk, lane_holder(running), 0.0), 1)
    assert handler.claim(W1).values["job_name"] == "each"


def lane_holder(row):
    return job_runs.LeaseHolder(row.lease_owner, row.claim_token)


def test_a_job_that_begins_to_run_meanwhile_leaves_its_slot_waiting(monkeypatch):
    slot = due("each")
    found = list(DueSlot.objects.all())
    JobRunFactory(job_name="each", scheduled_for=NOON - QUARTER)
    monkeypatch.setattr(handler, "_candidates", lambda: found)

    assert handler.claim(W1) is None

    assert DueSlot.objects.get() == slot
    assert decisions("each") == []


@pytest.mark.parametrize("status", ["success", "failed", "skipped_timeout"])
def test_a_slot_that_somebody_else_has_claimed_is_not_run_again(status):
    JobRunFactory(job_name="frequent", scheduled_for=NOON, status=status)
    due()

    assert handler.claim(W1) is None

    assert not DueSlot.objects.exists()
    assert JobRun.objects.count() == 1
    assert [kind for kind, _ in decisions()] == ["SLOTS_TAKEN"]


def test_a_slot_whose_grace_is_over_is_dropped_with_a_word():
    due(expires_at=clock.now() - timedelta(seconds=1))

    assert handler.claim(W1) is None

    assert not DueSlot.objects.exists()
    assert not JobRun.objects.exists()
    assert decisions() == [("SLOTS_MISFIRED", "no worker had a free thread for it in time")]


def test_what_a_person_has_asked_for_is_never_too_late():
    due(asked_by="olga", due_at=clock.now() - timedelta(days=9), expires_at=None)

    assert handler.claim(W1) is not None


def test_a_claim_says_who_has_asked_for_it_and_in_whose_stead():
    due(asked_by="olga", covers=NOON - QUARTER)

    claim = handler.claim(W1)

    event = events_of(JobRun.objects.get(pk=claim.id)).first()
    assert event.data == {"asked_by": "olga", "covers": (NOON - QUARTER).isoformat()}
    assert "olga" in event.message


def test_a_job_of_another_version_of_the_code_is_left_to_it():
    due("of_tomorrow")

    assert handler.claim(W1) is None

    assert DueSlot.objects.count() == 1


def test_a_job_is_done_and_its_rows_are_counted():
    due()
    claim = handler.claim(W1)

    assert handler.succeed(claim, handler.do(claim))

    row = JobRun.objects.get()
    assert (row.status, row.rows_processed) == ("success", 7)
    assert declared.DONE == [("frequent", NOON)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("failing", "expected a feed to answer, found none that did"),
        ("broken", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_job_that_fails_says_why(name, message):
    due(name)
    claim = handler.claim(W1)
    with pytest.raises((JobFailed, ZeroDivisionError)) as failed:
        handler.do(claim)

    assert handler.fail(claim, failed.value)

    row = JobRun.objects.get()
    assert (row.status, row.error_message) == ("failed", message)


def test_start_end_duration_rows_and_errors_are_logged():
    """Seed 001, 11: the log contains all of them."""
    due()
    due("failing", NOON + QUARTER)
    with structlog.testing.capture_logs() as lines:
        handler.do(handler.claim(W1))
        with pytest.raises(JobFailed):
            handler.do(handler.claim(W1))

    said = [(line["event"], line["job"], line.get("rows"), line.get("error")) for line in lines if "job" in line]
    assert said == [
        ("job.started", "frequent", None, None),
        ("job.ended", "frequent", 7, None),
        ("job.started", "failing", None, None),
        ("job.ended", "failing", None, "expected a feed to answer, found none that did"),
    ]
    assert all(line["seconds"] >= 0 for line in lines if line["event"] == "job.ended")


def test_a_job_that_has_had_its_time_is_told_so():
    due()
    turn = JobContext(job_named("frequent"), NOON, handler.claim(W1))
    turn.until = 0.0

    with pytest.raises(JobFailed, match="frequent did not finish within 300 s"):
        turn.go_on()


def test_a_job_whose_claim_is_lost_is_told_so():
    due()
    claim = handler.claim(W1)
    claim.lost.set()

    with pytest.raises(Interrupted):
        handler.do(claim)

    assert declared.DONE == []


@pytest.mark.django_db(transaction=True)
def test_of_two_workers_one_gets_the_slot(threads):
    """B10: only one worker claims the slot."""
    due()

    first = threads.hold(lambda: handler.claim(W1))
    second = threads.start(lambda: handler.claim(W2))
    second.waits()
    first.commit()

    assert first.answer() is not None
    assert second.answer() is None
    assert JobRun.objects.get().lease_owner == W1
    assert not DueSlot.objects.exists()
    assert decisions() == []


def test_a_backfill_stands_behind_what_is_due_by_the_schedule():
    for n in range(3):
        due("each", NOON - n * QUARTER, asked_by="olga", due_at=clock.now() - QUARTER)
    due("each", NOON + QUARTER)
    due("frequent", NOON + QUARTER)

    claimed = [handler.claim(W1).values for _ in range(2)]

    assert [(values["job_name"], values["scheduled_for"]) for values in claimed] == [
        ("each", NOON + QUARTER),
        ("frequent", NOON + QUARTER),
    ]
