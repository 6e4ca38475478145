"""A process that runs slots of the job, each time with all feeds due. It prints how many articles were new, the total
seconds, the seconds until the last feed had answered, and the peak memory.
"""

import json
import re
import sys
import time
from pathlib import Path

from feeds import reading
from feeds.ingestion import INGESTION, ingest
from feeds.models import FeedSource
from schedules import job_runs
from schedules.jobs import JobContext
from tests.feeds.samples import rss
from work import clock


def main(slots):
    # Start the reader's fork server first, as in a worker that has been running for a while.
    reading.read(rss(), "https://aster.example/", "")
    for _ in range(int(slots)):
        say(**ask())


def ask():
    slot = clock.now()
    FeedSource.objects.update(next_check_at=slot)
    claim = job_runs.claim_slot(INGESTION.name, slot, "w1@here:1:boot")
    # No thread renews this claim.
    claim.trust(time.monotonic() + 3600)
    began = time.monotonic()
    rows = ingest(JobContext(INGESTION, slot, claim))
    seconds = time.monotonic() - began
    assert job_runs.succeed(claim, rows)
    return {"rows": rows, "seconds": round(seconds, 2), "megabytes": round(peak_megabytes())}


def peak_megabytes():
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(kilobytes) / 1024


def say(**values):
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()
