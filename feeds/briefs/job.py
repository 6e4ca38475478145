from datetime import timedelta

from django.conf import settings

from feeds.briefs.publishing import publish
from runs.jobs import Job

DAILY_BRIEF = Job(
    name="daily_brief",
    about="Publishes what has happened since the brief before, the most important first.",
    # The first slot publishes the brief of the day. If its worker dies, or cannot, or the night is not clustered yet,
    # the next one does; else it has nothing to do. The last one waits for nothing.
    cron="0,30 6-11 * * *",
    time_zone=settings.ADE_BRIEF_TIME_ZONE,
    function=publish,
    max_runtime=timedelta(minutes=5),
    # One page tells it all: what happened in the days before is in its time too.
    coalesce=True,
    # A late brief is better than none; but in the evening nobody reads that of the morning, and the next one tells it.
    misfire_grace=timedelta(hours=12),
)
