"""The job that fetches all due feeds. It fetches several at once, and stores each feed as soon as it has been read.

A failing feed records its own error and backs off. The job itself fails only if the feeds are probably not the cause:
none of the feeds that it fetched answered, and they were at least half of all active feeds.
"""

from collections import Counter
from collections.abc import Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from datetime import timedelta
from itertools import islice

import structlog

from feeds import check_times
from feeds.checking import FetchResult, store_result, try_fetch
from feeds.models import FeedSource
from schedules.jobs import Job, JobContext, JobFailed
from work.claims import Interrupted

# Feeds to fetch at once. Fetching is mostly waiting, but each fetch may hold the bytes of a feed in memory, or its
# parsed content.
AT_ONCE = 8
LOOK_SECONDS = 0.5

log = structlog.get_logger(__name__)


def ingest(turn: JobContext) -> int:
    """Fetch and store all due feeds. Return the number of new articles."""
    since = check_times.since(turn.scheduled_for)
    numbers: Counter[str] = Counter()
    with closing(_results(list(FeedSource.objects.due()), turn)) as results:
        for feed, result in results:
            turn.go_on()
            checked = store_result(feed, result, actor=turn.owner, since=since)
            numbers.update(feeds=1, failed=bool(checked.failure), unchanged=checked.unchanged)
            numbers.update(new=checked.new, refused=checked.refused)
    log.info("ingestion.asked", job_run=turn.claim.id, **numbers)
    feeds, active = numbers["feeds"], FeedSource.objects.filter(paused_at__isnull=True)
    if feeds and numbers["failed"] == feeds and 2 * feeds >= active.count():
        raise JobFailed(
            f"None of the feeds that were due answered ({feeds} failed). Look at their errors, and check whether this"
            " machine can reach the internet."
        )
    return numbers["new"]


def _results(
    feeds: list[FeedSource], turn: JobContext
) -> Generator[tuple[FeedSource, FetchResult | Exception], None, None]:
    """Yield results as they arrive. At most AT_ONCE fetches are under way at any time, because results are held in
    memory until they are stored.
    """
    rest = iter(feeds)
    under_way: dict[Future[FetchResult | Exception], FeedSource] = {}
    with ThreadPoolExecutor(AT_ONCE, "feeds") as threads:
        while True:
            for feed in islice(rest, AT_ONCE - len(under_way)):
                under_way[threads.submit(try_fetch, feed, turn.why_stop)] = feed
            if not under_way:
                return
            turn.go_on()
            for fetch in wait(under_way, LOOK_SECONDS, FIRST_COMPLETED).done:
                yield under_way.pop(fetch), _result_of(fetch, turn)


def _result_of(fetch: Future[FetchResult | Exception], turn: JobContext) -> FetchResult | Exception:
    try:
        return fetch.result()
    except Interrupted as interrupted:
        turn.ended(interrupted.reason)
        raise


INGESTION = Job(
    name="rss_ingestion",
    about="Checks all feeds that are due, and stores their new articles.",
    cron="*/15 * * * *",
    time_zone="UTC",
    function=ingest,
    max_runtime=timedelta(minutes=10),
    coalesce=True,
    misfire_grace=timedelta(seconds=300),
)
