"""The checks of `manage.py doctor` on scheduled jobs: the scheduler, missed slots and the tables of django-q2."""

from datetime import timedelta

from django.apps import apps
from django.conf import settings

from config.findings import Finding, ok, warn
from schedules import firing, ledger
from schedules.jobs import all_jobs
from schedules.ledger import State
from schedules.models import ScheduledJob, SchedulerLease
from schedules.scheduler import FUNCTION
from work import clock
from work.models import Worker

# How far back to look for missed slots. `manage.py job ledger` also shows older ones.
LATELY = timedelta(days=1)
# The maximum number of slots per job: a job that runs every minute has this many a day.
MOST_SLOTS = 1440
# How late a schedule may be, because it is set to its next slot only a tick after the previous slot.
LATE = timedelta(seconds=60)
NOT_RUN = (State.MISSED, State.MISFIRED)


def schedules_are_watched() -> Finding:
    lease = SchedulerLease.objects.filter(expires_at__gt=clock.now()).first()
    if lease:
        return ok(f"{lease.owner} watches the schedules of {len(list(all_jobs()))} jobs")
    if not Worker.objects.alive().exists():
        return warn("no worker is alive to watch the schedules", "Start one with `manage.py worker`.")
    here = "" if settings.ADE_SCHEDULES else "; ADE_SCHEDULES is false here"
    return warn(
        f"workers are alive, but none watches the schedules{here}, so no job runs by itself",
        "Start at least one with ADE_SCHEDULES=true, unless this is intended. If one should watch them, look for"
        " `housekeeping.task_failed` in its log.",
    )


def slots_are_run() -> Finding:
    jobs = ScheduledJob.objects.filter(name__in=[job.name for job in all_jobs()], retired_at__isnull=True)
    missing: dict[ScheduledJob, int] = {}
    for row in jobs.order_by("name"):
        now = clock.now()
        counts = ledger.counts(ledger.of(row, since=now - LATELY, until=now, most=MOST_SLOTS))
        if number := sum(counts.get(state, 0) for state in NOT_RUN):
            missing[row] = number
    if not missing:
        return ok("no slot of the last day was missed")
    numbers = ", ".join(f"{number} of {row.name}" for row, number in missing.items())
    return warn(
        f"slots of the last day that have not run: {numbers}",
        "`manage.py job ledger NAME` shows the reasons. To run them after all:"
        " `manage.py job backfill NAME --from TIME --to TIME`.",
        tuple(("scheduled_job", row.pk) for row in missing),
    )


def schedules_are_ours() -> Finding:
    problems = []
    schedules = apps.get_model("django_q", "Schedule").objects.order_by("name", "id")
    jobs = {row.name: row for row in ScheduledJob.objects.filter(retired_at__isnull=True)}
    names = set()
    for schedule in schedules[:MOST_SLOTS]:
        name = f"schedule {schedule.pk} ({schedule.name})"
        row = jobs.get(schedule.name)
        if schedule.func != FUNCTION or schedule.args != repr((schedule.name,)):
            problems.append(f"{name} does not call a job of ADE")
        elif row is None or schedule.name in names:
            problems.append(f"{name} belongs to no job, or is a duplicate")
        elif schedule.cron != row.cron or schedule.next_run is None or _is_off(schedule.next_run, row):
            problems.append(f"{name} has different times from its job")
        names.add(schedule.name)
    problems += [f"{name} has no schedule" for name in sorted(jobs.keys() - names)]
    if number := apps.get_model("django_q", "OrmQ").objects.count():
        problems.append(f"{number} messages are in the queue of django-q2, which no program reads")
    if not problems:
        return ok("the schedules of django-q2 match the jobs, and its queue is empty")
    return warn(
        "; ".join(problems),
        "Only the schedules of ADE's jobs belong there, and a worker that watches them repairs those within a minute."
        " Find out where the others come from, and delete them: they never run.",
    )


def _is_off(next_run: object, row: ScheduledJob) -> bool:
    """Return whether the schedule would ring too late. Ringing too early is harmless, because no slot is due then."""
    following = firing.next_due(row)
    return bool(next_run != following and max(following, clock.now() - LATE) < next_run)  # type: ignore[operator]
