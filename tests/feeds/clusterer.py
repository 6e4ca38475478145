"""A process that clusters in an existing slot, as a worker that holds it, or that has lost it meanwhile."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import psutil

from feeds.clustering import writing
from feeds.clustering.job import EVENT_CLUSTERING
from schedules.jobs import JobContext
from schedules.models import JobRun
from tests.factories import claim_of
from work import failpoints

HOUR = 3600


class DiesOf:
    """Replaces a failpoint: kills the process when it is reached for the nth time."""

    def __init__(self, times):
        self.left = times

    def fire(self, name):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)


def main(job_run_id, at_once="", times="0"):
    writing.AT_ONCE = int(at_once or writing.AT_ONCE)
    failpoints._armed["clustering.linked"] = DiesOf(int(times))
    row = JobRun.objects.get(pk=job_run_id)
    claim = claim_of(row)
    claim.trust(claim.trusted_until + HOUR)
    before, began = psutil.Process().memory_info().rss, time.monotonic()
    rows = EVENT_CLUSTERING.function(JobContext(EVENT_CLUSTERING, row.scheduled_for, claim))
    seconds = time.monotonic() - began
    sys.stdout.write(json.dumps({"rows": rows, "seconds": seconds, "memory": _peak() - before}) + "\n")


def _peak():
    """Return the peak memory of this program alone: getrusage includes the process that it was forked from."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
