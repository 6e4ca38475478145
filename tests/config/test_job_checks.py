from datetime import UTC, datetime, timedelta

import pytest
from django_q.models import OrmQ, Schedule

from config import job_checks
from config.findings import Level
from schedules import firing, lease, scheduler
from schedules.models import ScheduledJob
from tests.factories import W1, JobRunFactory
from tests.schedules.declared import EACH, FREQUENT, frequent
from work import boots, clock

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
QUARTER = timedelta(minutes=15)

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def noon(settings, monkeypatch):
    """Declare two jobs at noon; return a function that sets the clock."""
    settings.JOBS, settings.ADE_SCHEDULES = [FREQUENT, EACH], True

    def at(moment):
        monkeypatch.setattr(clock, "now", lambda: moment)
        # The clock of this host, which django-q2 uses.
        monkeypatch.setattr("django.utils.timezone.now", lambda: moment)

    at(NOON)
    scheduler.sync(actor=W1)
    return at


def test_somebody_looks_at_the_schedules(noon):
    lease.take(W1)

    finding = job_checks.schedules_are_watched()

    assert (finding.level, finding.message) == (Level.OK, f"{W1} watches the schedules of 2 jobs")


def test_nobody_looks_for_no_worker_is_there(noon):
    finding = job_checks.schedules_are_watched()

    assert (finding.level, finding.message) == (Level.WARN, "no worker is alive to watch the schedules")


def test_nobody_looks_though_workers_are_there(noon, settings):
    lease.take(W1)
    boots.register("w1", "boot1", {"job_run": 1})
    noon(NOON + timedelta(seconds=settings.ADE_LEASE_SECONDS + 1))
    boots.register("w2", "boot2", {"job_run": 1})
    settings.ADE_SCHEDULES = False

    finding = job_checks.schedules_are_watched()

    said = "workers are alive, but none watches the schedules; ADE_SCHEDULES is false here, so no job runs by itself"
    assert (finding.level, finding.message) == (Level.WARN, said)


def test_all_slots_have_run_or_are_still_in_time(noon):
    noon(NOON + QUARTER)

    assert job_checks.slots_are_run().level is Level.OK


def test_slots_that_have_not_run_are_counted_for_each_job(noon):
    noon(NOON + 4 * QUARTER + timedelta(minutes=6))
    firing.fire(frequent, actor=W1)
    JobRunFactory(job_name="each", scheduled_for=NOON + QUARTER, status="success")
    noon(NOON + 4 * QUARTER + timedelta(hours=2))

    finding = job_checks.slots_are_run()

    said = "slots of the last day that have not run: 2 of each, 11 of frequent"
    assert (finding.level, finding.message) == (Level.WARN, said)
    assert finding.offenders == tuple(
        ("scheduled_job", ScheduledJob.objects.get(name=name).pk) for name in ("each", "frequent")
    )


def test_slots_of_the_day_before_yesterday_are_no_longer_told_of(noon, settings):
    settings.JOBS = [FREQUENT]
    noon(NOON + QUARTER + timedelta(minutes=6))
    row = ScheduledJob.objects.get(name="frequent")
    ScheduledJob.objects.filter(pk=row.pk).update(decided_until=NOON + timedelta(days=3))
    for n in range(1, 300):
        JobRunFactory(job_name="frequent", scheduled_for=NOON + n * QUARTER, status="success")
    noon(NOON + timedelta(days=2))
    assert job_checks.slots_are_run().level is Level.OK
    noon(NOON + timedelta(days=1) + QUARTER - timedelta(seconds=1))

    assert job_checks.slots_are_run().level is Level.OK


def test_the_schedules_of_django_q_are_those_of_the_jobs(noon):
    assert job_checks.schedules_are_ours().level is Level.OK


def test_a_schedule_may_wait_for_its_slot_to_be_decided(noon):
    noon(NOON + QUARTER)
    Schedule.objects.update(next_run=NOON + QUARTER)
    assert job_checks.schedules_are_ours().level is Level.OK
    ScheduledJob.objects.update(decided_until=NOON + QUARTER)

    assert job_checks.schedules_are_ours().level is Level.OK


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"func": "os.system"}, "does not call a job of ADE"),
        ({"args": "('each',)"}, "does not call a job of ADE"),
        ({"args": "broken("}, "does not call a job of ADE"),
        ({"name": "dishes", "args": "('dishes',)"}, "belongs to no job, or is a duplicate"),
        ({"cron": "0 0 1 1 *"}, "has different times from its job"),
        ({"next_run": None}, "has different times from its job"),
        ({"next_run": NOON + timedelta(days=900)}, "has different times from its job"),
    ],
)
def test_a_schedule_that_is_not_as_it_should_be_is_named(noon, columns, said):
    schedule = Schedule.objects.get(name="frequent")
    Schedule.objects.filter(pk=schedule.pk).update(**columns)

    finding = job_checks.schedules_are_ours()

    assert finding.level is Level.WARN
    assert f"schedule {schedule.pk} ({columns.get('name', 'frequent')}) {said}" in finding.message


def test_two_schedules_of_one_job(noon):
    first = Schedule.objects.get(name="frequent")
    Schedule.objects.create(name="frequent", func=first.func, args=first.args, cron=first.cron, next_run=first.next_run)

    assert "belongs to no job, or is a duplicate" in job_checks.schedules_are_ours().message


def test_a_job_without_a_schedule(noon):
    Schedule.objects.filter(name="frequent").delete()

    assert job_checks.schedules_are_ours().message == "frequent has no schedule"


def test_messages_in_the_queue_of_django_q(noon):
    OrmQ.objects.create(key="ade", payload="x", lock=NOON)

    assert job_checks.schedules_are_ours().message == "1 messages are in the queue of django-q2, which no program reads"


@pytest.mark.parametrize("check", ["schedules.watched", "schedules.slots", "schedules.table"])
def test_without_any_job_all_is_well(settings, check, db):
    settings.JOBS = []

    looks = {
        "schedules.watched": job_checks.schedules_are_watched,
        "schedules.slots": job_checks.slots_are_run,
        "schedules.table": job_checks.schedules_are_ours,
    }
    assert looks[check]().level is (Level.WARN if check == "schedules.watched" else Level.OK)
