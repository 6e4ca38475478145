import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import Q

from schedules import cron, firing, handler, history, job_runs, ledger, requests, scheduler
from schedules.ledger import State
from schedules.models import DueSlot, JobRun, ScheduledJob
from tests.factories import W1, W2, DueSlotFactory, JobRunFactory, ScheduledJobFactory, expire_lease
from tests.schedules import declared
from tests.schedules.declared import EACH, FREQUENT, MORNING, PATIENT, each, frequent, patient
from tests.seeds import many_seeds
from work import recovery
from work.work_types import work_type_named

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
QUARTER = 15 * MINUTE
# The possible later states of a slot in each state; a slot with an ended row stays as it is.
ENDED = {State.SUCCEEDED, State.FAILED, State.ABANDONED}
WITHOUT_A_ROW = {State.COALESCED, State.MISFIRED, State.PASSED_OVER}
RUN = {State.WAITING, State.RUNNING, *ENDED}
THEN = {
    State.EXPECTED: {*State},
    State.WAITING: RUN | WITHOUT_A_ROW,
    State.RUNNING: {State.RUNNING, *ENDED},
    # Until a scheduler decides about it, or a person asks for it.
    State.MISSED: {State.MISSED, State.MISFIRED, State.PASSED_OVER, *RUN},
    **{state: {state, *RUN} for state in WITHOUT_A_ROW},
    **{state: {state} for state in ENDED},
}

pytestmark = pytest.mark.django_db


@pytest.fixture
def noon(jobs, at):
    """Return a function that declares these jobs at noon and returns the first of them."""

    def noon(*paths):
        at(NOON)
        jobs(*paths)
        return ScheduledJob.objects.get(name=paths[0].rpartition(".")[2])

    return noon


def states(row, until=None, **range):
    entries = ledger.of(row, until=until or NOON + timedelta(days=1), most=range.pop("most", 500), **range)
    return [(entry.slot, entry.state) for entry in reversed(entries)]


def only(row, until):
    (entry,) = ledger.of(row, until=until, most=10)
    return entry


def test_what_is_to_come_is_expected(noon):
    row = noon(FREQUENT)

    assert states(row, NOON + 2 * QUARTER) == [(NOON + QUARTER, "expected"), (NOON + 2 * QUARTER, "expected")]


def test_the_newest_come_first_and_no_more_than_were_asked_for(noon):
    row = noon(FREQUENT)

    entries = ledger.of(row, until=NOON + timedelta(days=900), most=3)

    last = NOON + timedelta(days=900)
    assert [entry.slot for entry in entries] == [last, last - QUARTER, last - 2 * QUARTER]


def test_a_slot_that_was_handed_over_waits(noon, at):
    row = noon(FREQUENT)
    at(NOON + QUARTER)
    firing.fire(frequent, actor=W1)

    entry = only(row, NOON + QUARTER)

    assert (entry.state, entry.reason, entry.job_run) == ("waiting", "due since 2026-03-01 12:15:00", None)


def test_a_slot_whose_time_has_come_is_expected_until_its_grace_is_over_and_then_missed(noon, at):
    row = noon(FREQUENT)
    at(NOON + QUARTER + frequent.misfire_grace)
    assert only(row, NOON + QUARTER).state == "expected"
    at(NOON + QUARTER + frequent.misfire_grace + MINUTE)

    entry = only(row, NOON + QUARTER)

    assert (entry.state, entry.reason) == ("missed", "the scheduler did not run in time")


def test_a_slot_that_is_running_says_who_runs_it_since_when(noon, at):
    row = noon(FREQUENT)
    at(NOON + QUARTER)
    firing.fire(frequent, actor=W1)
    claim = handler.claim(W2)

    entry = only(row, NOON + QUARTER)

    assert (entry.state, entry.job_run, entry.by, entry.started_at) == ("running", claim.id, W2, NOON + QUARTER)
    assert (entry.is_scheduled, entry.asked_by) == (True, "")


def test_a_slot_that_has_succeeded_says_when_and_how_much_it_did(noon, at):
    row = noon(FREQUENT)
    at(NOON + QUARTER)
    firing.fire(frequent, actor=W1)
    claim = handler.claim(W1)
    at(NOON + QUARTER + MINUTE)
    job_runs.succeed(claim, 7)

    entry = only(row, NOON + QUARTER)

    assert (entry.state, entry.rows_processed, entry.finished_at) == ("succeeded", 7, NOON + QUARTER + MINUTE)


@pytest.mark.parametrize(("status", "state"), [("failed", "failed"), ("skipped_timeout", "abandoned")])
def test_a_slot_that_has_come_to_nothing_says_why(noon, at, status, state):
    row = noon(FREQUENT)
    at(NOON + QUARTER)
    run = JobRunFactory(job_name="frequent", scheduled_for=NOON + QUARTER)
    if status == "failed":
        expire_lease(run)
        recovery.rescue_owned_by([work_type_named("job_run")], [run.lease_owner], recovery.EARLIER_BOOT, W1)
    else:
        at(NOON + 2 * QUARTER)
        job_runs.skip_stale("frequent", frequent.stale_after, actor=W1)

    entry = only(row, NOON + QUARTER)

    reason = {"failed": "worker_startup_recovery", "abandoned": "running for longer than 600 s"}
    assert (entry.state, entry.reason) == (state, reason[state])


def test_slots_that_were_merged_say_into_which(noon, at):
    row = noon(PATIENT)
    at(NOON + 3 * QUARTER)
    firing.fire(patient, actor=W1)

    assert states(row, NOON + 3 * QUARTER) == [
        (NOON + QUARTER, "coalesced"),
        (NOON + 2 * QUARTER, "coalesced"),
        (NOON + 3 * QUARTER, "waiting"),
    ]
    assert {entry.into for entry in ledger.of(row, until=NOON + 2 * QUARTER, most=9)} == {NOON + 3 * QUARTER}


def test_slots_that_came_too_late_say_how_much(noon, at):
    row = noon(FREQUENT)
    at(NOON + QUARTER + 6 * MINUTE)
    firing.fire(frequent, actor=W1)

    entry = only(row, NOON + QUARTER)

    assert (entry.state, entry.by) == ("misfired", W1)
    assert entry.reason == "no worker could run them within 300 s; the scheduler ran 360 s late"


def test_slots_of_a_pause_say_by_whom(noon, at):
    row = noon(FREQUENT)
    history.pause(row, actor="olga")
    at(NOON + QUARTER)
    firing.fire(frequent, actor=W1)

    passed, coming = reversed(ledger.of(row, until=NOON + 2 * QUARTER, most=9))

    assert (passed.state, passed.reason) == ("passed_over", "the job is paused by olga")
    assert (coming.state, coming.reason) == ("expected", "skipped while the job is paused")


def test_what_was_decided_first_of_a_slot_has_held(noon, at):
    """The event for a range may include slots that were decided earlier."""
    row = noon(FREQUENT)
    at(NOON + 4 * QUARTER)
    slots = [NOON + n * QUARTER for n in (1, 2, 3)]
    history.record_passed_over(row, slots[1:2], actor=W1)
    history.record_misfired(row, slots, "too late", actor=W1)

    assert states(row, slots[-1]) == [(slots[0], "misfired"), (slots[1], "passed_over"), (slots[2], "misfired")]


def test_what_a_person_has_run_by_hand_stands_between_the_slots(noon, at):
    row = noon(FREQUENT)
    at(NOON + QUARTER + MINUTE)
    requests.run_now(frequent, actor="olga", covers=NOON + QUARTER)
    at(NOON + QUARTER + 2 * MINUTE)
    claim = handler.claim(W1)

    slot, by_hand = reversed(ledger.of(row, until=NOON + QUARTER + 2 * MINUTE, most=9))

    assert (slot.is_scheduled, slot.state) == (True, "expected")
    assert (by_hand.is_scheduled, by_hand.state, by_hand.job_run) == (False, "running", claim.id)
    assert (by_hand.asked_by, by_hand.covers) == ("olga", NOON + QUARTER)
    assert by_hand.slot == NOON + QUARTER + MINUTE + timedelta(microseconds=1)


def test_who_has_asked_for_a_slot_is_still_told_when_it_was_pruned(noon, at):
    row = noon(FREQUENT)
    at(NOON + QUARTER + MINUTE)
    requests.run_now(frequent, actor="olga", covers=NOON + QUARTER)
    claim = handler.claim(W1)
    assert job_runs.succeed(claim)
    before = ledger.of(row, until=NOON + QUARTER + 2 * MINUTE, most=9)

    assert job_runs.prune([claim.id], Q(status="success"), actor=W2) == 2

    assert ledger.of(row, until=NOON + QUARTER + 2 * MINUTE, most=9) == before
    assert before[0].asked_by == "olga"


def test_a_missed_slot_that_a_person_asks_for_waits_and_then_has_its_row(noon, at):
    row = noon(FREQUENT)
    at(NOON + 2 * QUARTER - MINUTE)
    firing.fire(frequent, actor=W1)
    assert only(row, NOON + QUARTER).state == "misfired"
    requests.run_slot(frequent, NOON + QUARTER, actor="olga")
    assert (only(row, NOON + QUARTER).state, only(row, NOON + QUARTER).asked_by) == ("waiting", "olga")

    handler.claim(W1)

    entry = only(row, NOON + QUARTER)
    assert (entry.state, entry.is_scheduled, entry.asked_by) == ("running", True, "olga")


def test_slots_have_the_times_that_were_declared_then(noon, at, monkeypatch):
    row = noon(FREQUENT)
    at(NOON + 2 * QUARTER)
    monkeypatch.setattr(declared, "frequent", replace(frequent, cron="0 * * * *"))
    history.declare(declared.frequent, actor=W1)

    found = states(row, NOON + timedelta(hours=2))

    assert [slot for slot, _ in found] == [NOON + n * MINUTE for n in (15, 30, 60, 120)]


def test_a_job_that_the_code_has_no_more_has_no_slots_from_then_on(noon, at, settings):
    row = noon(FREQUENT)
    at(NOON + QUARTER)
    settings.JOBS = []
    scheduler.sync(actor=W1)
    at(NOON + 3 * QUARTER)

    assert states(row) == [(NOON + QUARTER, "missed")]
    settings.JOBS = [FREQUENT]
    scheduler.sync(actor=W1)
    assert states(row, NOON + 4 * QUARTER) == [(NOON + QUARTER, "missed"), (NOON + 4 * QUARTER, "expected")]


def test_a_slot_is_nobodys_before_the_first_declaration_but_its_row_is_shown(noon):
    row = noon(FREQUENT)
    JobRunFactory(job_name="frequent", scheduled_for=NOON - QUARTER, status="success")

    (entry,) = ledger.of(row, until=NOON, most=9)

    assert (entry.slot, entry.state, entry.is_scheduled) == (NOON - QUARTER, "succeeded", False)


def test_a_job_without_a_history_has_the_times_of_its_row(at):
    at(NOON)
    row = ScheduledJobFactory(name="old", created_at=NOON, decided_until=NOON)

    assert states(row, NOON + QUARTER) == [(NOON + QUARTER, "expected")]


def test_a_range_has_its_ends(noon):
    row = noon(FREQUENT)

    assert [slot for slot, _ in states(row, NOON + 4 * QUARTER, since=NOON + 2 * QUARTER)] == [
        NOON + n * QUARTER for n in (2, 3, 4)
    ]
    assert states(row, NOON + 2 * QUARTER - MINUTE, since=NOON + QUARTER + MINUTE) == []


def test_the_rows_of_a_range_that_is_cut_are_those_of_its_slots(noon, at):
    """A row may belong to a slot before the range; it must not appear as started by hand."""
    row = noon(EACH)
    at(NOON + 20 * QUARTER)
    for n in range(1, 6):
        JobRunFactory(job_name="each", scheduled_for=NOON + n * QUARTER, status="success")

    entries = ledger.of(row, until=NOON + 20 * QUARTER, most=17)

    assert [entry.slot for entry in entries] == [NOON + n * QUARTER for n in range(20, 3, -1)]
    assert [entry.state for entry in entries[-3:]] == ["missed", "succeeded", "succeeded"]
    assert all(entry.is_scheduled for entry in entries)


def test_the_latest_are_shown_with_the_next_ones(noon, at):
    row = noon(MORNING)
    at(NOON + timedelta(days=100))

    entries = ledger.latest(row, past=50, coming=3)

    assert [entry.state for entry in entries] == ["expected"] * 3 + ["missed"] * 50
    assert ledger.counts(entries) == {State.EXPECTED: 3, State.MISSED: 50}


def test_a_job_of_the_past_has_nothing_to_come(noon, at, settings):
    row = noon(FREQUENT)
    settings.JOBS = []
    scheduler.sync(actor=W1)
    at(NOON + QUARTER)
    row.refresh_from_db()

    assert ledger.latest(row, past=50, coming=3) == []


def test_thousands_of_slots_take_as_many_questions_as_one(noon, at, django_assert_num_queries):
    row = noon(EACH)
    at(NOON + timedelta(days=90))
    firing.fire(each, actor=W1)
    JobRunFactory(job_name="each", scheduled_for=NOON + QUARTER, status="success")
    DueSlotFactory(job_name="each", scheduled_for=NOON + 2 * QUARTER)

    with django_assert_num_queries(6):
        entries = ledger.of(row, until=NOON + timedelta(days=90), most=10_000)

    assert len(entries) == 90 * 24 * 4
    assert ledger.counts(entries) == {State.WAITING: 10, State.SUCCEEDED: 1, State.MISFIRED: 8629}


def test_a_slot_that_is_handed_over_while_somebody_looks_is_not_missed(noon, at, monkeypatch):
    """The slot moves from one table to the next; the ledger must read them in the same order."""
    row = noon(PATIENT)
    at(NOON + QUARTER)
    firing.fire(patient, actor=W1)
    seen = ledger._newest

    def claimed_meanwhile(rows, *range):
        found = list(seen(rows, *range))
        if rows.model is DueSlot:
            handler.claim(W1)
        return found

    monkeypatch.setattr(ledger, "_newest", claimed_meanwhile)

    assert only(row, NOON + QUARTER).state == "running"


@pytest.mark.parametrize("seed", [*range(4), *many_seeds(12, of=60)])
def test_in_any_history_each_slot_is_there_once_and_moves_on_as_slots_do(jobs, at, monkeypatch, seed):
    history_of = History(seed, jobs, at, monkeypatch)

    for _ in range(60):
        history_of.goes_on()
        history_of.is_told()


class History:
    """Random events of one job, with an independent record of the states of its slots."""

    def __init__(self, seed, jobs, at, monkeypatch):
        self.chance, self.at, self.monkeypatch = random.Random(seed), at, monkeypatch
        self.now, self.claims, self.seen = NOON, [], {}
        self.name = self.chance.choice(["frequent", "patient", "each"])
        self.job = getattr(declared, self.name)
        self.at(self.now)
        jobs(f"tests.schedules.declared.{self.name}")
        self.row = ScheduledJob.objects.get()
        self.eras = [(NOON, self.job.cron)]

    def goes_on(self):
        steps = (self.time, self.fire, self.claim, self.end, self.pause, self.ask, self.declare, self.die)
        self.chance.choices(steps, [6, 8, 8, 6, 2, 2, 1, 1])[0]()

    def time(self):
        minutes = self.chance.choice([1, 3, 10, 15, 40, 300])
        self.now += minutes * MINUTE + timedelta(microseconds=self.chance.randrange(10**6))
        self.at(self.now)

    def fire(self):
        firing.fire(self.job, actor=W1)

    def claim(self):
        if claim := handler.claim(W1):
            self.claims.append(claim)

    def end(self):
        if self.claims:
            claim = self.claims.pop()
            self.chance.choice([job_runs.succeed, lambda claim: job_runs.fail(claim, "no")])(claim)

    def pause(self):
        self.row.refresh_from_db()
        (history.resume if self.row.paused_at else history.pause)(self.row, actor="olga")

    def ask(self):
        behind = self.now - timedelta(hours=self.chance.randrange(30))
        slots = list(cron.slots_between(self.job.cron, "UTC", behind, self.now))
        what = self.chance.choice(["now", "slot", "again", "range"])
        try:
            if what == "now":
                requests.run_now(self.job, actor="olga")
            elif what == "range":
                requests.backfill(self.job, behind, self.now, actor="olga")
            elif slots and what == "slot":
                requests.run_slot(self.job, self.chance.choice(slots), actor="olga")
            elif slots:
                requests.run_now(self.job, actor="olga", covers=self.chance.choice(slots))
        except requests.SlotTaken:
            pass

    def declare(self):
        times = self.chance.choice(["*/15 * * * *", "*/20 * * * *", "7 * * * *"])
        if times != self.job.cron:
            self.job = replace(self.job, cron=times)
            self.monkeypatch.setattr("schedules.jobs._load", lambda paths: (self.job,))
            scheduler.sync(actor=W1)
            self.eras.append((self.now, times))

    def die(self):
        job_runs.skip_stale(self.name, self.job.stale_after, actor=W2)

    def is_told(self):
        entries = ledger.of(self.row, until=self.now + timedelta(hours=1), most=10_000)

        assert [entry.slot for entry in entries] == sorted({entry.slot for entry in entries}, reverse=True)
        found = {entry.slot: entry for entry in entries}
        assert {slot for slot, entry in found.items() if entry.is_scheduled} == self.slots()
        for run in JobRun.objects.all():
            assert found[run.scheduled_for].job_run == run.pk
        for due in DueSlot.objects.all():
            assert found[due.scheduled_for].state is State.WAITING
        for slot, entry in found.items():
            assert entry.state in THEN[self.seen.get(slot, State.EXPECTED)], (slot, self.seen.get(slot), entry)
            assert entry.is_scheduled or entry.asked_by == "olga"
            assert entry.slot <= self.now or entry.state is State.EXPECTED or not entry.is_scheduled
        self.seen |= {slot: entry.state for slot, entry in found.items() if slot <= self.now}

    def slots(self):
        ends = [since for since, _ in self.eras[1:]] + [self.now + timedelta(hours=1)]
        return {
            slot
            for (since, times), end in zip(self.eras, ends, strict=True)
            for slot in cron.slots_between(times, "UTC", since, end)
        }
