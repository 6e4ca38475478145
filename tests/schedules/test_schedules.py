"""django-q2 in its role here, and each of its habits that could affect ADE: dependencies.md, section 4."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings as configured
from django.contrib import admin
from django.db import connection
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import OrmQ, Schedule, Task
from structlog.testing import capture_logs

from schedules import firing, history, requests, scheduler
from schedules.jobs import job_named
from schedules.models import DueSlot, JobRun, ScheduledJob
from schedules.scheduler import FUNCTION, Scheduler
from tests.factories import W1, W2, JobRunFactory, told
from tests.schedules import declared
from tests.schedules.declared import EACH, FREQUENT, MORNING, PATIENT
from work import clock
from work.sql.contention import be_impatient

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
QUARTER = 15 * MINUTE

# django-q2 closes connections, which would discard the open transaction of a test.
pytestmark = pytest.mark.django_db(transaction=True)


def due():
    return sorted(DueSlot.objects.values_list("job_name", "scheduled_for"))


def test_schedules_are_as_the_code_declares_them(jobs, at):
    at(NOON)

    jobs(FREQUENT, MORNING)

    found = Schedule.objects.order_by("name").values_list("name", "func", "args", "schedule_type", "cron", "repeats")
    assert list(found) == [
        ("frequent", FUNCTION, "('frequent',)", Schedule.CRON, "*/15 * * * *", -1),
        ("morning", FUNCTION, "('morning',)", Schedule.CRON, "30 2 * * *", -1),
    ]
    assert Schedule.objects.get(name="frequent").next_run == NOON + QUARTER
    assert Schedule.objects.get(name="morning").next_run == datetime(2026, 3, 2, 1, 30, tzinfo=UTC)


def test_a_second_sync_changes_nothing(jobs, at):
    at(NOON)
    jobs(FREQUENT)
    before = list(Schedule.objects.values()), list(ScheduledJob.objects.values())

    scheduler.sync(actor=W2)

    assert (list(Schedule.objects.values()), list(ScheduledJob.objects.values())) == before


def test_a_job_with_other_times_has_no_slots_before_the_change(jobs, at, settings, monkeypatch):
    at(NOON)
    jobs(FREQUENT)
    ScheduledJob.objects.update(cron="0 * * * *")
    at(NOON + QUARTER + MINUTE)

    scheduler.sync(actor=W1)

    row = ScheduledJob.objects.get()
    assert (row.cron, row.decided_until) == ("*/15 * * * *", NOON + QUARTER + MINUTE)
    assert told(row) == ["JOB_DECLARED", "JOB_REDECLARED"]
    assert scheduler.fire_due(W1) == 0


def test_a_job_that_is_gone_from_the_code_has_no_schedule(jobs, at):
    at(NOON)
    jobs(FREQUENT, EACH)

    jobs(FREQUENT)

    assert [s.name for s in Schedule.objects.all()] == ["frequent"]
    assert told(ScheduledJob.objects.get(name="each")) == ["JOB_DECLARED", "JOB_RETIRED"]
    at(NOON + QUARTER)
    scheduler.fire_due(W1)
    assert due() == [("frequent", NOON + QUARTER)]


def test_a_job_that_comes_back_begins_anew(jobs, at):
    at(NOON)
    jobs(EACH)
    jobs()
    at(NOON + 5 * QUARTER)

    jobs(EACH)

    assert told(ScheduledJob.objects.get()) == ["JOB_DECLARED", "JOB_RETIRED", "JOB_REDECLARED"]
    assert scheduler.fire_due(W1) == 0


def test_a_tick_fires_what_is_due_and_puts_its_schedule_to_the_next_slot(jobs, at):
    at(NOON)
    jobs(FREQUENT)
    at(NOON + QUARTER + timedelta(seconds=1))

    assert Scheduler().tick(W1) == 1

    assert due() == [("frequent", NOON + QUARTER)]
    assert Schedule.objects.get().next_run == NOON + 2 * QUARTER


def test_a_tick_with_nothing_due_does_not_ask_django_q(jobs, at, monkeypatch):
    at(NOON)
    jobs(FREQUENT)
    monkeypatch.setattr(scheduler, "SCHEDULER", "nowhere.to.be.found")

    assert Scheduler().tick(W1) == 0


def test_of_two_workers_one_ticks(jobs, at):
    at(NOON)
    jobs(FREQUENT)
    first, second = Scheduler(), Scheduler()
    at(NOON + QUARTER - timedelta(seconds=10))
    first.tick(W1)
    at(NOON + QUARTER)

    assert (second.tick(W2), first.tick(W1)) == (0, 1)


def test_switched_off_nobody_ticks(jobs, at, settings):
    at(NOON)
    jobs(FREQUENT)
    at(NOON + QUARTER)
    settings.ADE_SCHEDULES = False

    assert Scheduler().tick(W1) == 0

    assert due() == []


def test_a_stale_slot_is_given_up_in_every_tick(jobs, at):
    at(NOON)
    jobs(FREQUENT)
    stale = JobRunFactory(job_name="frequent", scheduled_for=NOON)
    ticking = Scheduler()
    at(NOON + 10 * MINUTE + timedelta(seconds=1))

    ticking.tick(W1)

    assert JobRun.objects.get(pk=stale.pk).status == "skipped_timeout"


def test_the_trouble_of_one_job_does_not_cost_the_others(jobs, at, monkeypatch):
    at(NOON)
    jobs(EACH, FREQUENT)
    at(NOON + QUARTER)
    whole = firing.fire

    def fire(job, **options):
        if job.name == "each":
            raise ZeroDivisionError
        return whole(job, **options)

    monkeypatch.setattr(firing, "fire", fire)

    assert scheduler.fire_due(W1) == 1

    assert due() == [("frequent", NOON + QUARTER)]


# Habits of django-q2


def test_it_is_switched_off_in_every_process():
    """Web processes and clusters never run its scheduler."""
    assert Conf.SCHEDULER is False
    assert configured.Q_CLUSTER["scheduler"] is False


def test_nothing_is_put_into_a_queue(jobs, at):
    """A stored task could call any function, so a cluster must find none."""
    at(NOON)
    jobs(FREQUENT)
    at(NOON + QUARTER)

    scheduler.fire_due(W1)

    assert not OrmQ.objects.exists()
    assert not Task.objects.exists()


def test_of_missed_slots_it_names_the_oldest_and_we_keep_the_latest(jobs, at):
    at(NOON)
    jobs(PATIENT)
    at(NOON + 5 * QUARTER)

    scheduler.fire_due(W1)

    assert due() == [("patient", NOON + 5 * QUARTER)]


def test_it_merges_missed_slots_of_a_job_that_does_not(jobs, at):
    at(NOON)
    jobs(EACH)
    at(NOON + 3 * QUARTER)

    scheduler.fire_due(W1)

    assert len(due()) == 3


def test_an_overrunning_job_is_not_started_again(jobs, at):
    """django-q2 does not limit how many runs of a schedule overlap."""
    at(NOON)
    jobs(PATIENT)
    at(NOON + QUARTER - MINUTE)
    JobRunFactory(job_name="patient", scheduled_for=NOON)
    for n in (1, 2):
        at(NOON + QUARTER + n * MINUTE)
        scheduler.fire_due(W1)

    assert JobRun.objects.filter(status="running").count() == 1
    assert len(due()) == 1


@pytest.mark.parametrize("args", ["(", "__import__('os')", "('frequent', 'twice')", "('nobody',)", ""])
def test_a_schedule_that_it_cannot_read_holds_up_nobody(jobs, at, args):
    """django-q2 fails for all schedules of the same form after one such row."""
    at(NOON)
    jobs(FREQUENT)
    Schedule.objects.create(name="a", func="os.abort", args=args, schedule_type="O", next_run=NOON - MINUTE)
    Schedule.objects.create(name="z", func=FUNCTION, args=args, schedule_type="I", minutes=1, next_run=NOON)
    at(NOON + QUARTER)

    for _ in range(3):
        scheduler.fire_due(W1)

    assert due() == [("frequent", NOON + QUARTER)]


STRANGE = {
    "called here and at once": {"kwargs": "q_options={'sync': True}", "schedule_type": "O"},
    "called here, in our name": {"name": "frequent", "kwargs": "{'q_options': {'sync': True}}", "schedule_type": "O"},
    "every minute since long ago": {"schedule_type": "I", "minutes": 1, "next_run": datetime(1990, 1, 1, tzinfo=UTC)},
    "our function, at other times": {"func": FUNCTION, "schedule_type": "C", "cron": "1 * * * *"},
    "our function, counted": {"func": FUNCTION, "schedule_type": "O", "repeats": 3},
}


@pytest.mark.parametrize("strange", STRANGE.values(), ids=STRANGE)
def test_a_schedule_of_somebody_else_is_never_run_and_holds_up_nobody(jobs, at, strange):
    """django-q2 would call the named function in the worker's process, or iterate over all missed minutes."""
    at(NOON)
    jobs(FREQUENT)
    usual = {"name": "strange", "func": "tests.schedules.declared.mark", "next_run": NOON}
    row = Schedule.objects.create(**usual | strange)
    # A new schedule with a cron expression computes its next run itself.
    Schedule.objects.filter(pk=row.pk).update(next_run=usual["next_run"] if row.cron else row.next_run)
    at(NOON + QUARTER)

    scheduler.fire_due(W1)

    assert declared.DONE == []
    assert due() == [("frequent", NOON + QUARTER)]
    row.refresh_from_db()
    assert row.repeats == 0


def test_our_own_schedule_rings_beside_that_of_somebody_else(jobs, at):
    at(NOON)
    jobs(FREQUENT, EACH)
    Schedule.objects.create(name="strange", func="os.abort", next_run=NOON)
    at(NOON + QUARTER + MINUTE)

    with capture_logs() as lines:
        scheduler.fire_due(W1)

    assert lines == []
    assert list(Schedule.objects.filter(name__in=["frequent", "each"]).values_list("repeats", flat=True)) == [-1, -1]


def test_our_own_schedule_is_mended_when_somebody_has_written_to_it(jobs, at):
    at(NOON)
    jobs(FREQUENT)
    Schedule.objects.update(func="os.abort", args="(", cron="* * * * *", repeats=0, cluster="other", kwargs="x=")

    scheduler.sync(actor=W1)

    found = Schedule.objects.get()
    assert (found.func, found.args, found.cron, found.repeats, found.cluster, found.kwargs) == (
        *(FUNCTION, "('frequent',)", "*/15 * * * *", -1, None, None),
    )


def test_a_schedule_that_is_deleted_paused_or_late_costs_no_slot(jobs, at):
    """Due slots are decided by our clock even if django-q2 triggers nothing."""
    at(NOON)
    jobs(EACH, FREQUENT, PATIENT)
    Schedule.objects.filter(name="each").delete()
    Schedule.objects.filter(name="frequent").update(repeats=0)
    Schedule.objects.filter(name="patient").update(next_run=NOON + timedelta(days=9))
    at(NOON + QUARTER)

    scheduler.fire_due(W1)

    assert [name for name, _ in due()] == ["each", "frequent", "patient"]


def test_two_schedules_of_one_name_become_one(jobs, at):
    """django-q2 allows several schedules with the same name."""
    at(NOON)
    jobs(FREQUENT)
    first = Schedule.objects.get()
    Schedule.objects.create(name="frequent", func=FUNCTION, args="('frequent',)", next_run=NOON)

    scheduler.sync(actor=W1)

    assert Schedule.objects.get() == first


@pytest.mark.parametrize("minutes", [-10, 10])
def test_the_clock_of_this_host_does_not_count(jobs, at, monkeypatch, minutes):
    """E1: django-q2 reads the clock of the host, but slots are due by the clock of the database."""
    at(NOON)
    jobs(FREQUENT)

    for moment, expected in ((NOON + QUARTER - MINUTE, 0), (NOON + QUARTER, 1), (NOON + QUARTER + MINUTE, 0)):
        at(moment)
        monkeypatch.setattr(timezone, "now", lambda moment=moment: moment + minutes * MINUTE)
        assert scheduler.fire_due(W1) == expected

    assert due() == [("frequent", NOON + QUARTER)]


def test_it_reckons_in_utc_and_our_zones_are_our_own(jobs, at):
    """A slot at 02:30 in Berlin is at 01:30 UTC, and the next calculation of django-q2 does not move it."""
    at(NOON)
    jobs(MORNING)
    at(NOON + timedelta(hours=13, minutes=30))

    scheduler.fire_due(W1)

    assert due() == [("morning", datetime(2026, 3, 2, 1, 30, tzinfo=UTC))]
    assert Schedule.objects.get().next_run == datetime(2026, 3, 3, 1, 30, tzinfo=UTC)


@pytest.mark.only_on("postgresql")
def test_the_connection_that_it_has_closed_is_as_impatient_again(jobs, at):
    at(NOON)
    jobs(FREQUENT)
    at(NOON + QUARTER)

    scheduler.fire_due(W1)

    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("1s",)


def test_many_at_once_hand_over_each_slot_once(jobs, at, threads):
    at(NOON)
    jobs(FREQUENT, EACH, PATIENT)
    at(NOON + QUARTER)

    threads.together([lambda n=n: scheduler.fire_due(f"w{n}") for n in range(4)])

    assert [name for name, _ in due()] == ["each", "frequent", "patient"]


def test_many_who_sync_at_once_leave_one_schedule_each(threads, settings):
    settings.JOBS = [FREQUENT, EACH]

    threads.together([lambda n=n: scheduler.sync(actor=f"w{n}") for n in range(4)])
    scheduler.sync(actor=W1)

    assert sorted(Schedule.objects.values_list("name", flat=True)) == ["each", "frequent"]
    assert sorted(ScheduledJob.objects.values_list("name", flat=True)) == ["each", "frequent"]


def test_its_name_in_the_environment_stops_no_command():
    """Without a cluster of that name in the settings, every command would raise a KeyError."""
    done = run("from django_q.conf import Conf; print(Conf.CLUSTER_NAME)", Q_CLUSTER_NAME="elsewhere")

    assert (done.returncode, done.stdout) == (0, "ade\n")


def test_its_admin_pages_are_hidden():
    assert not [model for model in admin.site._registry if model._meta.app_label == "django_q"]


def test_its_log_goes_where_ours_goes():
    """django-q2 would install its own handler, and its lines would bypass our log format."""
    done = run("import logging; log = logging.getLogger('django-q'); print(log.handlers, log.propagate)")

    assert done.stdout == "[] True\n"


def test_the_web_does_not_even_load_its_scheduler():
    """Seed 001, 2: the web process never runs the scheduler."""
    done = run(
        "import sys; from django.core.asgi import get_asgi_application; get_asgi_application();"
        "import config.urls; from work.work_types import all_work_types; list(all_work_types());"
        "print([name for name in sys.modules if name in ('django_q.scheduler', 'django_q.cluster', 'work.worker')])"
    )

    assert done.stdout == "[]\n", done.stderr


def run(code, **environment):
    setup = "import django; django.setup(); "
    return subprocess.run(
        [sys.executable, "-c", setup + code],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", **environment},
        cwd=configured.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_decision_stays_when_the_process_dies_before_it_rings_for_workers(jobs, at):
    """The slot is a row by then, so the next worker finds it waiting."""
    at(NOON)
    jobs(FREQUENT)
    at(NOON + QUARTER)
    scheduler.fire_due(W1)

    assert history.decide(ScheduledJob.objects.get(), clock.now())
    assert scheduler.fire_due(W2) == 0
    assert due() == [("frequent", NOON + QUARTER)]


# Findings of a review


def test_a_clock_that_was_set_ahead_for_a_while_stops_no_job(jobs, at):
    at(NOON)
    jobs(FREQUENT)
    at(NOON + timedelta(days=30))
    scheduler.fire_due(W1)
    DueSlot.objects.all().delete()
    at(NOON + MINUTE)

    scheduler.sync(actor=W1)

    row = ScheduledJob.objects.get()
    assert row.decided_until == NOON + MINUTE
    assert told(row)[-1] == "JOB_SET_BACK"
    at(NOON + QUARTER)
    scheduler.fire_due(W1)
    assert due() == [("frequent", NOON + QUARTER)]


def test_while_a_clock_has_just_been_set_nothing_is_decided(jobs, at, monkeypatch):
    at(NOON)
    jobs(FREQUENT)
    at(NOON + QUARTER)
    monkeypatch.setattr(clock, "jumped_within", lambda seconds: True)

    assert Scheduler().tick(W1) == 0

    assert due() == []


def test_what_is_due_by_the_old_times_of_a_job_is_handed_over_before_the_new_ones_hold(jobs, at):
    at(NOON)
    jobs(PATIENT)
    ScheduledJob.objects.update(cron="10 * * * *")
    at(NOON + 20 * MINUTE)

    scheduler.sync(actor=W1)

    assert due() == [("patient", NOON + 10 * MINUTE)]
    assert told(ScheduledJob.objects.get())[-1] == "JOB_REDECLARED"


def test_whoever_asks_with_another_version_of_the_code_does_not_change_the_times(jobs, at):
    at(NOON)
    jobs(FREQUENT)
    ScheduledJob.objects.update(cron="10 * * * *")

    requests.run_now(job_named("frequent"), actor="olga")

    row = ScheduledJob.objects.get()
    assert (row.cron, row.decided_until, told(row)[-1]) == ("10 * * * *", NOON, "SLOTS_ASKED_FOR")


def test_times_that_cannot_be_read_hold_up_no_other_job(jobs, at):
    at(NOON)
    jobs(EACH, FREQUENT)
    ScheduledJob.objects.filter(name="each").update(cron="nonsense")
    at(NOON + QUARTER)

    scheduler.fire_due(W1)
    scheduler.sync(actor=W1)

    assert due() == [("frequent", NOON + QUARTER)]


@pytest.mark.only_on("postgresql")
def test_a_locked_job_holds_up_no_other_one(jobs, at, threads):
    at(NOON)
    jobs(EACH, FREQUENT)
    Schedule.objects.all().delete()
    at(NOON + QUARTER)
    held = threads.hold(lambda: ScheduledJob.objects.select_for_update().get(name="each"))
    be_impatient()

    scheduler.sync(actor=W1)
    scheduler.fire_due(W1)

    held.roll_back()
    assert due() == [("frequent", NOON + QUARTER)]
