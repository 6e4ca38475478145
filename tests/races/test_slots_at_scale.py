"""Four schedulers compete for ten thousand slots (goal 2 of the issue, B10), in two layers: with bare claims, and with
everything that a worker does, on a clock that runs fast. Leases are lost and stolen in between.
"""

import json
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from schedules import cron, scheduler
from schedules.models import DueSlot, JobRun, ScheduledJob
from tests.factories import W1
from tests.races.invariants import assert_all_hold
from tests.races.scheduler import Worker, fast
from work import clock
from work.models import Event

START = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = ("one", "two", "three", "four", "five")
JOBS = [f"tests.races.minutely.{name}" for name in NAMES]
OWNERS = [f"w{n}@here:{n}:boot{n}" for n in range(4)]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(
    params=[
        pytest.param("threads", id="threads"),
        pytest.param("processes", id="processes", marks=pytest.mark.long(seconds=15)),
        pytest.param("many", id="many", marks=pytest.mark.soak),
    ]
)
def race(request, settings, monkeypatch):
    """Return the number of slots of each job, and a function that runs all workers; it returns the sum of their
    counters, and when each worked on which slot.
    """
    scales = {"threads": (40, in_threads), "processes": (400, in_processes), "many": (2000, in_processes)}
    slots, run = scales[request.param]

    def race(how, **plan):
        plan = {"began": time.monotonic(), "start": START.isoformat(), "jobs": JOBS, "names": NAMES, **plan}
        said = run(request, how, plan, settings, monkeypatch)
        did = sum((Counter(each["did"]) for each in said), Counter())
        return did, [at for each in said for at in each["at"]]

    return slots, race


def in_threads(request, how, plan, settings, monkeypatch):
    settings.ADE_LEASE_SECONDS = plan["lease"]
    monkeypatch.setattr(clock, "now", fast(plan))
    workers = [Worker(name, plan) for name in OWNERS]
    return request.getfixturevalue("threads").together(lambda worker=worker: worker.lives(how) for worker in workers)


def in_processes(request, how, plan, settings, monkeypatch):
    programs = request.getfixturevalue("programs")
    started = [programs.main("tests.races.scheduler", how, name, json.dumps(plan)) for name in OWNERS]
    ended = [program.code(seconds=1000) for program in started]
    assert ended == [0] * len(OWNERS), [program.logged()[-3000:] for program in started]
    return [program.said[-1] for program in started]


def each_was_claimed_once(did, at):
    of_status = Counter(JobRun.objects.values_list("status", flat=True))
    claimed = Event.objects.filter(kind="SLOT_CLAIMED").count()
    assert claimed == sum(of_status.values()) == len(at) == len({id for *_, id in at})
    assert of_status["success"] == did["success"] == Event.objects.filter(kind="SLOT_SUCCEEDED").count()
    assert of_status["failed"] == did["failed"] + did["rescued"]
    assert did["late"] == did["abandoned"] == did["rescued"] - did["too_late"]
    assert Event.objects.filter(kind="LATE_WRITE_REFUSED").count() == did["late"] + did["too_late"]


def none_overlap(at):
    """Check by the workers' own records that no two slots of a job ran at the same time."""
    for name in NAMES:
        spans = sorted((began, ended) for job, began, ended, _ in at if job == name)
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_schedulers_that_claim_the_same_slots_claim_each_once(race):
    slots, race = race

    did, at = race("claims", slots=slots, lease=1, speed=1)

    assert JobRun.objects.count() == slots * len(NAMES)
    each_was_claimed_once(did, at)
    none_overlap(at)
    assert did["taken"] == slots * len(NAMES) * (len(OWNERS) - 1)
    # With few slots there may be no conflict at all.
    assert did["running"] > 0 or slots < 100
    assert_all_hold(quiet=True)


def test_schedulers_that_look_at_the_same_schedules_run_each_slot_once(race, settings, monkeypatch):
    slots, race = race
    settings.JOBS, settings.ADE_SCHEDULES = JOBS, True
    monkeypatch.setattr(clock, "now", lambda: START)
    scheduler.sync(actor=W1)
    # The last ticks may come a little before the end.
    end = START + timedelta(minutes=slots + slots // 10 + 10)
    # A minute passes in a fraction of a second, so that due slots pile up. A tick that takes seconds then takes hours
    # of that time, which would dominate a test with few slots.
    speed = 2400 if slots > 100 else 600

    did, at = race("ticks", end=end.isoformat(), speed=speed, lease=speed)

    expected = {
        (row.name, slot)
        for row in ScheduledJob.objects.all()
        for slot in cron.slots_between(row.cron, row.time_zone, START, row.decided_until)
    }
    assert len(expected) >= slots * len(NAMES)
    assert {*JobRun.objects.values_list("job_name", "scheduled_for")} == expected
    assert not DueSlot.objects.exists()
    each_was_claimed_once(did, at)
    none_overlap(at)
    assert did["stolen"] > 0
    assert_all_hold(quiet=True)
