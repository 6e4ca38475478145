"""The scheduled job that embeds new articles and clusters those about the same event."""

from datetime import datetime, timedelta
from typing import NamedTuple

import structlog
from django.db.models import Count

from documents import embedding
from feeds.clustering import plan, vectors, window, writing
from feeds.clustering.window import WINDOW
from feeds.clustering.writing import Conflict
from feeds.models import ClusterArticle, RawArticle
from schedules.jobs import Job, JobContext, JobFailed
from schedules.models import JobRun
from work import clock

# Attempts if another worker clusters at the same time. That worker finishes at some point, or loses its claim.
TRIES = 3

log = structlog.get_logger(__name__)


class Result(NamedTuple):
    # Articles that were added to a cluster or moved to another.
    rows: int
    # Articles that the window had no room for.
    left_out: int


def cluster(turn: JobContext) -> int:
    """Embed and cluster the articles of the window. Return how many articles were added to a cluster or moved."""
    border = clock.now() - WINDOW
    problem = vectors.embed_new(turn, border)
    # If embedding fails, the articles that have vectors are clustered anyway.
    result = _cluster(turn, border) if _is_due(turn, border) else Result(0, 0)
    if problem:
        waiting = vectors.not_embedded(embedding.model(), border).count()
        raise JobFailed(
            f"Articles that wait for vectors of {embedding.model()}: {waiting}. The next slot tries again."
            f" The cause: {problem}"
        )
    if result.left_out:
        of_feeds = RawArticle.objects.filter(happened_at__gte=border).values_list("feed").annotate(number=Count("pk"))
        feed, number = of_feeds.order_by("-number", "feed")[:1].get()
        hours = WINDOW // timedelta(hours=1)
        raise JobFailed(
            f"The last {hours} hours have {result.left_out} articles more than the limit of {window.MOST_ARTICLES}. The"
            f" latest articles of each feed are clustered, and the others wait. Feed {feed} has the most, {number};"
            " pause it if it sends too many."
        )
    return result.rows


EVENT_CLUSTERING = Job(
    name="event_clustering",
    about="Groups articles about the same event into clusters.",
    # Some minutes after ingestion.
    cron="5-59/15 * * * *",
    time_zone="UTC",
    function=cluster,
    max_runtime=timedelta(minutes=10),
    coalesce=True,
    misfire_grace=timedelta(seconds=300),
)


def _is_due(turn: JobContext, border: datetime) -> bool:
    """Return whether there are new articles, or whether the last run may not have finished."""
    model = embedding.model()
    embedded = RawArticle.objects.filter(happened_at__gte=border, embedding_model=model)
    before = JobRun.objects.filter(job_name=turn.job.name).exclude(pk=turn.claim.id).order_by("-pk").first()
    return (
        embedded.filter(links=None).exists()
        or before is None
        or before.status != JobRun.Status.SUCCESS
        or bool(_stale(model, border))
    )


def _stale(model: str, border: datetime) -> set[int]:
    """Return the clusters whose centroid comes from a different model than the vectors of their articles."""
    of_window = ClusterArticle.objects.filter(
        raw_article__happened_at__gte=border, raw_article__embedding_model=model, raw_article__embedding__isnull=False
    )
    return set(of_window.exclude(cluster__embedding_model=model).values_list("cluster", flat=True))


def _cluster(turn: JobContext, border: datetime) -> Result:
    rows, model = 0, embedding.model()
    for _ in range(TRIES):
        content = window.read(model, border, turn.go_on)
        groups = plan.groups_of(content, turn.go_on)
        changes = plan.changes(groups, _stale(model, border))
        try:
            new_rows = writing.write(changes, turn.go_on)
        except Conflict as conflict:
            rows += conflict.written
            log.info("clustering.overtaken", error=str(conflict))
            last = conflict
            continue
        counts = {"articles": len(content.articles), "groups": len(groups), "changed": len(changes), "rows": new_rows}
        log.info("clustering.done", **counts)
        if content.left_out:
            log.warning("clustering.left_out", articles=content.left_out, most=window.MOST_ARTICLES)
        return Result(rows + new_rows, content.left_out)
    message = f"Other transactions changed the same clusters {TRIES} times in a row. The next slot tries again."
    raise JobFailed(f"{message} The last conflict: {last}") from last
