"""Actor commands for the feeds part: fetch all feeds, as a slot of the job does."""

import re
import time
from pathlib import Path

from django.db import connection

from feeds import lifecycle, reading
from feeds.ingestion import INGESTION, ingest
from feeds.models import FeedSource, RawArticle
from schedules import job_runs
from schedules.jobs import JobContext
from work import clock
from work.claims import Claim

OWNER = "benchmark@here:1:boot"
EMPTY = b'<rss version="2.0"><channel><title>Empty</title></channel></rss>'


def prepare(urls: list[str]) -> None:
    for url in urls:
        lifecycle.add(url, actor=OWNER)
    # Start the reader process now, so that it is warm when the measurement starts.
    reading.read(EMPTY, "https://benchmark.example/", "")


def forget() -> None:
    """Reset all feeds as if they had never been fetched."""
    # Delete in SQL, because loaded rows would increase the measured memory.
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {RawArticle._meta.db_table}")  # noqa: S608  # the table's own name
    FeedSource.objects.update(etag="", last_modified="")


def ask() -> dict[str, float]:
    slot = clock.now()
    FeedSource.objects.update(next_check_at=slot)
    claim = job_runs.claim_slot(INGESTION.name, slot, OWNER)
    assert isinstance(claim, Claim), claim
    # No thread renews this claim, so let it be valid for an hour.
    claim.trust(time.monotonic() + 3600)
    began = time.perf_counter()
    new = ingest(JobContext(INGESTION, slot, claim))
    seconds = time.perf_counter() - began
    assert job_runs.succeed(claim, new)
    return {"seconds": seconds, "new": new, "megabytes": _peak_megabytes()}


def _peak_megabytes() -> float:
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(kilobytes) / 1024
