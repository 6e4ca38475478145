from datetime import UTC, datetime, timedelta

import pytest

from schedules import firing, handler, requests
from schedules.models import DueSlot, JobRun, ScheduledJob
from schedules.requests import NotASlot, SlotTaken
from tests.factories import W1, DueSlotFactory, JobRunFactory, told
from tests.schedules.declared import EACH, MORNING, each, morning

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
QUARTER = timedelta(minutes=15)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def noon(jobs, at):
    at(NOON)
    jobs(EACH, MORNING)


def history_of(name="each"):
    return told(ScheduledJob.objects.get(name=name))


def test_now_is_no_slot_of_the_schedule():
    due = requests.run_now(each, actor="olga")

    assert (due.job_name, due.asked_by, due.expires_at) == ("each", "olga", None)
    assert due.scheduled_for - NOON == timedelta(microseconds=1)
    assert handler.claim(W1).values["scheduled_for"] == due.scheduled_for
    assert history_of()[-1] == "SLOTS_ASKED_FOR"


def test_what_runs_now_leaves_the_slot_of_this_very_moment_to_the_schedule(at):
    at(NOON + QUARTER)
    requests.run_now(each, actor="olga")

    assert firing.fire(each, actor=W1) == 1

    assert NOON + QUARTER in DueSlot.objects.values_list("scheduled_for", flat=True)


def test_now_can_be_in_the_stead_of_a_slot_whose_row_stays():
    failed = JobRunFactory(job_name="each", scheduled_for=NOON - QUARTER, status="failed")

    due = requests.run_now(each, actor="olga", covers=NOON - QUARTER)

    assert due.covers == NOON - QUARTER
    handler.claim(W1)
    assert JobRun.objects.get(pk=failed.pk).status == "failed"
    assert JobRun.objects.count() == 2


def test_now_can_be_in_the_stead_of_what_was_run_by_hand(at):
    by_hand = requests.run_now(each, actor="olga").scheduled_for
    JobRunFactory(job_name="each", scheduled_for=by_hand, status="failed")
    at(NOON + SECOND)

    assert requests.run_now(each, actor="olga", covers=by_hand).covers == by_hand


def test_now_can_be_in_the_stead_of_nothing_that_never_was():
    JobRunFactory(job_name="morning", scheduled_for=NOON - SECOND, status="failed")

    with pytest.raises(NotASlot):
        requests.run_now(each, actor="olga", covers=NOON - SECOND)


def test_a_slot_is_run_by_its_moment():
    due = requests.run_slot(each, NOON - QUARTER, actor="olga")

    assert (due.scheduled_for, due.asked_by) == (NOON - QUARTER, "olga")


@pytest.mark.parametrize("status", ["running", "success", "failed", "skipped_timeout"])
def test_a_slot_that_has_a_row_is_taken(status):
    taken = JobRunFactory(job_name="each", scheduled_for=NOON - QUARTER, status=status)

    with pytest.raises(SlotTaken, match=f"job run {taken.pk}") as refused:
        requests.run_slot(each, NOON - QUARTER, actor="olga")

    assert (refused.value.code, refused.value.job_run) == ("slot_already_claimed", taken)
    assert not DueSlot.objects.exists()
    assert "SLOTS_ASKED_FOR" not in history_of()


def test_a_slot_that_waits_for_its_turn_is_taken():
    DueSlotFactory(job_name="each", scheduled_for=NOON - QUARTER)

    with pytest.raises(SlotTaken, match="is already waiting for a worker") as refused:
        requests.run_slot(each, NOON - QUARTER, actor="olga")

    assert refused.value.job_run is None


@pytest.mark.parametrize("slot", [NOON - SECOND, NOON - timedelta(minutes=7), NOON + timedelta(microseconds=1)])
def test_a_moment_between_slots_is_refused_with_the_next_one(slot):
    with pytest.raises(NotASlot, match="The next slot after it is 2026-03-01T12:"):
        requests.run_slot(each, slot, actor="olga")


def test_a_slot_to_come_is_left_to_the_schedule():
    with pytest.raises(NotASlot, match="is not due yet"):
        requests.run_slot(each, NOON + QUARTER, actor="olga")


def test_a_rehearsal_tells_what_is_free_and_what_is_taken_and_does_nothing():
    JobRunFactory(job_name="each", scheduled_for=NOON - QUARTER, status="failed")
    DueSlotFactory(job_name="each", scheduled_for=NOON - 2 * QUARTER)

    found = requests.preview_backfill(each, NOON - 4 * QUARTER, NOON)

    assert found.free == [NOON - 4 * QUARTER, NOON - 3 * QUARTER, NOON]
    assert found.taken == [NOON - 2 * QUARTER, NOON - QUARTER]
    assert DueSlot.objects.count() == 1


def test_a_backfill_has_every_free_slot_run_one_after_the_other():
    JobRunFactory(job_name="each", scheduled_for=NOON - QUARTER, status="success")

    requests.backfill(each, NOON - 3 * QUARTER, NOON - QUARTER, actor="olga")

    claim = handler.claim(W1)
    assert claim.values["scheduled_for"] == NOON - 3 * QUARTER
    assert handler.claim(W1) is None
    handler.succeed(claim, 1)
    assert handler.claim(W1).values["scheduled_for"] == NOON - 2 * QUARTER


def test_a_backfill_is_not_merged_even_where_the_job_coalesces(at, jobs):
    requests.backfill(morning, NOON - timedelta(days=3), NOON, actor="olga")
    at(NOON + timedelta(days=1))
    firing.fire(morning, actor=W1)

    assert DueSlot.objects.filter(job_name="morning", asked_by="olga").count() == 3


def test_a_backfill_again_finds_nothing_left_to_do():
    requests.backfill(each, NOON - 3 * QUARTER, NOON, actor="olga")

    assert requests.backfill(each, NOON - 3 * QUARTER, NOON, actor="olga").free == []

    assert DueSlot.objects.count() == 4


@pytest.mark.parametrize(
    ("first", "last", "why"),
    [
        (NOON - QUARTER, NOON + QUARTER, "The range must lie in the past, not "),
        (NOON, NOON - QUARTER, "The range must lie in the past, not "),
        (NOON - timedelta(days=30), NOON, "The range has more than 1000 slots"),
    ],
)
def test_a_range_that_cannot_be_is_refused(first, last, why):
    with pytest.raises(NotASlot, match=why):
        requests.backfill(each, first, last, actor="olga")

    assert not DueSlot.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_who_ask_for_a_slot_one_gets_it(threads):
    asked = threads.together([lambda: got(requests.run_slot, each, NOON, actor="olga") for _ in range(2)])

    assert sorted(asked) == ["DueSlot", "SlotTaken"]
    assert DueSlot.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_whoever_asks_while_the_slot_is_being_claimed_is_told_of_its_run(threads):
    DueSlotFactory(job_name="each", scheduled_for=NOON)

    claiming = threads.hold(lambda: handler.claim(W1))
    asking_for_it = threads.start(lambda: got(requests.run_slot, each, NOON, actor="olga"))
    asking_for_it.waits()
    claiming.commit()
    claiming.answer()

    assert asking_for_it.answer() == "SlotTaken"
    assert not DueSlot.objects.exists()


def got(ask, *args, **options):
    try:
        return type(ask(*args, **options)).__name__
    except SlotTaken as taken:
        return type(taken).__name__
