"""Events and their articles as they exist when a brief is made."""

from datetime import UTC, datetime, timedelta

from feeds.briefs.job import DAILY_BRIEF
from feeds.briefs.publishing import publish
from feeds.models import Brief
from schedules import job_runs
from tests.factories import ArticleFactory, ClusterArticleFactory, ClusterFactory, FeedFactory, JobRunFactory, write
from tests.feeds.turns import turn_of

# Long ago: a brief covers the time before its slot, whenever it is made.
SLOT = datetime(2026, 5, 4, 6, tzinfo=UTC)


def event(title="Bridge closed", **columns):
    return ClusterFactory(title=title, first_at=SLOT, **columns)


def tell(cluster, feed=None, *, hours=5.0, similarity=0.9, linked=None, slot=SLOT, **article):
    """Add an article to this event, this many hours before the slot; linked at the same time, or `linked` hours before
    it.
    """
    at = slot - timedelta(hours=hours)
    times = {"seen_at": article.pop("seen_at", at), "happened_at": article.pop("happened_at", at)}
    made = ArticleFactory(feed=feed or FeedFactory(), **(times | article))
    linked_at = at if linked is None else slot - timedelta(hours=linked)
    ClusterArticleFactory(cluster=cluster, raw_article=made, similarity=similarity, linked_at=linked_at)
    write(cluster, article_count=cluster.article_count + 1)
    return made


def ran(job, at, *, status="success", minutes=1):
    """Create a slot of this job that ended this many minutes after it began."""
    ended = {"status": status, "finished_at": at + timedelta(minutes=minutes), "lease_expires_at": None}
    row = JobRunFactory(job_name=job.name, scheduled_for=at, created_at=at)
    return write(row, **ended, lease_owner=None)


def run(slot=SLOT):
    """Run the job in a slot of its own; return the number of rows that it has processed."""
    turn = turn_of(DAILY_BRIEF, slot)
    rows = publish(turn)
    assert job_runs.succeed(turn.claim, rows)
    return rows


def published(slot=SLOT):
    run(slot)
    return Brief.objects.get(scheduled_for=slot)


def headlines(brief):
    return list(brief.items.order_by("position").values_list("headline", flat=True))


def words_of(item):
    return {reason["name"]: reason["words"] for reason in item.reasons}
