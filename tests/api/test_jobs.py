from datetime import UTC, datetime, timedelta

import pytest

from schedules import history, scheduler
from schedules.models import DueSlot, JobRun, ScheduledJob
from tests.api.programs import Program, editor_of, problem_of
from tests.factories import W1, DueSlotFactory, JobRunFactory, ScheduledJobFactory, events_of
from tests.schedules.declared import EACH, MORNING
from work import clock

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
QUARTER = timedelta(minutes=15)
SLOT = "2026-03-01T11:45:00Z"

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def noon(settings, monkeypatch):
    settings.JOBS = [EACH, MORNING]
    monkeypatch.setattr(clock, "now", lambda: NOON)
    scheduler.sync(actor=W1)


@pytest.fixture
def program(workspace):
    return Program(editor_of(workspace), workspace, "installation")


def test_jobs_are_listed_with_how_they_stand(program):
    JobRunFactory(job_name="each", scheduled_for=NOON - QUARTER, status="success")
    ScheduledJobFactory(name="former", retired_at=NOON)

    jobs = program.get("/jobs").json()

    assert jobs["next"] is None
    assert [(job["name"], job["state"]) for job in jobs["items"]] == [
        ("each", "scheduled"),
        ("morning", "scheduled"),
        ("former", "retired"),
    ]
    each = jobs["items"][0]
    assert (each["next_slot"], each["last_slot"], each["last_outcome"]) == ("2026-03-01T12:15:00Z", SLOT, "Success")


def test_a_job_tells_for_how_long_it_may_run(program):
    ScheduledJobFactory(name="former", retired_at=NOON)

    each, former = program.get("/jobs/each").json(), program.get("/jobs/former").json()

    assert (each["max_runtime_seconds"], each["misfire_grace_seconds"], each["coalesce"]) == (300, 7200, False)
    assert (former["state"], former["max_runtime_seconds"], former["next_slot"]) == ("retired", None, None)


def test_a_job_that_no_worker_has_seen_yet_can_be_looked_at(program):
    ScheduledJob.objects.all().delete()

    assert program.get("/jobs/each").json()["state"] == "new"
    assert program.get("/jobs/each/ledger").json()["slots"] == []
    assert program.get("/jobs/each/events").json()["items"] == []
    assert program.get("/jobs/each/why").json()["kind"] == "scheduled_job"


def test_the_ledger_is_of_a_range(program):
    ran = JobRunFactory(job_name="each", scheduled_for=NOON - QUARTER, status="failed")
    asked = {"from": "2026-03-01T11:45:00Z", "to": "2026-03-01T12:15:00.5+00:00"}

    told = program.get("/jobs/each/ledger", **asked).json()

    assert [(slot["slot"], slot["state"]) for slot in told["slots"]] == [
        ("2026-03-01T12:15:00Z", "expected"),
        (SLOT, "failed"),
    ]
    assert told["slots"][1]["job_run"] == ran.pk
    assert told["counts"] == {"expected": 1, "failed": 1}


def test_the_ledger_without_a_range_has_what_is_to_come(program):
    told = program.get("/jobs/each/ledger", limit=1).json()

    assert [slot["slot"] for slot in told["slots"]][:1] == ["2026-03-01T12:45:00Z"]


@pytest.mark.parametrize(
    "asked",
    [
        {"from": "yesterday"},
        {"from": "2026-03-01T11:45:00"},
        {"from": "1772365500"},
        {"from": "0001-01-01T00:00:00Z"},
        {"to": "9999-12-31T23:59:59-14:00"},
        {"to": "2026-02-30T00:00:00Z"},
        {"limit": 201},
        {"since": "2026-03-01T11:45:00Z"},
    ],
)
def test_a_range_that_is_none_is_refused(program, asked):
    assert problem_of(program.get("/jobs/each/ledger", **asked)) == (400, "invalid_request")


def test_the_ledger_of_all_times_answers(program):
    told = program.get("/jobs/each/ledger", **{"from": "1970-01-01T00:00:00Z", "to": "2199-12-31T23:59:59Z"})

    assert len(told.json()["slots"]) == 50


def test_job_runs_come_in_pages_and_by_status(program):
    runs = [JobRunFactory(job_name="each", scheduled_for=NOON - n * QUARTER, status="failed") for n in range(1, 4)]
    JobRunFactory(job_name="each", scheduled_for=NOON - 9 * QUARTER, status="success")
    JobRunFactory(job_name="morning", status="failed")

    first = program.get("/jobs/each/runs", status="failed", limit=2).json()
    second = program.get("/jobs/each/runs", status="failed", limit=2, cursor=first["next"]).json()

    assert [run["id"] for run in first["items"] + second["items"]] == [run.pk for run in reversed(runs)]
    assert second["next"] is None
    assert program.get(f"/jobs/each/runs/{runs[0].pk}").json()["job_name"] == "each"
    assert problem_of(program.get(f"/jobs/morning/runs/{runs[0].pk}")) == (404, "not_found")
    assert problem_of(program.get("/jobs/each/runs", status="ended")) == (400, "invalid_request")


def test_events_of_a_job_are_its_history(program):
    history.pause(ScheduledJob.objects.get(name="each"), actor="olga", reason="too noisy")

    latest = program.get("/jobs/each/events", order="-id").json()["items"][0]

    assert (latest["kind"], latest["actor"], latest["message"]) == ("JOB_PAUSED", "olga", "too noisy")


def test_why_names_what_holds_a_slot(program):
    DueSlotFactory(job_name="each", scheduled_for=NOON - QUARTER)

    why = program.get("/jobs/each/why").json()

    assert (why["kind"], why["held_by"]) == ("due_slot", ["worker"])


def test_a_job_is_run_now(program):
    answer = program.post("/jobs/each/runs")

    assert answer.status_code == 201
    due = DueSlot.objects.get()
    assert answer.json()["id"] == due.pk
    assert (due.job_name, due.asked_by) == ("each", "edda (token program)")
    slot = answer.json()["slot"]
    (entry,) = program.get("/jobs/each/ledger", **{"from": slot, "to": slot}).json()["slots"]
    assert (entry["state"], entry["is_scheduled"], entry["asked_by"]) == ("waiting", False, "edda (token program)")


def test_a_slot_of_the_schedule_is_run(program):
    answer = program.post("/jobs/each/runs", {"slot": "2026-03-01T12:45:00+01:00"})

    assert (answer.status_code, answer.json()["slot"]) == (201, SLOT)


def test_a_slot_that_is_taken_answers_with_its_job_run(program):
    ran = JobRunFactory(job_name="each", scheduled_for=NOON - QUARTER, status="failed")

    answer = program.post("/jobs/each/runs", {"slot": SLOT})

    assert problem_of(answer) == (409, "slot_already_claimed")
    assert answer.json()["details"] == {"job": "each", "job_run": ran.pk, "status": "failed"}


def test_a_slot_that_waits_already_has_no_job_run_yet(program):
    assert program.post("/jobs/each/runs", {"slot": SLOT}).status_code == 201

    answer = program.post("/jobs/each/runs", {"slot": SLOT})

    assert problem_of(answer) == (409, "slot_already_claimed")
    assert answer.json()["details"]["job_run"] is None


def test_a_job_is_run_in_the_stead_of_a_slot(program):
    JobRunFactory(job_name="each", scheduled_for=NOON - QUARTER, status="failed")

    answer = program.post("/jobs/each/runs", {"in_stead_of": SLOT})

    assert (answer.status_code, answer.json()["in_stead_of"]) == (201, SLOT)
    assert DueSlot.objects.get().covers == NOON - QUARTER


@pytest.mark.parametrize("slot", ["2026-03-01T11:46:00Z", "2026-03-01T12:15:00Z"])
def test_what_is_no_slot_that_has_been_is_refused(program, slot):
    answer = program.post("/jobs/each/runs", {"slot": slot})

    assert problem_of(answer) == (409, "not_a_slot")
    assert DueSlot.objects.count() == 0


@pytest.mark.parametrize(
    "body",
    [
        {"slot": SLOT, "in_stead_of": SLOT},
        {"slot": None, "in_stead_of": None},
        {"slot": 1772365500},
        {"slot": "2026-03-01"},
        {"when": SLOT},
        {"slot": "1900-01-01T00:00:00Z"},
        [],
        "now",
    ],
)
def test_a_wish_that_is_none_is_refused(program, body):
    assert problem_of(program.post("/jobs/each/runs", body)) == (400, "invalid_request")
    assert DueSlot.objects.count() == 0


def test_who_has_lost_the_answer_gets_it_again(program):
    first, again = (program.post("/jobs/each/runs", headers={"Idempotency-Key": "one"}) for _ in range(2))

    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert DueSlot.objects.count() == 1


def test_a_range_is_rehearsed_and_run(program):
    JobRunFactory(job_name="each", scheduled_for=NOON - QUARTER, status="success")
    asked = {"from": "2026-03-01T11:15:00Z", "to": SLOT}

    rehearsed = program.post("/jobs/each/backfill", asked | {"rehearse": True})
    done = program.post("/jobs/each/backfill", asked)

    assert (rehearsed.status_code, done.status_code) == (200, 201)
    assert rehearsed.json()["free"] == ["2026-03-01T11:15:00Z", "2026-03-01T11:30:00Z"] == done.json()["free"]
    assert rehearsed.json()["taken"] == [SLOT]
    assert DueSlot.objects.count() == 2


@pytest.mark.parametrize(
    "asked",
    [
        {"from": "1970-01-01T00:00:00Z", "to": SLOT},
        {"from": SLOT, "to": "2026-03-01T11:00:00Z"},
        {"from": SLOT, "to": "2030-01-01T00:00:00Z"},
    ],
)
def test_a_range_that_is_too_long_or_has_not_been_is_refused(program, asked):
    assert problem_of(program.post("/jobs/each/backfill", asked)) == (409, "not_a_slot")
    assert DueSlot.objects.count() == 0


def test_a_job_is_paused_and_goes_on(program):
    paused = program.post("/jobs/each/pause", {"reason": "too noisy"})
    twice = program.post("/jobs/each/pause")
    resumed = program.post("/jobs/each/resume")

    assert (paused.json()["state"], paused.json()["paused_by"]) == ("paused", "edda (token program)")
    assert problem_of(twice) == (409, "conflict")
    assert resumed.json()["state"] == "scheduled"
    assert problem_of(program.post("/jobs/each/resume")) == (409, "conflict")
    row = ScheduledJob.objects.get(name="each")
    assert list(events_of(row).values_list("kind", "message"))[-2:] == [
        ("JOB_PAUSED", "too noisy"),
        ("JOB_RESUMED", ""),
    ]


def test_nothing_can_be_asked_of_a_job_that_the_code_does_not_declare_any_more(program):
    ScheduledJobFactory(name="former", retired_at=NOON)

    for path in ("/jobs/former/runs", "/jobs/former/pause", "/jobs/former/resume"):
        assert problem_of(program.post(path)) == (409, "conflict")
    assert JobRun.objects.count() == 0
