"""Workers that run scheduled jobs and die, stop or hang during them (B10, B11, and section 7 of seed 001)."""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings

from schedules import requests
from schedules.models import DueSlot, JobRun, ScheduledJob, SchedulerLease
from tests.factories import events_of, told
from tests.processes import database_url
from tests.races.invariants import assert_all_hold
from tests.stepping import until
from tests.testwork.jobs import JOB, SCRIPT, SECONDS, WITNESS
from work import clock
from work.models import Worker

pytestmark = pytest.mark.long


class Place:
    """Starts workers for the test job, and reads the file in which the job records its slots."""

    def __init__(self, programs, path):
        self.programs, self.path = programs, path

    def worker(self, script="noop", name="w1", *, looks=False, seconds=600, slots=2):
        values = {SCRIPT: script, SECONDS: seconds, WITNESS: self.path, "ADE_SCHEDULES": str(looks).lower()}
        return self.programs.worker(name, f"job_run={slots}", **values)

    def wanted(self):
        """Request a slot for now; return its time."""
        return requests.run_now(JOB, actor="olga").scheduled_for

    def witnessed(self, what):
        """Return (slot, pid) of all slots that have begun, or ended, in order."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        found = [json.loads(line) for line in lines]
        return [(datetime.fromisoformat(each["slot"]), each["pid"]) for each in found if each["what"] == what]

    def until_begun(self, number=1):
        until(lambda: len(self.witnessed("begin")) >= number)


@pytest.fixture
def place(programs, tmp_path):
    return Place(programs, tmp_path / "witness")


def run_of(slot):
    return JobRun.objects.get(job_name=JOB.name, scheduled_for=slot)


def until_ended(slot, seconds=600):
    ended = JobRun.objects.filter(job_name=JOB.name, scheduled_for=slot, finished_at__isnull=False)
    until(lambda: ended.exists(), seconds)
    return run_of(slot)


def make_due():
    """Make the yearly slot due for a worker with schedules; return its time."""
    slot = datetime(clock.now().year, 1, 1, tzinfo=UTC)
    ScheduledJob.objects.filter(name=JOB.name).update(decided_until=slot - timedelta(days=1))
    return slot


def test_what_is_triggered_is_run_and_whoever_waits_is_told(place):
    place.worker()
    command = [sys.executable, "manage.py", "job", "trigger", JOB.name, "--wait", "--as", "olga", "--json"]

    ended = subprocess.run(
        command,
        env=os.environ | {"DATABASE_URL": database_url()},
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 0, ended.stderr
    run = JobRun.objects.get()
    assert json.loads(ended.stdout)["job_run"]["id"] == run.pk
    assert (run.status, run.rows_processed) == ("success", 7)
    assert len(place.witnessed("end")) == 1
    assert events_of(run).first().data == {"asked_by": "olga (command)"}
    assert_all_hold(quiet=True)


def test_the_slot_of_a_killed_worker_has_failed_when_it_starts_again_and_the_next_one_goes_on(place):
    worker = place.worker("sleep:600")
    slot = place.wanted()
    place.until_begun()
    following = place.wanted()
    worker.kill()

    # Recovery at startup does not wait for the lease to expire.
    place.worker()

    killed = until_ended(slot)
    assert (killed.status, killed.error_message) == ("failed", "worker_startup_recovery")
    assert told(killed) == ["SLOT_CLAIMED", "SLOT_FAILED", "RECOVERED"]
    assert until_ended(following).status == "success"
    assert [begun for begun, _ in place.witnessed("begin")] == [slot, following]
    assert_all_hold(quiet=True)


def test_the_slot_of_a_killed_worker_has_failed_when_its_lease_is_over_for_another(place):
    worker = place.worker("sleep:600")
    slot = place.wanted()
    place.until_begun()
    following = place.wanted()
    place.worker(name="w2").until_logged("worker.recovered")
    assert run_of(slot).status == "running"

    worker.kill()

    killed = until_ended(slot)
    assert (killed.status, killed.error_message) == ("failed", "the lease of its worker expired")
    assert until_ended(following).status == "success"
    assert_all_hold(quiet=True)


def test_a_worker_that_is_told_to_end_finishes_its_slot_and_begins_no_other(place):
    worker = place.worker("sleep:1")
    slot = place.wanted()
    place.until_begun()
    following = place.wanted()

    worker.send(signal.SIGTERM)

    assert worker.code() == 0, worker.logged()
    assert run_of(slot).status == "success"
    assert DueSlot.objects.get().scheduled_for == following
    assert_all_hold()


@pytest.mark.parametrize("script", ["sleep:600", "child:600"])
def test_a_worker_that_is_told_again_gives_up_its_slot(place, script):
    worker = place.worker(script)
    slot = place.wanted()
    place.until_begun()

    worker.end_at_once()

    assert worker.code() == 0, worker.logged()
    run = run_of(slot)
    assert (run.status, run.error_message) == ("failed", "its worker was stopped")
    assert_all_hold(quiet=True)


@pytest.mark.parametrize("script", ["sleep:600", "child:600"])
def test_a_slot_that_takes_longer_than_it_may_is_ended(place, script):
    place.worker(script, seconds=1)

    run = until_ended(place.wanted())

    said = "errands did not finish within 1 s. What it has done is kept, and the next slot continues."
    assert (run.status, run.error_message) == ("failed", said)
    assert place.witnessed("end") == []
    assert_all_hold(quiet=True)


def test_a_slot_that_does_not_heed_its_time_is_given_up_while_its_worker_lives_and_its_end_is_refused(place, tmp_path):
    """B11: never both."""
    worker = place.worker(f"deaf:{tmp_path / 'enough'}")
    slot = place.wanted()
    place.until_begun()

    # This worker has another declaration, with a maximum runtime of one second.
    place.worker(name="w2", looks=True, seconds=1, slots=0)
    run = until_ended(slot)
    assert (run.status, run.error_message) == ("skipped_timeout", "running for longer than 2 s")
    assert place.witnessed("end") == []
    Path(tmp_path, "enough").touch()
    until(lambda: "LATE_WRITE_REFUSED" in told(run))

    assert worker.is_alive()
    until(lambda: place.witnessed("end"))
    assert run_of(slot).status == "skipped_timeout"
    # The late end, and perhaps a late renewal.
    kinds = told(run)
    assert (kinds[:2], set(kinds[2:])) == (["SLOT_CLAIMED", "SLOT_ABANDONED"], {"LATE_WRITE_REFUSED"})
    assert_all_hold(quiet=True)


def test_a_slot_that_fails_says_of_what(place):
    place.worker("raise")

    run = until_ended(place.wanted())

    assert (run.status, run.error_message) == ("failed", "ValueError: as the script says")


def test_of_workers_that_all_look_at_the_schedules_one_runs_the_slot(place):
    """B10: this also holds if the worker with the scheduler lease is killed."""
    workers = [place.worker(name=f"w{n}", looks=True) for n in range(3)]
    until(lambda: Worker.objects.count() == 3 and SchedulerLease.objects.exists())
    until(lambda: ScheduledJob.objects.filter(name=JOB.name).exists())

    slot = make_due()

    assert until_ended(slot).status == "success"
    assert place.witnessed("begin") == place.witnessed("end")
    assert [begun for begun, _ in place.witnessed("begin")] == [slot]
    holder = SchedulerLease.objects.get().owner
    next(worker for worker in workers if f":{worker.pid}:" in holder).kill()
    until(lambda: SchedulerLease.objects.get().owner != holder)
    # Make it due again although it has a row: the scheduler must find it taken.
    make_due()
    until(lambda: "SLOTS_TAKEN" in told(ScheduledJob.objects.get(name=JOB.name)))
    assert JobRun.objects.count() == 1
    assert_all_hold(quiet=True)


def test_a_worker_that_is_not_to_look_at_schedules_runs_what_others_hand_over(place):
    looks = place.worker(name="w1", looks=True, slots=0)
    until(lambda: ScheduledJob.objects.filter(name=JOB.name).exists())
    runs = place.worker(name="w2")

    slot = make_due()

    until_ended(slot)
    assert place.witnessed("begin") == [(slot, runs.pid)]
    assert f":{looks.pid}:" in SchedulerLease.objects.get().owner
