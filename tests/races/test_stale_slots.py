"""A slot over its maximum runtime that ends just then is given up or succeeds, never both (B11)."""

from datetime import UTC, datetime, timedelta

import pytest

from schedules import job_runs
from schedules.models import JobRun
from tests.factories import W2, JobRunFactory, age, claim_of, told
from tests.races.invariants import assert_all_hold

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("writer")]


@pytest.fixture
def stale():
    """A slot that has been running for three hours, with a worker that is alive."""
    return age(JobRunFactory(job_name="ingest", scheduled_for=NOON), 3 * 3600)


def give_up():
    return job_runs.skip_stale("ingest", HOUR, actor=W2)


def test_an_end_that_comes_first_stays(threads, stale):
    claim = claim_of(stale)

    end = threads.hold(lambda: job_runs.succeed(claim, 7))
    given_up = threads.start(give_up)
    assert given_up.waits()

    assert end.commit()
    assert given_up.answer() == 0
    assert JobRun.objects.get().status == "success"
    assert told(stale) == ["SLOT_CLAIMED", "SLOT_SUCCEEDED"]
    assert_all_hold(quiet=True)


def test_an_end_that_comes_second_is_refused(threads, stale):
    claim = claim_of(stale)

    given_up = threads.hold(give_up)
    end = threads.start(lambda: job_runs.succeed(claim, 7))
    assert end.waits()

    assert given_up.commit() == 1
    assert end.answer() is False
    assert JobRun.objects.get().status == "skipped_timeout"
    assert told(stale) == ["SLOT_CLAIMED", "SLOT_ABANDONED", "LATE_WRITE_REFUSED"]
    assert_all_hold(quiet=True)


def test_an_end_that_is_not_committed_leaves_it_to_who_gives_it_up(threads, stale):
    claim = claim_of(stale)

    end = threads.hold(lambda: job_runs.succeed(claim, 7))
    given_up = threads.start(give_up)
    end.roll_back()

    assert given_up.answer() == 1
    assert told(stale) == ["SLOT_CLAIMED", "SLOT_ABANDONED"]


def test_of_many_who_give_it_up_and_end_it_one_is_right(threads, stale):
    claim = claim_of(stale)

    answers = threads.together([give_up, lambda: job_runs.succeed(claim, 7), give_up])

    assert sorted(map(int, answers)) == [0, 0, 1]
    ends = [kind for kind in told(stale) if kind in ("SLOT_SUCCEEDED", "SLOT_ABANDONED")]
    assert len(ends) == 1
    assert_all_hold(quiet=True)


def test_the_next_slot_of_the_job_goes_on_when_one_is_given_up(threads, stale):
    given_up = threads.hold(give_up)
    following = threads.start(lambda: job_runs.claim_slot("ingest", NOON + HOUR, W2))
    assert following.waits()

    given_up.commit()

    assert following.answer().holder.owner == W2
    assert_all_hold()
