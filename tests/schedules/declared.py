"""Jobs for tests: `settings.JOBS = [FREQUENT, …]` declares them."""

from datetime import timedelta

from schedules.jobs import Job, JobFailed

DONE: list[tuple[str, object]] = []


def note(turn):
    turn.go_on()
    DONE.append((turn.job.name, turn.scheduled_for))
    return 7


def mark(*args):
    """The target of a foreign schedule, not of a job."""
    DONE.append(args)


def fail(turn):
    raise JobFailed("expected a feed to answer, found none that did")


def break_down(turn):
    raise ZeroDivisionError("division by zero")


def _job(name, function, **values):
    usual = {
        "about": "Takes notes.",
        "cron": "*/15 * * * *",
        "time_zone": "UTC",
        "max_runtime": timedelta(minutes=5),
        "coalesce": True,
        "misfire_grace": timedelta(minutes=5),
    }
    return Job(name=name, function=function, **usual | values)


frequent = _job("frequent", note)
patient = _job("patient", note, misfire_grace=timedelta(hours=2))
each = _job("each", note, coalesce=False, misfire_grace=timedelta(hours=2))
morning = _job("morning", note, cron="30 2 * * *", time_zone="Europe/Berlin", misfire_grace=timedelta(hours=6))
yearly = _job("yearly", note, cron="0 0 1 1 *", misfire_grace=timedelta(hours=6))
failing = _job("failing", fail)
broken = _job("broken", break_down)

FREQUENT, PATIENT, EACH, MORNING, YEARLY, FAILING, BROKEN = (
    f"tests.schedules.declared.{name}"
    for name in ("frequent", "patient", "each", "morning", "yearly", "failing", "broken")
)
