"""Decides whether the morning brief waits for the articles of the night.

When a machine that was off overnight starts, the slot of the brief is due at once, but ingestion and clustering run
some minutes later. A brief that didn't wait would miss the articles of the whole night, and readers would see them only
in the next brief.
"""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from feeds.clustering.job import EVENT_CLUSTERING
from feeds.ingestion import INGESTION
from feeds.models import FeedSource
from schedules import cron
from schedules.jobs import JobContext, all_jobs
from schedules.models import JobRun, ScheduledJob
from work import clock

# Ingestion and clustering have several slots in this time, so one slot may be slow or fail.
FETCHED_WITHIN = timedelta(hours=1)


def why_wait(turn: JobContext, until: datetime) -> str:
    """Return why to wait, or "" to publish now. A brief that was requested by hand never waits."""
    slot, zone = turn.scheduled_for, ZoneInfo(turn.job.time_zone)
    if not cron.is_slot(turn.job.cron, turn.job.time_zone, slot):
        return ""
    # Look for the next slot from now on, because a past slot may be triggered by hand.
    following = cron.next_slot(turn.job.cron, turn.job.time_zone, max(slot, clock.now()))
    if following.astimezone(zone).date() != slot.astimezone(zone).date():
        return ""
    # Waiting makes sense only if the jobs that fetch and cluster are declared and not paused, and some feed is active.
    names = {INGESTION.name, EVENT_CLUSTERING.name}
    if (
        not names <= {job.name for job in all_jobs()}
        or ScheduledJob.objects.filter(name__in=names, paused_at__isnull=False).exists()
        or not FeedSource.objects.filter(paused_at__isnull=True).exists()
    ):
        return ""
    successes = JobRun.objects.filter(status=JobRun.Status.SUCCESS, finished_at__lte=until)
    fetches = successes.filter(job_name=INGESTION.name, finished_at__gte=until - FETCHED_WITHIN)
    fetch = fetches.order_by("finished_at").first()
    if fetch and successes.filter(job_name=EVENT_CLUSTERING.name, started_at__gte=fetch.finished_at).exists():
        return ""
    return (
        "The articles that arrived before this slot are not clustered yet. A later slot of this morning publishes them."
    )
