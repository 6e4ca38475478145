from datetime import UTC, datetime, timedelta

import pytest

from schedules import firing, handler, job_runs, scheduler
from schedules.management.commands import job
from schedules.models import DueSlot, JobRun, ScheduledJob
from tests.factories import W1, DueSlotFactory, JobRunFactory, events_of
from tests.schedules import declared
from tests.schedules.declared import EACH, FREQUENT, each, frequent
from tests.stepping import until
from work import clock

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
QUARTER = 15 * MINUTE

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def two_jobs(settings, db):
    settings.JOBS = [FREQUENT, EACH]
    settings.ADE_SCHEDULES = True
    declared.DONE.clear()


@pytest.fixture
def noon(monkeypatch):
    """Declare the jobs at noon; return a function that sets the clock."""

    def at(moment):
        monkeypatch.setattr(clock, "now", lambda: moment)

    at(NOON)
    scheduler.sync(actor=W1)
    return at


def test_the_jobs_are_listed_with_what_comes_next_and_how_the_last_slot_has_ended(manage, noon):
    JobRunFactory(job_name="frequent", scheduled_for=NOON - QUARTER, status="success")
    JobRunFactory(job_name="frequent", scheduled_for=NOON, status="failed", error_message="no feeds")

    first, second = manage("job", "list", "--json").json["jobs"]

    assert (first["name"], second["name"]) == ("frequent", "each")
    assert (first["about"], first["schedule"]) == ("Takes notes.", "every 15 minutes, UTC")
    assert (first["state"], first["next_slot"]) == ("scheduled", "2026-03-01T12:15:00Z")
    assert (first["last_outcome"], first["last_slot"], first["last_error"]) == (
        "Failed",
        "2026-03-01T12:00:00Z",
        "no feeds",
    )
    assert first["last_success"] == "2026-03-01T12:00:00Z"
    assert (second["last_outcome"], second["last_success"]) == ("", None)


def test_the_state_of_a_job_is_told(manage, noon, settings):
    def state(name="frequent"):
        return next(each for each in manage("job", "list", "--json").json["jobs"] if each["name"] == name)["state"]

    noon(NOON + QUARTER)
    firing.fire(frequent, actor=W1)
    assert state() == "waiting"
    handler.claim(W1)
    assert state() == "running"
    assert "running since 12:15:00" in manage("job", "list").out
    manage("job", "pause", "frequent", "--as", "olga")
    assert state() == "paused"
    assert "paused by olga (command)" in manage("job", "list").out
    settings.JOBS = [EACH, "tests.schedules.declared.patient"]
    assert state("patient") == "new"


def test_a_job_that_the_code_has_no_more_is_listed_as_such(manage, noon, settings):
    settings.JOBS = [EACH]
    scheduler.sync(actor=W1)

    _, retired = manage("job", "list", "--json").json["jobs"]

    assert (retired["name"], retired["state"], retired["next_slot"]) == ("frequent", "retired", None)
    assert manage("job", "trigger", "frequent").code == 6
    assert manage("job", "ledger", "frequent", "--json").json["slots"] == []


def test_runs_are_chosen(manage):
    running, ended = JobRunFactory(job_name="feeds"), JobRunFactory(status="success")

    def ids(*arguments):
        return {row["id"] for row in manage("job", "runs", *arguments, "--json").json["job_runs"]}

    assert ids() == {running.pk, ended.pk}
    assert ids("--status", "success") == {ended.pk}
    assert ids("--job", "feeds") == {running.pk}
    assert ids("--before", ended.pk) == {running.pk}


def test_runs_are_a_table_for_people(manage):
    JobRunFactory(job_name="feeds")

    assert "feeds" in manage("job", "runs").out


@pytest.mark.parametrize("verb", ["trigger", "pause", "resume", "why", "ledger"])
def test_a_job_that_is_not_there(manage, verb):
    ended = manage("job", verb, "dishes", "--json")

    assert (ended.code, ended.error["code"]) == (6, "not_found")
    assert ended.error["details"] == {"kind": "job", "wanted": "dishes"}


def test_a_job_is_run_now_beside_its_schedule(manage, noon):
    noon(NOON + MINUTE)

    told = manage("job", "trigger", "frequent", "--as", "olga", "--json")

    due = DueSlot.objects.get()
    assert (told.code, told.json["slot"], told.json["covers"]) == (0, "2026-03-01T12:01:00.000001Z", None)
    assert (due.asked_by, due.scheduled_for) == ("olga (command)", NOON + MINUTE + timedelta(microseconds=1))
    assert told.json["why"]["held_by"] == ["worker"]
    assert events_of(ScheduledJob.objects.get(name="frequent")).last().kind == "SLOTS_ASKED_FOR"


def test_a_slot_of_the_schedule_is_run(manage, noon):
    noon(NOON + QUARTER + MINUTE)

    ended = manage("job", "trigger", "frequent", "--slot", "2026-03-01T12:15")

    assert ended.code == 0
    assert "BLOCKING  No worker is alive. None has ever been started." in ended.out
    assert DueSlot.objects.get().scheduled_for == NOON + QUARTER


@pytest.mark.parametrize("status", ["running", "success", "failed", "skipped_timeout"])
def test_a_slot_that_has_a_run_is_taken(manage, noon, status):
    noon(NOON + QUARTER + MINUTE)
    run = JobRunFactory(job_name="frequent", scheduled_for=NOON + QUARTER, status=status)

    ended = manage("job", "trigger", "frequent", "--slot", "2026-03-01T12:15", "--json")

    assert (ended.code, ended.error["code"]) == (1, "slot_already_claimed")
    assert ended.error["details"] == {"job": "frequent", "job_run": run.pk, "status": status}
    assert not DueSlot.objects.exists()


def test_a_slot_that_waits_is_taken(manage, noon):
    noon(NOON + QUARTER)
    firing.fire(frequent, actor=W1)

    ended = manage("job", "trigger", "frequent", "--slot", "2026-03-01T12:15", "--json")

    assert (ended.code, ended.error["code"]) == (1, "slot_already_claimed")


def test_a_slot_that_has_a_run_is_run_again_beside_it(manage, noon):
    noon(NOON + QUARTER + MINUTE)
    JobRunFactory(job_name="frequent", scheduled_for=NOON + QUARTER, status="failed")

    ended = manage("job", "trigger", "frequent", "--again", "2026-03-01T12:15", "--json")

    assert (ended.code, ended.json["covers"]) == (0, "2026-03-01T12:15:00Z")
    assert DueSlot.objects.get().covers == NOON + QUARTER


def test_a_moment_that_is_no_slot_is_refused_with_the_nearest_ones(manage, noon):
    noon(NOON + QUARTER)

    ended = manage("job", "trigger", "frequent", "--slot", "2026-03-01T12:10", "--json")

    assert (ended.code, ended.error["code"]) == (1, "not_a_slot")
    assert ended.error["details"]["nearest"] == ["2026-03-01T12:00:00Z", "2026-03-01T12:15:00Z"]
    assert "2026-03-01T12:10:00+00:00 is not a slot of frequent (*/15 * * * * UTC)." in ended.error["message"]


def test_a_slot_that_is_to_come_is_refused(manage, noon):
    ended = manage("job", "trigger", "frequent", "--slot", "2026-03-01T12:15", "--json")

    assert (ended.code, ended.error["code"]) == (1, "not_a_slot")
    assert "is not due yet" in ended.error["message"]


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "0001-01-01T00:00+14:00", "9999-12-31T23:59-12:00", ""])
def test_what_is_no_time_is_refused(manage, text):
    ended = manage("job", "trigger", "frequent", "--slot", text, "--json")

    assert (ended.code, ended.error["code"]) == (2, "usage")
    assert "must be a time such as 2026-03-01T06:00" in ended.error["message"]


def test_a_time_is_in_utc_unless_it_says_otherwise(manage, noon):
    noon(NOON + QUARTER)

    assert manage("job", "trigger", "frequent", "--slot", "2026-03-01T17:45+05:45").code == 0

    assert DueSlot.objects.get().scheduled_for == NOON


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("how", "code"), [("success", 0), ("failed", 1)])
def test_whoever_waits_is_told_how_it_ended(manage, threads, how, code):
    def work():
        claim = until(lambda: handler.claim(W1))
        return job_runs.succeed(claim, 7) if how == "success" else job_runs.fail(claim, "no feeds")

    worker = threads.start(work)

    ended = manage("job", "trigger", "frequent", "--wait", "--json")

    assert worker.answer()
    assert ended.code == code
    run = ended.json["job_run"]
    assert (run["id"], run["status"]) == (JobRun.objects.get().pk, how)
    assert (run["rows_processed"], run["error_message"]) == ((7, "") if how == "success" else (None, "no feeds"))
    assert "blocked by: worker" in ended.err


def test_a_slot_that_is_gone_is_not_waited_for(manage, monkeypatch):
    seen = job.why.explain_due

    def gone_since(due):
        DueSlot.objects.all().delete()
        return seen(due)

    monkeypatch.setattr(job.why, "explain_due", gone_since)

    ended = manage("job", "trigger", "frequent", "--wait", "--json")

    assert ended.code == 1
    assert '"slot_gone"' in ended.err


def test_a_job_is_paused_and_resumed_by_name(manage, noon):
    paused = manage("job", "pause", "frequent", "--reason", "broken", "--as", "olga", "--json")
    again = manage("job", "pause", "frequent", "--as", "ravi", "--json")
    resumed = manage("job", "resume", "frequent", "--as", "olga", "--json")
    too_late = manage("job", "resume", "frequent", "--json")

    assert (paused.code, paused.json["result"], paused.json["paused_by"]) == (0, "paused", "olga (command)")
    assert (again.code, again.json["result"], again.json["paused_by"]) == (1, "was paused already", "olga (command)")
    assert (resumed.code, resumed.json["result"], resumed.json["paused_by"]) == (0, "goes on", None)
    assert (too_late.code, too_late.json["result"]) == (1, "is not paused")
    told = events_of(ScheduledJob.objects.get(name="frequent")).filter(kind__in=["JOB_PAUSED", "JOB_RESUMED"])
    assert [(event.actor, event.message) for event in told] == [("olga (command)", "broken"), ("olga (command)", "")]


def test_a_job_that_no_worker_has_seen_yet_can_be_paused(manage):
    assert manage("job", "pause", "frequent").code == 0

    assert ScheduledJob.objects.get().paused_at


def test_the_slots_of_a_range_are_run_that_have_no_run_yet(manage, noon):
    noon(NOON + timedelta(hours=1, minutes=1))
    JobRunFactory(job_name="frequent", scheduled_for=NOON + QUARTER, status="failed")
    DueSlotFactory(job_name="frequent", scheduled_for=NOON + 2 * QUARTER)
    range = ("--from", "2026-03-01T12:00:01", "--to", "2026-03-01T13:00")

    rehearsed = manage("job", "backfill", "frequent", *range, "--rehearse", "--json")
    assert DueSlot.objects.count() == 1
    done = manage("job", "backfill", "frequent", *range, "--json")

    free = ["2026-03-01T12:45:00Z", "2026-03-01T13:00:00Z"]
    assert (rehearsed.json["rehearsed"], rehearsed.json["free"]) == (True, free)
    assert (done.code, done.json["free"], done.json["rehearsed"]) == (0, free, False)
    assert done.json["taken"] == ["2026-03-01T12:15:00Z", "2026-03-01T12:30:00Z"]
    assert DueSlot.objects.count() == 3


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        ("2026-03-01T12:00", "2026-03-01T13:00", "The range must lie in the past, not "),
        ("2026-03-01T12:00", "2026-03-01T11:00", "The range must lie in the past, not "),
        ("2020-03-01T12:00", "2026-03-01T12:00", "The range has more than 1000 slots."),
    ],
)
def test_a_range_that_is_none_is_refused(manage, noon, since, until, said):
    ended = manage("job", "backfill", "frequent", "--from", since, "--to", until, "--rehearse", "--json")

    assert (ended.code, ended.error["code"]) == (1, "not_a_slot")
    assert said in ended.error["message"]


def test_the_ledger_tells_of_each_slot(manage, noon):
    noon(NOON + 2 * QUARTER)
    firing.fire(each, actor=W1)
    job_runs.succeed(handler.claim(W1), 3)

    told = manage("job", "ledger", "each", "--json")

    states = {slot["slot"]: slot["state"] for slot in told.json["slots"]}
    assert list(states.values()) == ["expected", "expected", "expected", "waiting", "succeeded"]
    assert told.json["counts"] == {"expected": 3, "waiting": 1, "succeeded": 1}
    assert (told.json["last_success"], told.json["next_slot"]) == ("2026-03-01T12:30:00Z", "2026-03-01T12:45:00Z")
    shown = manage("job", "ledger", "each").out
    assert "3 expected, 1 waiting, 1 succeeded" in shown


def test_the_ledger_of_a_range(manage, noon):
    noon(NOON + timedelta(days=10))

    told = manage("job", "ledger", "each", "--from", "2026-03-02", "--to", "2026-03-03", "--limit", "20", "--json")

    slots = told.json["slots"]
    assert (slots[0]["slot"], len(slots)) == ("2026-03-03T00:00:00Z", 20)
    assert told.json["counts"] == {"missed": 20}


def test_the_ledger_of_a_job_that_no_worker_has_seen_yet_is_empty(manage):
    assert manage("job", "ledger", "each", "--json").json["slots"] == []


def test_a_due_slot_says_what_it_waits_for(manage, noon):
    noon(NOON + QUARTER)
    firing.fire(frequent, actor=W1)

    told = manage("job", "why", "frequent", "--json").json

    assert (told["kind"], told["held_by"]) == ("due_slot", ["worker"])
    assert "It will be dropped if it has not started by 2026-03-01 12:20:00." in told["message"]
    assert "BLOCKING" in manage("job", "why", "frequent").out


def test_a_job_of_which_nothing_is_due_says_when_it_is_its_turn_and_who_looks(manage, noon):
    told = manage("job", "why", "frequent", "--json").json

    assert (told["kind"], told["held_by"]) == ("scheduled_job", ["schedule", "worker"])
    assert "the next one is 2026-03-01 12:15:00" in told["message"]
