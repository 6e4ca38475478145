"""A minimal worker for scheduled jobs, in its own process or thread. All workers of a test share a clock that runs
fast: `claims` works through a list of slots, `ticks` does what a worker does, starting from the schedules.

It abandons some claims as if it had died, and uses them again after it has lost them. At the end it reports when it
worked on which slot, by the monotonic clock that all processes share.
"""

import json
import random
import sys
import time
from datetime import datetime, timedelta

from django.conf import settings

from schedules import handler, job_runs, lease
from schedules.job_runs import Refusal
from schedules.models import DueSlot, JobRun, SchedulerLease
from schedules.scheduler import Scheduler
from work import clock, recovery
from work.sql.contention import Contended
from work.work_types import work_type_named


def main(how, owner, plan):
    told = json.loads(plan)
    clock.now = fast(told)
    settings.JOBS, settings.ADE_SCHEDULES, settings.ADE_LEASE_SECONDS = told["jobs"], True, told["lease"]
    sys.stdout.write(json.dumps(Worker(owner, told).lives(how)) + "\n")


def fast(told):
    """Return a clock shared by all processes with the same plan: the monotonic clock belongs to the machine."""
    start = datetime.fromisoformat(told["start"])
    return lambda: start + told["speed"] * timedelta(seconds=time.monotonic() - told["began"])


class Worker:
    def __init__(self, owner, told):
        self.owner, self.told, self.chance = owner, told, random.Random(owner)
        self.did = dict.fromkeys(("success", "failed", "abandoned", "taken", "running", "contended"), 0)
        self.did |= dict.fromkeys(("late", "too_late", "rescued", "stolen"), 0)
        self.at, self.abandoned, self.look_at = [], [], 0.0

    def lives(self, how):
        {"claims": self.claims, "ticks": self.ticks}[how]()
        self.comes_back()
        return {"did": self.did, "at": self.at}

    def claims(self):
        first, step = datetime.fromisoformat(self.told["start"]), timedelta(minutes=1)
        left = {name: list(range(self.told["slots"])) for name in self.told["names"]}
        while any(left.values()):
            self.looks_after_others()
            name = self.chance.choice([name for name in left if left[name]])
            # All processes start at the same end of the list, so that they compete.
            n = left[name][0]
            if self.tries(name, first - n * step):
                left[name].pop(0)

    def tries(self, name, slot):
        """Return True if the slot needs no more work from this worker."""
        try:
            claim = job_runs.claim_slot(name, slot, self.owner)
        except Contended:
            self.did["contended"] += 1
            return False
        if claim is Refusal.JOB_RUNNING:
            self.did["running"] += 1
            time.sleep(0.001)
            return False
        if claim is Refusal.SLOT_TAKEN:
            self.did["taken"] += 1
        else:
            self.runs(claim)
        return True

    def ticks(self):
        scheduler, end = Scheduler(), datetime.fromisoformat(self.told["end"])
        while True:
            self.looks_after_others()
            if clock.now() < end:
                self.steals()
                scheduler.tick(self.owner)
            elif not DueSlot.objects.exists():
                return
            try:
                claim = handler.claim(self.owner)
            except Contended:
                self.did["contended"] += 1
                continue
            if claim is None:
                time.sleep(0.002)
            else:
                self.runs(claim)

    def steals(self):
        """Take the lease while its holder reads the schedules, as a broken clock or a person could cause it."""
        if self.chance.random() < 0.05:
            SchedulerLease.objects.update(expires_at=clock.now() - timedelta(seconds=1))
            self.did["stolen"] += lease.take(self.owner)

    def runs(self, claim):
        began = time.monotonic()
        what = self.chance.choices(["success", "failed", "abandoned"], [96, 3, 1])[0]
        if self.chance.random() < 0.05:
            time.sleep(0.002)
        self.at.append([claim.values["job_name"], began, time.monotonic(), claim.id])
        if what == "abandoned":
            self.abandoned.append(claim)
            self.did[what] += 1
            return
        done = job_runs.succeed(claim, 1) if what == "success" else job_runs.fail(claim, "no")
        self.did[what if done else "too_late"] += 1

    def looks_after_others(self):
        if time.monotonic() >= self.look_at:
            self.did["rescued"] += recovery.rescue_expired([work_type_named("job_run")], self.owner)
            self.look_at = time.monotonic() + 0.2

    def comes_back(self):
        while JobRun.objects.filter(status="running").exists():
            self.looks_after_others()
            time.sleep(0.05)
        for claim in self.abandoned:
            self.did["late"] += not job_runs.succeed(claim, 1)
