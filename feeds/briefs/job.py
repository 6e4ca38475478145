from datetime import timedelta

from django.conf import settings

from feeds.briefs.publishing import publish
from schedules.jobs import Job

DAILY_BRIEF = Job(
    name="daily_brief",
    about="Publishes the events since the previous brief, the most important first.",
    # The first slot publishes the brief of the day. If its worker dies or fails, or the articles of the night are not
    # clustered yet, a later slot publishes it; otherwise the later slots do nothing. The last slot doesn't wait.
    cron="0,30 6-11 * * *",
    time_zone=settings.ADE_BRIEF_TIME_ZONE,
    function=publish,
    max_runtime=timedelta(minutes=5),
    # One brief covers all missed slots, because its window reaches back to the previous brief.
    coalesce=True,
    # A late brief is better than none. By the evening it is out of date, and the next one covers its window.
    misfire_grace=timedelta(hours=12),
)
