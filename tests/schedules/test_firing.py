from datetime import UTC, datetime, timedelta

import pytest

from schedules import firing, history
from schedules.models import DueSlot, JobRun, ScheduledJob
from tests.factories import W1, DueSlotFactory, JobRunFactory, events_of
from tests.schedules.declared import EACH, FREQUENT, MORNING, PATIENT, YEARLY, each, frequent, morning, patient, yearly

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
QUARTER = 15 * MINUTE

pytestmark = pytest.mark.django_db


def due():
    return list(DueSlot.objects.order_by("scheduled_for").values_list("scheduled_for", flat=True))


def decisions(job):
    found = events_of(ScheduledJob.objects.get(name=job.name)).filter(kind__in=history.DECISIONS)
    return [(e.kind, e.data["first"], e.data["last"], e.data["count"]) for e in found]


def iso(*moments):
    return [moment.isoformat() for moment in moments]


def test_nothing_is_due_before_its_time(jobs, at):
    at(NOON)
    jobs(FREQUENT)
    at(NOON + QUARTER - MINUTE)

    assert firing.fire(frequent, actor=W1) == 0

    assert due() == []


def test_a_slot_is_handed_to_the_workers_when_it_is_due(jobs, at):
    at(NOON)
    jobs(FREQUENT)
    at(NOON + QUARTER + timedelta(seconds=1))

    assert firing.fire(frequent, actor=W1) == 1

    slot = DueSlot.objects.get()
    assert (slot.job_name, slot.scheduled_for, slot.asked_by) == ("frequent", NOON + QUARTER, "")
    assert slot.expires_at == NOON + QUARTER + frequent.misfire_grace
    assert decisions(frequent) == []


def test_a_slot_is_decided_once(jobs, at):
    at(NOON)
    jobs(FREQUENT)
    at(NOON + QUARTER)
    firing.fire(frequent, actor=W1)
    DueSlot.objects.all().delete()

    assert firing.fire(frequent, actor=W1) == 0

    assert due() == []


def test_a_job_that_is_new_has_no_slots_before_it(jobs, at):
    at(NOON + MINUTE)
    jobs(EACH)

    assert firing.fire(each, actor=W1) == 0


def test_of_slots_that_were_missed_the_latest_is_kept_and_tells_of_the_others(jobs, at):
    """Five slots were missed while asleep; the library would keep the oldest."""
    at(NOON)
    jobs(PATIENT)
    at(NOON + 5 * QUARTER + MINUTE)

    assert firing.fire(patient, actor=W1) == 1

    assert due() == [NOON + 5 * QUARTER]
    assert decisions(patient) == [("SLOTS_COALESCED", *iso(NOON + QUARTER, NOON + 4 * QUARTER), 4)]


def test_a_job_that_does_not_coalesce_runs_each(jobs, at):
    at(NOON)
    jobs(EACH)
    at(NOON + 5 * QUARTER + MINUTE)

    assert firing.fire(each, actor=W1) == 5

    assert due() == [NOON + n * QUARTER for n in range(1, 6)]
    assert decisions(each) == []


def test_slots_beyond_the_grace_are_dropped_with_a_word(jobs, at):
    at(NOON)
    jobs(FREQUENT)
    at(NOON + 5 * QUARTER + 6 * MINUTE)

    assert firing.fire(frequent, actor=W1) == 0

    assert due() == []
    assert decisions(frequent) == [("SLOTS_MISFIRED", *iso(NOON + QUARTER, NOON + 5 * QUARTER), 5)]


def test_slots_within_the_grace_are_kept_of_those_that_were_missed(jobs, at):
    at(NOON)
    jobs(EACH)
    at(NOON + timedelta(hours=4, minutes=1))

    assert firing.fire(each, actor=W1) == 8

    assert due()[0] == NOON + timedelta(hours=2, minutes=15)
    assert decisions(each) == [("SLOTS_MISFIRED", *iso(NOON + QUARTER, NOON + timedelta(hours=2)), 8)]


def test_the_grace_is_what_the_job_declares_to_the_second(jobs, at):
    at(NOON)
    jobs(FREQUENT)
    at(NOON + QUARTER + frequent.misfire_grace)

    assert firing.fire(frequent, actor=W1) == 1


def test_a_slot_that_still_waits_goes_into_the_next_one(jobs, at):
    at(NOON)
    jobs(PATIENT)
    JobRunFactory(job_name="patient", scheduled_for=NOON)
    for n in (1, 2, 3):
        at(NOON + n * QUARTER)
        firing.fire(patient, actor=W1)

    assert due() == [NOON + 3 * QUARTER]
    assert [kind for kind, *_ in decisions(patient)] == ["SLOTS_COALESCED"] * 2


def test_what_is_merged_is_told_without_what_lies_between(jobs, at):
    at(NOON)
    jobs(PATIENT)
    row = ScheduledJob.objects.get()
    at(NOON + QUARTER)
    firing.fire(patient, actor=W1)
    history.pause(row, actor="olga")
    at(NOON + 2 * QUARTER)
    firing.fire(patient, actor=W1)
    history.resume(row, actor="olga")
    at(NOON + 4 * QUARTER)

    firing.fire(patient, actor=W1)

    assert due() == [NOON + 4 * QUARTER]
    one, two, three = iso(NOON + QUARTER, NOON + 2 * QUARTER, NOON + 3 * QUARTER)
    assert decisions(patient) == [
        ("SLOTS_PASSED_OVER", two, two, 1),
        ("SLOTS_COALESCED", one, one, 1),
        ("SLOTS_COALESCED", three, three, 1),
    ]
    merged = events_of(row).filter(kind=history.COALESCED)
    assert {event.data["into"] for event in merged} == set(iso(NOON + 4 * QUARTER))


def test_what_a_person_has_asked_for_is_not_merged(jobs, at):
    at(NOON)
    jobs(PATIENT)
    DueSlotFactory(job_name="patient", scheduled_for=NOON, asked_by="olga")
    at(NOON + QUARTER)

    firing.fire(patient, actor=W1)

    assert due() == [NOON, NOON + QUARTER]


def test_slots_of_a_pause_are_passed_over(jobs, at):
    at(NOON)
    jobs(EACH)
    history.pause(ScheduledJob.objects.get(), actor="olga")
    at(NOON + 2 * QUARTER)

    assert firing.fire(each, actor=W1) == 0

    assert decisions(each) == [("SLOTS_PASSED_OVER", *iso(NOON + QUARTER, NOON + 2 * QUARTER), 2)]


def test_a_pause_that_comes_meanwhile_wins(jobs, at, monkeypatch):
    at(NOON)
    jobs(FREQUENT)
    at(NOON + QUARTER)
    seen = firing.history.decide

    def paused_just_before(row, until):
        history.pause(ScheduledJob.objects.get(), actor="olga")
        return seen(row, until)

    monkeypatch.setattr(firing.history, "decide", paused_just_before)

    assert firing.fire(frequent, actor=W1) == 0

    assert due() == []


def test_years_without_a_worker_are_decided_in_one_look(jobs, at):
    at(NOON)
    jobs(PATIENT)
    later = NOON + timedelta(days=3 * 365)
    at(later)

    assert firing.fire(patient, actor=W1) == 1

    assert due() == [later]
    (dropped, merged) = decisions(patient)
    assert (dropped[0], dropped[1]) == ("SLOTS_MISFIRED", (NOON + QUARTER).isoformat())
    assert merged[0] == "SLOTS_COALESCED"


def test_a_slot_long_past_is_dropped_also_if_there_was_none_since(jobs, at):
    at(datetime(2025, 12, 20, tzinfo=UTC))
    jobs(YEARLY)
    at(datetime(2026, 3, 1, tzinfo=UTC))

    assert firing.fire(yearly, actor=W1) == 0

    new_year = datetime(2026, 1, 1, tzinfo=UTC)
    assert decisions(yearly) == [("SLOTS_MISFIRED", *iso(new_year, new_year), 1)]


def test_a_long_pause_is_told_from_its_first_slot(jobs, at):
    at(NOON)
    jobs(EACH)
    history.pause(ScheduledJob.objects.get(), actor="olga")
    at(NOON + timedelta(days=60))

    firing.fire(each, actor=W1)

    (told,) = decisions(each)
    assert told[:3] == ("SLOTS_PASSED_OVER", *iso(NOON + QUARTER, NOON + timedelta(days=60)))


def test_a_slot_that_runs_for_too_long_is_given_up_before_the_next_one(jobs, at):
    at(NOON)
    jobs(FREQUENT)
    stale = JobRunFactory(job_name="frequent", scheduled_for=NOON)
    at(NOON + QUARTER)

    firing.fire(frequent, actor=W1)

    assert JobRun.objects.get(pk=stale.pk).status == "skipped_timeout"


@pytest.mark.parametrize(
    ("day", "slot"),
    [
        (datetime(2025, 3, 29, 12, tzinfo=UTC), datetime(2025, 3, 30, 1, 0, tzinfo=UTC)),
        (datetime(2025, 10, 25, 12, tzinfo=UTC), datetime(2025, 10, 26, 0, 30, tzinfo=UTC)),
    ],
    ids=["the hour that is not there", "the hour that comes twice"],
)
def test_a_slot_by_local_time_runs_once_when_the_clocks_change(jobs, at, day, slot):
    """E5, through the worker's own ticks during the night."""
    at(day)
    jobs(MORNING)

    for minute in range(0, 20 * 60, 10):
        at(day + minute * MINUTE)
        firing.fire(morning, actor=W1)

    assert due() == [slot]
    assert decisions(morning) == []


def test_slots_of_a_pause_are_passed_over_also_when_nobody_looked_before_it_ended(jobs, at):
    at(NOON)
    jobs(EACH)
    at(NOON + MINUTE)
    history.pause(ScheduledJob.objects.get(), actor="olga")
    at(NOON + 3 * QUARTER + MINUTE)
    history.resume(ScheduledJob.objects.get(), actor="olga")

    assert firing.fire(each, actor=W1) == 0

    assert decisions(each) == [("SLOTS_PASSED_OVER", *iso(NOON + QUARTER, NOON + 3 * QUARTER), 3)]
    at(NOON + 4 * QUARTER)
    firing.fire(each, actor=W1)
    assert due() == [NOON + 4 * QUARTER]
