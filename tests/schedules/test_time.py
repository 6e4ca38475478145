"""Time in jobs and their leases: rows E1 to E10 of the fault study.

PROVED_BY names the tests of other files, row by row; this file has the remaining ones.
"""

import ast
import time
import tomllib
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from django.conf import settings

from schedules import cron, firing, handler, job_runs, lease, requests, scheduler
from schedules.job_runs import Refusal
from schedules.models import DueSlot, JobRun, ScheduledJob, SchedulerLease
from tests.covered import not_there
from tests.factories import W1, W2, JobRunFactory, age, claim_of, events_of, expire_lease
from tests.schedules.declared import EACH, FREQUENT, MORNING, PATIENT, each, frequent, morning, patient
from work import clock, recovery
from work.clock import Anchor
from work.work_types import work_type_named

PROVED_BY = {
    "E1 hosts differ by ten minutes": [
        "tests/work/test_clock.py::test_the_time_is_that_of_the_database",
        "tests/work/test_clock.py::test_two_hosts_whose_clocks_differ_agree",
        "tests/schedules/test_schedules.py::test_the_clock_of_this_host_does_not_count",
        "tests/schedules/test_time.py::test_hosts_whose_clocks_differ_agree_on_slots_and_leases",
    ],
    "E2 the clock of the wall jumps": [
        "tests/work/test_clock.py::test_the_time_does_not_jump_with_the_clock_of_the_host",
        "tests/work/test_clock.py::test_a_jump_of_the_clock_is_noticed_for_a_while",
        "tests/schedules/test_time.py::test_a_clock_that_is_set_forward_ends_no_slot_that_has_just_begun",
        "tests/schedules/test_time.py::test_a_clock_that_is_set_back_runs_no_slot_again",
        "tests/schedules/test_time.py::test_a_clock_that_is_set_back_leaves_no_lease_for_ever",
        "tests/schedules/test_time.py::test_the_time_of_a_job_is_measured_by_the_monotonic_clock",
    ],
    "E3 now() of PostgreSQL is the start of the transaction": [
        "tests/work/test_clock.py::test_a_database_with_a_clock_is_asked_for_the_moment_and_not_for_the_start_of_its_transaction",
        "tests/schedules/test_time.py::test_a_claim_that_has_waited_for_a_lock_is_trusted_for_no_longer",
    ],
    "E4 CURRENT_TIMESTAMP of SQLite has whole seconds": [
        "tests/schedules/test_time.py::test_no_code_asks_a_database_for_its_current_timestamp",
    ],
    "E5 clocks are put forward and back": [
        "tests/schedules/test_cron.py::test_what_lies_in_the_hour_that_is_not_there_comes_right_after_it_and_once",
        "tests/schedules/test_cron.py::test_what_lies_in_the_hour_that_comes_twice_comes_the_first_time_only",
        "tests/schedules/test_cron.py::test_wherever_one_begins_to_look_the_slots_are_the_same",
        "tests/schedules/test_firing.py::test_a_slot_by_local_time_runs_once_when_the_clocks_change",
        "tests/schedules/test_time.py::test_a_year_of_days_has_a_slot_for_each_day",
        "tests/schedules/test_time.py::test_zones_that_are_off_by_half_an_hour_and_less_have_their_slots_there",
    ],
    "E6 asleep across five slots": [
        "tests/schedules/test_firing.py::test_of_slots_that_were_missed_the_latest_is_kept_and_tells_of_the_others",
        "tests/schedules/test_firing.py::test_a_job_that_does_not_coalesce_runs_each",
        "tests/schedules/test_firing.py::test_slots_beyond_the_grace_are_dropped_with_a_word",
        "tests/schedules/test_firing.py::test_the_grace_is_what_the_job_declares_to_the_second",
        "tests/schedules/test_time.py::test_a_worker_that_was_asleep_across_five_slots_does_what_each_job_declares",
    ],
    "E7 times without a zone": [
        "tests/work/test_clock.py::test_times_have_a_zone",
        "tests/schedules/test_time.py::test_warnings_are_errors_and_times_have_zones",
        "tests/schedules/test_time.py::test_a_slot_without_a_zone_is_not_taken",
        "tests/commands/test_job.py::test_a_time_is_in_utc_unless_it_says_otherwise",
    ],
    "E8 the machine is suspended": [
        "tests/schedules/test_time.py::test_the_clock_that_leases_are_trusted_by_stands_still_in_a_suspended_machine",
        "tests/schedules/test_time.py::test_a_worker_that_wakes_up_is_refused_and_makes_up_for_what_it_has_slept_through",
        "tests/work/test_supervise_stop.py::test_trust_ends_while_the_worker_is_frozen",
        "tests/races/test_stale_claims.py::test_every_kind_refuses_a_late_end",
    ],
    "E9 a legitimate long job": [
        "tests/documents/test_watchdog.py::test_a_job_that_nobody_works_at_goes_back",
        "tests/schedules/test_job_runs.py::test_a_slot_within_its_time_is_left_alone",
        "tests/schedules/test_time.py::test_a_slot_is_stale_by_when_it_was_claimed_and_not_by_how_long_it_has_waited",
        "tests/schedules/test_time.py::test_a_slot_that_takes_longer_than_it_may_is_given_up_at_twice_that",
    ],
    "E10 equal moments": [
        "tests/runs/test_claim.py::test_of_runs_of_the_same_moment_the_first_submitted_is_claimed_first",
        "tests/schedules/test_lane.py::test_of_equal_moments_the_first_that_came_is_the_first",
        "tests/schedules/test_time.py::test_slots_that_are_due_at_the_same_moment_run_in_their_order",
    ],
}

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
QUARTER = 15 * MINUTE

pytestmark = pytest.mark.django_db


def due():
    return set(DueSlot.objects.values_list("job_name", "scheduled_for"))


@pytest.fixture
def database_says(monkeypatch):
    """Return a function that sets the clock of the database, which each process reads once in a while."""
    for name in ("_anchor", "_measured", "_jumped_at"):
        monkeypatch.setattr(clock, name, getattr(clock, name))

    def says(at):
        monkeypatch.setattr(clock, "_database_clock", lambda: Anchor(at, time.monotonic()))
        clock.measure()

    return says


@pytest.fixture
def fresh_clock(database_says, monkeypatch):
    """Set the database clock to noon and forget earlier measurements of this process."""
    monkeypatch.setattr(clock, "_measured", False)
    monkeypatch.setattr(clock, "_jumped_at", None)
    database_says(NOON)
    return database_says


def test_every_row_is_proved():
    assert [row.split()[0] for row in PROVED_BY] == [f"E{n}" for n in range(1, 11)]
    assert not_there(name for names in PROVED_BY.values() for name in names) == []


def test_hosts_whose_clocks_differ_agree_on_slots_and_leases(jobs, fresh_clock, monkeypatch):
    """E1: each host reads the clock of the database and continues from there."""
    jobs(FREQUENT)
    fresh_clock(NOON + QUARTER)
    handed, took = [], []

    for owner, off in ((W1, 10 * MINUTE), (W2, -10 * MINUTE)):
        monkeypatch.setattr(clock, "_anchor", Anchor(NOON + QUARTER + off, time.monotonic()))
        clock.measure()
        took.append(lease.take(owner))
        handed.append(firing.fire(frequent, actor=owner))

    assert (took, handed) == ([True, False], [1, 0])
    assert due() == {("frequent", NOON + QUARTER)}


def test_a_clock_that_is_set_forward_ends_no_slot_that_has_just_begun(jobs, fresh_clock, monkeypatch):
    """E2: the slot counts neither as stale nor as lost."""
    jobs(FREQUENT)
    run = JobRunFactory(job_name="frequent", scheduled_for=NOON)
    claim = claim_of(run)

    fresh_clock(NOON + HOUR)

    assert scheduler.skip_stale(W2) == 0
    assert recovery.rescue_expired([work_type_named("job_run")], W2) == 0
    assert firing.fire(frequent, actor=W2) == 1
    assert job_runs.succeed(claim)
    # By then, every living worker has had time to renew its leases.
    other = JobRunFactory(job_name="frequent", scheduled_for=NOON + QUARTER, created_at=NOON)
    monkeypatch.setattr(clock, "_jumped_at", time.monotonic() - settings.ADE_LEASE_SECONDS - 1)
    assert scheduler.skip_stale(W2) == 1
    assert JobRun.objects.get(pk=other.pk).status == "skipped_timeout"


def test_a_clock_that_is_set_back_runs_no_slot_again(jobs, fresh_clock):
    """E2: decisions stay, and the schedule continues when their time is reached again."""
    jobs(FREQUENT)
    fresh_clock(NOON + HOUR)
    firing.fire(frequent, actor=W1)
    job_runs.succeed(handler.claim(W1))
    before = set(JobRun.objects.values_list("scheduled_for", flat=True))

    for minutes in range(0, 61, 15):
        fresh_clock(NOON + minutes * MINUTE)
        firing.fire(frequent, actor=W1)
    assert (handler.claim(W1), due()) == (None, set())

    fresh_clock(NOON + HOUR + QUARTER)
    assert firing.fire(frequent, actor=W1) == 1
    assert before == {NOON + HOUR}


def test_a_clock_that_is_set_back_leaves_no_lease_for_ever(fresh_clock):
    """E2: the holder may have died, so its lease is not honoured until the old time is reached again."""
    assert lease.take(W1)

    fresh_clock(NOON - HOUR)

    assert lease.take(W2)
    assert not lease.take(W1)
    assert SchedulerLease.objects.get().expires_at < NOON - HOUR + timedelta(seconds=settings.ADE_LEASE_SECONDS + 1)


def test_the_time_of_a_job_is_measured_by_the_monotonic_clock(jobs, fresh_clock):
    """E2: setting a clock does not make a job time out."""
    jobs(FREQUENT)
    fresh_clock(NOON + QUARTER)
    firing.fire(frequent, actor=W1)
    claim = handler.claim(W1)
    fresh_clock(NOON + QUARTER + HOUR)

    assert handler.do(claim) == 7


@pytest.mark.django_db(transaction=True)
def test_a_claim_that_has_waited_for_a_lock_is_trusted_for_no_longer(threads, settings):
    """E3: the lease counts from before the request."""
    settings.ADE_LEASE_SECONDS = 10
    first = threads.hold(lambda: job_runs.claim_slot("frequent", NOON, W1))
    asked_at = time.monotonic()
    second = threads.start(lambda: job_runs.claim_slot("frequent", NOON + QUARTER, W2))
    assert second.waits()
    time.sleep(1)

    first.roll_back()

    claim = second.answer()
    got_at = time.monotonic()
    assert claim.trusted_until - asked_at <= 8.5
    assert claim.trusted_until - got_at <= 7.5
    row = JobRun.objects.get()
    assert row.lease_expires_at - row.started_at == timedelta(seconds=10)
    assert row.lease_expires_at - clock.now() < timedelta(seconds=9.5)


def test_no_code_asks_a_database_for_its_current_timestamp():
    """E4: times come from `work.clock`, which has microseconds on every database."""
    apps = ("work", "schedules", "documents", "builds", "runs", "feeds", "webhooks", "api", "config")
    found = []
    for path in (path for app in apps for path in Path(settings.BASE_DIR, app).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "django.db.models.functions":
                found += [(path, alias.name) for alias in node.names if alias.name == "Now"]
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "CURRENT_TIMESTAMP" in node.value:
                found.append((path, node.value))
    assert found == []


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns", "Pacific/Chatham"]
)
@pytest.mark.parametrize("line", ["30 2 * * *", "15 2 * * *", "45 1 * * *", "0 0 * * *"])
def test_a_year_of_days_has_a_slot_for_each_day(zone, line):
    """E5: no day is missing and none has two slots, wherever clocks change."""
    begin = datetime(2025, 1, 1, 12, tzinfo=UTC)

    slots = list(cron.slots_between(line, zone, begin, begin + timedelta(days=365)))

    assert len(slots) == 365
    apart = {after - before for before, after in pairwise(slots)}
    assert all(timedelta(hours=23) <= each <= timedelta(hours=25) for each in apart)


@pytest.mark.parametrize(
    ("zone", "minute"), [("Asia/Kathmandu", 15), ("Asia/Kolkata", 30), ("Pacific/Chatham", 15), ("UTC", 0)]
)
def test_zones_that_are_off_by_half_an_hour_and_less_have_their_slots_there(zone, minute):
    """E5: six in the morning is not on the full hour in UTC there."""
    slot = cron.next_slot("0 6 * * *", zone, NOON)

    assert (slot.tzinfo, slot.minute) == (UTC, minute)
    assert cron.is_slot("0 6 * * *", zone, slot)


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_was_asleep_across_five_slots_does_what_each_job_declares(jobs, at):
    """E6: merged into the latest, run one by one, or dropped after five minutes; the nightly slot still runs."""
    at(NOON)
    jobs(FREQUENT, PATIENT, EACH, MORNING)
    at(NOON + 5 * QUARTER + 6 * MINUTE)

    scheduler.Scheduler().tick(W1)

    slots = [NOON + n * QUARTER for n in range(1, 6)]
    assert due() == {("patient", slots[-1]), *(("each", slot) for slot in slots)}
    assert {job.misfire_grace for job in (frequent, patient, each, morning)} == {5 * MINUTE, 2 * HOUR, 6 * HOUR}
    told = {
        job.name: list(events_of(ScheduledJob.objects.get(name=job.name)).values_list("kind", flat=True))[1:]
        for job in (frequent, patient, each, morning)
    }
    merged, dropped = ["SLOTS_COALESCED"], ["SLOTS_MISFIRED"]
    assert told == {"frequent": dropped, "patient": merged, "each": [], "morning": []}


def test_warnings_are_errors_and_times_have_zones():
    """E7: Django only warns about naive datetimes."""
    options = tomllib.loads(Path(settings.BASE_DIR, "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]

    assert settings.USE_TZ is True
    assert options["filterwarnings"][0] == "error"


def test_a_slot_without_a_zone_is_not_taken(jobs):
    """E7: naive datetimes are refused."""
    naive = NOON.replace(tzinfo=None)
    jobs(FREQUENT)

    with pytest.raises(TypeError):
        cron.next_slot(frequent.cron, frequent.time_zone, naive)
    with pytest.raises(TypeError, match="A slot needs a time zone, but 2026-03-01T12:00:00 has none"):
        job_runs.claim_slot("frequent", naive, W1)
    assert not JobRun.objects.exists()


def test_the_clock_that_leases_are_trusted_by_stands_still_in_a_suspended_machine():
    """E8: the monotonic clock gives no protection there; the fence does, and docs/lifecycle.md says so."""
    assert time.get_clock_info("monotonic").implementation == "clock_gettime(CLOCK_MONOTONIC)"
    page = Path(settings.BASE_DIR, "docs", "lifecycle.md").read_text()
    assert "CLOCK_MONOTONIC" in page


def test_a_worker_that_wakes_up_is_refused_and_makes_up_for_what_it_has_slept_through(jobs, fresh_clock):
    """E8: its clock stood still, so it still trusts its claim, but others have recovered the slot."""
    jobs(PATIENT)
    run = JobRunFactory(job_name="patient", scheduled_for=NOON, owner=W1)
    claim = claim_of(run)
    expire_lease(run)
    assert recovery.rescue_expired([work_type_named("job_run")], W2) == 1

    fresh_clock(NOON + 5 * QUARTER + MINUTE)
    assert claim.is_trusted()
    assert not job_runs.succeed(claim)

    assert JobRun.objects.get(pk=run.pk).status == "failed"
    assert firing.fire(patient, actor=W1) == 1
    following = handler.claim(W1)
    assert following.values["scheduled_for"] == NOON + 5 * QUARTER
    assert job_runs.claim_slot("patient", NOON, W1) is Refusal.SLOT_TAKEN


def test_a_slot_is_stale_by_when_it_was_claimed_and_not_by_how_long_it_has_waited(jobs, at):
    """E9: it had been due for hours before it could start."""
    at(NOON)
    jobs(FREQUENT)
    requests.run_slot(frequent, NOON - 5 * HOUR, actor="olga")
    age(DueSlot.objects.get(), 4 * 3600)
    claim = handler.claim(W1)
    at(NOON + frequent.stale_after)

    assert scheduler.skip_stale(W2) == 0

    assert job_runs.succeed(claim)


def test_a_slot_that_takes_longer_than_it_may_is_given_up_at_twice_that(jobs, at):
    """E9: the maximum runtime is doubled before a slot is given up."""
    at(NOON)
    jobs(FREQUENT)
    run = JobRunFactory(job_name="frequent", scheduled_for=NOON)
    at(NOON + 2 * frequent.max_runtime + timedelta(seconds=1))

    assert scheduler.skip_stale(W2) == 1

    assert JobRun.objects.get(pk=run.pk).status == "skipped_timeout"


def test_slots_that_are_due_at_the_same_moment_run_in_their_order(jobs, at):
    """E10: a backfill inserts its range in one statement, with the same timestamp for all."""
    at(NOON)
    jobs(EACH)
    requests.backfill(each, NOON - 5 * HOUR, NOON, actor="olga")
    assert len(set(DueSlot.objects.values_list("due_at", flat=True))) == 1
    ran = []

    while claim := handler.claim(W1):
        ran.append(claim.values["scheduled_for"])
        job_runs.succeed(claim)

    assert ran == [NOON - 5 * HOUR + n * QUARTER for n in range(21)]
