"""Whether the brief of a morning is to wait for what feeds have told in the night.

When the machine was off, its slot is due at once; ingestion and clustering come some minutes later. A brief that did
not wait for them would have nothing of the night, and nobody would read of it before the next morning.
"""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from feeds.clustering.job import EVENT_CLUSTERING
from feeds.ingestion import INGESTION
from feeds.models import FeedSource
from runs.jobs import Turn, all_jobs, cron
from runs.models import JobRun, ScheduledJob
from work import clock

# Both have several turns in it, of which one may be long, or fail.
TOLD_WITHIN = timedelta(hours=1)


def why_wait(turn: Turn, until: datetime) -> str:
    """Empty: it is to be published now, as what somebody has asked for always is."""
    if not cron.is_slot(turn.job.cron, turn.job.time_zone, turn.scheduled_for) or not _another_follows(turn):
        return ""
    if not _somebody_asks() or _is_clustered(until):
        return ""
    return "what feeds have told until this slot is not clustered yet; a later slot of the morning publishes it"


def _another_follows(turn: Turn) -> bool:
    """On the same day, and from now on: a slot of the past may be run by hand."""
    slot, zone = turn.scheduled_for, ZoneInfo(turn.job.time_zone)
    following = cron.next_slot(turn.job.cron, turn.job.time_zone, max(slot, clock.now()))
    return following.astimezone(zone).date() == slot.astimezone(zone).date()


def _somebody_asks() -> bool:
    """Whether there are feeds, and jobs that bring what they tell."""
    names = {INGESTION.name, EVENT_CLUSTERING.name}
    is_declared = names <= {job.name for job in all_jobs()}
    is_paused = ScheduledJob.objects.filter(name__in=names, paused_at__isnull=False).exists()
    return is_declared and not is_paused and FeedSource.objects.filter(paused_at__isnull=True).exists()


def _is_clustered(until: datetime) -> bool:
    """Whether feeds were asked shortly before the end of its window, and all of their answers were clustered in it."""
    ended = JobRun.objects.filter(status=JobRun.Status.SUCCESS, finished_at__lte=until)
    asked = ended.filter(job_name=INGESTION.name, finished_at__gte=until - TOLD_WITHIN).order_by("finished_at").first()
    return (
        asked is not None and ended.filter(job_name=EVENT_CLUSTERING.name, started_at__gte=asked.finished_at).exists()
    )
