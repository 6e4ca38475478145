"""Decides whether the morning brief waits for the articles of the night.

If the machine was off, the slot is due at once, but ingestion and clustering run some minutes later. A brief that
didn't wait would miss the whole night, and readers would see it only in the next brief.
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

# Ingestion and clustering have several slots in this time, so one of them may be slow or fail.
TOLD_WITHIN = timedelta(hours=1)


def why_wait(turn: JobContext, until: datetime) -> str:
    """Return why to wait, or "" to publish now. A brief that was requested by hand never waits."""
    if not cron.is_slot(turn.job.cron, turn.job.time_zone, turn.scheduled_for) or not _another_follows(turn):
        return ""
    if not _somebody_asks() or _is_clustered(until):
        return ""
    return (
        "The articles that arrived before this slot are not clustered yet. A later slot of this morning publishes them."
    )


def _another_follows(turn: JobContext) -> bool:
    """Return whether another slot follows today. It is counted from now, because a past slot may be triggered by
    hand.
    """
    slot, zone = turn.scheduled_for, ZoneInfo(turn.job.time_zone)
    following = cron.next_slot(turn.job.cron, turn.job.time_zone, max(slot, clock.now()))
    return following.astimezone(zone).date() == slot.astimezone(zone).date()


def _somebody_asks() -> bool:
    """Return whether there are active feeds, and whether the jobs that fetch and cluster them are declared and not
    paused.
    """
    names = {INGESTION.name, EVENT_CLUSTERING.name}
    is_declared = names <= {job.name for job in all_jobs()}
    is_paused = ScheduledJob.objects.filter(name__in=names, paused_at__isnull=False).exists()
    return is_declared and not is_paused and FeedSource.objects.filter(paused_at__isnull=True).exists()


def _is_clustered(until: datetime) -> bool:
    """Return whether feeds were fetched shortly before the end of the window, and clustered afterwards within it."""
    ended = JobRun.objects.filter(status=JobRun.Status.SUCCESS, finished_at__lte=until)
    asked = ended.filter(job_name=INGESTION.name, finished_at__gte=until - TOLD_WITHIN).order_by("finished_at").first()
    return (
        asked is not None and ended.filter(job_name=EVENT_CLUSTERING.name, started_at__gte=asked.finished_at).exists()
    )
