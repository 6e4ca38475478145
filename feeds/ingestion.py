"""The job that fetches all due feeds. Several are fetched at once, and each is stored as soon as it has been read.

A failing feed records its own error and backs off. The job itself fails only if the cause is probably not the feeds:
none of those it asked answered, and they were at least half of all active feeds.
"""

from collections import Counter
from collections.abc import Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from datetime import timedelta
from itertools import islice

import structlog

from feeds import rhythm
from feeds.checking import Brought, Checked, settle, tried
from feeds.models import FeedSource
from schedules.jobs import Job, JobContext, JobFailed
from work.claims import Interrupted

# Fetching is mostly waiting. Each fetch may hold the bytes of a feed in memory, or its parsed content.
AT_ONCE = 8
LOOK_SECONDS = 0.5

log = structlog.get_logger(__name__)

Asked = tuple[FeedSource, "Brought | Exception"]


def ingest(turn: JobContext) -> int:
    """Fetch and store all due feeds. Return the number of new articles."""
    since = rhythm.since(turn.scheduled_for)
    counted: Counter[str] = Counter()
    with closing(_asked(list(FeedSource.objects.due()), turn)) as asked:
        for feed, brought in asked:
            turn.go_on()
            counted.update(_counts(settle(feed, brought, actor=turn.owner, since=since)))
    log.info("ingestion.asked", job_run=turn.claim.id, **counted)
    _expect_some_to_answer(counted)
    return counted["new"]


def _asked(feeds: list[FeedSource], turn: JobContext) -> Generator[Asked, None, None]:
    """Yield results as they arrive. At most AT_ONCE fetches are under way, because results that are not stored yet
    are held in memory.
    """
    rest = iter(feeds)
    under_way: dict[Future[Brought | Exception], FeedSource] = {}
    with ThreadPoolExecutor(AT_ONCE, "feeds") as threads:
        while True:
            for feed in islice(rest, AT_ONCE - len(under_way)):
                under_way[threads.submit(tried, feed, turn.why_stop)] = feed
            if not under_way:
                return
            turn.go_on()
            for done in wait(under_way, LOOK_SECONDS, FIRST_COMPLETED).done:
                yield under_way.pop(done), _result(done, turn)


def _result(done: Future[Brought | Exception], turn: JobContext) -> Brought | Exception:
    try:
        return done.result()
    except Interrupted as interrupted:
        turn.ended(interrupted.reason)
        raise


def _counts(checked: Checked) -> dict[str, int]:
    return {
        "feeds": 1,
        "failed": bool(checked.failure),
        "unchanged": checked.unchanged,
        "new": checked.new,
        "refused": checked.refused,
    }


def _expect_some_to_answer(counted: Counter[str]) -> None:
    asked, failed = counted["feeds"], counted["failed"]
    if asked and failed == asked and 2 * asked >= FeedSource.objects.filter(paused_at__isnull=True).count():
        raise JobFailed(
            f"None of the feeds that were due answered ({asked} failed). Look at their errors, and check whether this"
            " machine can reach the internet."
        )


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
