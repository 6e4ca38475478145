"""Jobs that run every slot, however late."""

from datetime import timedelta

from schedules.jobs import Job


def _job(name):
    return Job(
        name=name,
        about="Is raced for.",
        cron="* * * * *",
        time_zone="UTC",
        function=lambda turn: 1,
        # Time runs fast in these tests: no slot may be given up as stale.
        max_runtime=timedelta(days=30),
        coalesce=False,
        misfire_grace=timedelta(days=30),
    )


one, two, three, four, five = (_job(name) for name in ("one", "two", "three", "four", "five"))
