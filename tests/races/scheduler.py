"""A bare worker for jobs beside others, in a process or a thread of its own. It lives in the time of its test, which
runs fast and is the same for all: `claims` goes by a list of slots, `ticks` does what a worker does, from the schedules
on.

Some claims it abandons, as if it had died with them, and comes back to them when they are not its own any more. What it
was at and when is told in the end, by a clock that all processes share.
"""

import json
import random
import sys
import time
from datetime import datetime, timedelta

from django.conf import settings

from runs import job_runs
from runs.job_runs import Refusal
from runs.jobs import lane, lease
from runs.jobs.schedules import Scheduler
from runs.models import DueSlot, JobRun, SchedulerLease
from work import clock, recovery
from work.contention import Contended
from work.kinds import kind_named


def main(how, owner, plan):
    told = json.loads(plan)
    clock.now = fast(told)
    settings.JOBS, settings.ADE_SCHEDULES, settings.ADE_LEASE_SECONDS = told["jobs"], True, told["lease"]
    sys.stdout.write(json.dumps(Worker(owner, told).lives(how)) + "\n")


def fast(told):
    """A clock for all who are told the same, in whatever process: the monotonic clock is that of the machine."""
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
            # Those of all processes begin at the same ends, so that they meet.
            n = left[name][0]
            if self.tries(name, first - n * step):
                left[name].pop(0)

    def tries(self, name, slot):
        """True when there is no more to be done for this slot."""
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
                claim = lane.claim(self.owner)
            except Contended:
                self.did["contended"] += 1
                continue
            if claim is None:
                time.sleep(0.002)
            else:
                self.runs(claim)

    def steals(self):
        """What a broken clock or a person could do: the lease is another's while its holder looks at the schedules."""
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
            self.did["rescued"] += recovery.rescue_expired([kind_named("job_run")], self.owner)
            self.look_at = time.monotonic() + 0.2

    def comes_back(self):
        while JobRun.objects.filter(status="running").exists():
            self.looks_after_others()
            time.sleep(0.05)
        for claim in self.abandoned:
            self.did["late"] += not job_runs.succeed(claim, 1)
