import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission

from console.calendar import SQUARES
from schedules import firing, handler, history, job_runs, scheduler
from schedules.models import DueSlot, JobRun, ScheduledJob
from tests.factories import W1, DueSlotFactory, JobRunFactory, ScheduledJobFactory, UserFactory, events_of, write
from tests.schedules.declared import EACH, FREQUENT, MORNING, frequent
from work import clock

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
QUARTER, DAY = timedelta(minutes=15), timedelta(days=1)
HOSTILE = "<script>alert(1)</script>{{7*7}}"
PAGE = "/jobs/frequent/"

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def at(monkeypatch):
    return lambda moment: monkeypatch.setattr(clock, "now", lambda: moment)


@pytest.fixture
def noon(settings, at):
    """Set the clock to noon and declare three jobs, as a worker does when it sees them for the first time."""
    settings.JOBS = [FREQUENT, EACH, MORNING]
    at(NOON)
    scheduler.sync(actor=W1)
    return ScheduledJob.objects.get(name="frequent")


@pytest.fixture
def editor(olga):
    """An operator with the Django permission to change jobs."""
    olga.user_permissions.set(Permission.objects.filter(codename="change_scheduledjob"))
    return olga


def ended(slot, status="success", name="frequent", **told):
    row = JobRunFactory(job_name=name, scheduled_for=slot, created_at=slot)
    over = {"status": status, "finished_at": slot + timedelta(seconds=40), "lease_expires_at": None}
    return write(row, **over, lease_owner=None, **told)


def text_of(page):
    return " ".join(page.content.decode().split())


def squares_of(page):
    rows = page.context["calendar"].rows
    return {f"{s.entry.slot:%d %H:%M}": s.state for row in rows for cell in row.cells for s in cell.squares}


# The list


def test_the_list_tells_how_each_job_stands(seen_by, ravi, noon, at):
    ended(NOON - QUARTER, "failed", error_message="no such host")
    ended(NOON - 2 * QUARTER)
    history.pause(ScheduledJob.objects.get(name="each"), actor="olga")

    page = seen_by(ravi, "/jobs/")

    lines = {line.row.name: line for line in page.context["lines"]}
    assert list(lines) == ["frequent", "each", "morning"]
    assert [line.state for line in lines.values()] == ["scheduled", "paused", "scheduled"]
    assert lines["frequent"].next_slot == NOON + QUARTER
    said = text_of(page)
    assert "every 15 minutes, UTC" in said
    assert "every day at 02:30, Europe/Berlin" in said
    assert "no such host" in said
    assert "by olga" in said


def test_a_job_at_whose_schedule_nobody_looks_is_overdue(seen_by, ravi, noon, at):
    at(NOON + QUARTER + timedelta(minutes=3))

    page = seen_by(ravi, "/jobs/")

    assert page.context["lines"][0].state == "overdue"
    assert page.context["lines"][0].overdue_since == NOON + QUARTER
    assert "</time>, not checked</span>" in text_of(page)


def test_a_job_that_runs_says_since_when_and_one_that_waits_how_many_slots(seen_by, ravi, noon):
    JobRunFactory(job_name="frequent", scheduled_for=NOON, created_at=NOON)
    for n in range(2):
        DueSlotFactory(job_name="each", scheduled_for=NOON - n * QUARTER)

    page = seen_by(ravi, "/jobs/")

    assert [line.state for line in page.context["lines"]] == ["running", "waiting", "scheduled"]
    assert "2 due" in text_of(page)


def test_a_job_that_no_worker_has_seen_is_new_and_one_that_is_not_declared_retired(seen_by, ravi, noon, settings):
    settings.JOBS = [FREQUENT]
    ScheduledJob.objects.filter(name__in=["frequent", "morning"]).delete()

    page = seen_by(ravi, "/jobs/")

    assert [(line.row.name, line.state) for line in page.context["lines"]] == [("frequent", "new"), ("each", "retired")]
    for name in ("frequent", "each"):
        assert seen_by(ravi, f"/jobs/{name}/").status_code == 200


def test_without_jobs_the_list_says_where_they_are_declared(seen_by, ravi, settings):
    settings.JOBS = []

    assert "No jobs are declared." in text_of(seen_by(ravi, "/jobs/"))


# The calendar


def test_a_calendar_has_a_square_for_each_slot(seen_by, ravi, noon, at):
    write(noon, created_at=NOON - DAY)
    at(NOON + QUARTER)
    firing.fire(frequent, actor=W1)
    job_runs.succeed(handler.claim(W1), 7)
    at(NOON + 4 * QUARTER)

    page = seen_by(ravi, PAGE)

    squares = squares_of(page)
    assert squares["01 12:15"] == "succeeded"
    assert squares["01 12:30"] == squares["01 12:45"] == "missed"
    assert squares["01 13:00"] == squares["01 23:45"] == "expected"
    assert f'href="/jobs/frequent/runs/{JobRun.objects.get().pk}/"' in text_of(page)
    assert 'aria-label="12:30 missed: the scheduler did not run in time"' in text_of(page)


def test_slots_of_which_the_same_is_to_be_said_are_one_line(seen_by, ravi, noon, at):
    at(NOON + 8 * QUARTER)

    page = seen_by(ravi, PAGE)

    lines = [(line.newest.state, line.number) for line in page.context["calendar"].lines]
    assert [state for state, _ in lines] == ["expected", "expected", "missed"]
    assert sum(number for _, number in lines) == 47
    assert "the scheduler did not run in time" in text_of(page)


def test_a_calendar_goes_back_and_forth(seen_by, ravi, noon, at):
    at(NOON + 20 * DAY)
    first = seen_by(ravi, PAGE)
    window = first.context["calendar"].window

    second = seen_by(ravi, f"{PAGE}?until={window.earlier.isoformat().replace('+', '%2B')}")
    before = second.context["calendar"].window

    assert window.later is None
    assert (window.since, window.until) == (datetime(2026, 3, 19, tzinfo=UTC), datetime(2026, 3, 22, tzinfo=UTC))
    assert (before.since, before.until) == (datetime(2026, 3, 16, tzinfo=UTC), window.since)
    assert set(squares_of(second).values()) == {"missed"}
    assert seen_by(ravi, f"{PAGE}?until=2026-03-10").context["calendar"].window.until.day == 11
    third = seen_by(ravi, f"{PAGE}?until={before.later.isoformat().replace('+', '%2B')}")
    assert third.context["calendar"].window == window


@pytest.mark.parametrize("asked", ["until=x", "until=0001-01-01", "until=9999-12-31T23:59-12:00", "slot=%00", "slot="])
def test_what_is_no_moment_is_passed_over(seen_by, ravi, noon, asked):
    page = seen_by(ravi, f"{PAGE}?{asked}")

    assert page.status_code == 200
    assert page.context["calendar"].window.until == datetime(2026, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize("until", ["1970-01-01", "2199-12-31"])
def test_long_before_the_job_there_is_nothing(seen_by, ravi, noon, until):
    assert seen_by(ravi, f"{PAGE}?until={until}").status_code == 200


@pytest.mark.parametrize(
    ("cron", "hours"),
    [("* * * * *", 5), ("*/2 * * * *", 10), ("*/5 * * * *", 24), ("0 * * * *", 12 * 24), ("0 6 * * *", 28 * 24)],
)
def test_a_calendar_is_as_long_as_its_squares_allow(seen_by, ravi, noon, at, cron, hours):
    row = ScheduledJobFactory(name="other", cron=cron, created_at=NOON - 100 * DAY)

    page = seen_by(ravi, "/jobs/other/")

    window = page.context["calendar"].window
    assert window.until - window.since == timedelta(hours=hours)
    assert len(squares_of(page)) <= SQUARES
    assert row.name in text_of(page)


def test_what_was_run_beside_the_schedule_is_there_too(seen_by, ravi, noon):
    ended(NOON - timedelta(minutes=7))

    page = seen_by(ravi, PAGE)

    assert squares_of(page)["01 11:53"] == "succeeded"
    assert "outside the schedule" in text_of(page)


def test_a_missed_square_leads_to_a_form_that_runs_its_slot(seen_by, pressed_by, editor, noon, at):
    at(NOON + 2 * QUARTER + timedelta(minutes=8))

    page = seen_by(editor, f"{PAGE}?slot=2026-03-01T12:15&until=2026-03-01T12:15")
    assert '<button class="main">Run this slot</button>' in text_of(page)
    then = pressed_by(editor, f"{PAGE}trigger/", slot="2026-03-01T12:15:00+00:00")

    assert then.redirect_chain == [(PAGE, 302)]
    assert "The slot of frequent for 2026-03-01 12:15:00 has been due since " in then.said[0]
    due = DueSlot.objects.get()
    assert (due.scheduled_for, due.asked_by) == (NOON + QUARTER, "olga")
    assert "Run this slot" not in text_of(seen_by(editor, f"{PAGE}?slot=2026-03-01T12:15"))


def test_who_may_not_change_jobs_sees_no_buttons(seen_by, olga, noon, at):
    at(NOON + 2 * QUARTER)

    said = text_of(seen_by(olga, f"{PAGE}?slot=2026-03-01T12:15"))

    assert "Run this slot" not in said
    assert "Run now" not in said
    assert "Preview" not in said


def test_what_went_well_is_one_line_unless_each_is_asked_for(seen_by, ravi, noon):
    write(noon, created_at=NOON - DAY)
    for n in range(4):
        ended(NOON - n * QUARTER, rows_processed=10)
    ended(NOON - 4 * QUARTER, "failed", error_message="no such host")

    together, each = (seen_by(ravi, f"{PAGE}{asked}").context["calendar"].lines for asked in ("", "?each=yes"))

    ran = [line for line in together if line.newest.entry.job_run]
    assert [(line.number, line.rows_processed) for line in ran] == [(4, 40), (1, None)]
    assert len([line for line in each if line.newest.entry.job_run]) == 5


# Actions on a job


def test_a_job_is_run_now(pressed_by, editor, noon):
    page = pressed_by(editor, f"{PAGE}trigger/")

    assert "blocked by: worker" in page.said[0]
    assert DueSlot.objects.get().asked_by == "olga"


def test_a_slot_that_is_taken_is_said_to_be_with_a_link(pressed_by, editor, noon):
    taken = ended(NOON)

    page = pressed_by(editor, f"{PAGE}trigger/", slot="2026-03-01T12:00")

    assert page.said[0].startswith("No run was requested")
    assert f'<a href="/jobs/frequent/runs/{taken.pk}/">See job run {taken.pk}</a>' in text_of(page)
    assert not DueSlot.objects.exists()


def test_a_slot_that_waits_already_is_said_to(pressed_by, editor, noon):
    DueSlotFactory(job_name="frequent", scheduled_for=NOON)

    page = pressed_by(editor, f"{PAGE}trigger/", slot="2026-03-01T12:00")

    assert page.said[0].startswith("No run was requested")


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"slot": "2026-03-01T12:07"}, "2026-03-01T12:07:00+00:00 is not a slot of frequent "),
        ({"slot": "2026-03-01T12:15"}, "is not due yet"),
        ({"slot": "<b>"}, "The time <b> is not valid. Use a time in UTC, for example 2026-03-01T06:00."),
        ({"in_stead_of": "never"}, "The time never is not valid."),
    ],
)
def test_what_is_no_slot_is_not_run(pressed_by, editor, noon, sent, said):
    page = pressed_by(editor, f"{PAGE}trigger/", **sent)

    assert page.said[0].startswith("No run was requested")
    assert said in page.said[0]
    assert not DueSlot.objects.exists()


def test_a_job_is_paused_with_a_reason_and_resumed(pressed_by, seen_by, editor, noon):
    assert pressed_by(editor, f"{PAGE}pause/", reason="the disk is full").said == [
        "Paused frequent. Its slots are passed over until it is resumed."
    ]
    assert pressed_by(editor, f"{PAGE}pause/").said == ["frequent is already paused. Nothing was changed."]
    shown = text_of(seen_by(editor, PAGE))
    assert "Paused by olga" in shown
    assert "the disk is full" in shown
    assert pressed_by(editor, f"{PAGE}resume/").said == ["Resumed frequent. It continues with its next slot."]
    assert pressed_by(editor, f"{PAGE}resume/").said == ["frequent is not paused. Nothing was changed."]

    paused = events_of(noon).get(kind="JOB_PAUSED")
    assert (paused.actor, paused.message) == ("olga", "the disk is full")


def test_a_backfill_is_rehearsed_and_then_done(seen_by, pressed_by, editor, noon):
    ended(NOON)

    page = seen_by(editor, f"{PAGE}backfill/rehearse/?from=2026-03-01T11:00&to=2026-03-01T12:00")
    assert "4 slots would run, oldest first. 1 has already run or is waiting." in text_of(page)
    assert not DueSlot.objects.exists()
    then = pressed_by(editor, f"{PAGE}backfill/", **{"from": "2026-03-01T11:00+00:00", "to": "2026-03-01T12:00+00:00"})

    assert then.said[0].startswith("Requested 4 slots, to run one after the other, the oldest first.")
    assert then.said[0].endswith("Skipped 1 slot of the range: already run or waiting.")
    assert DueSlot.objects.filter(asked_by="olga").count() == 4


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("from=2026-03-01T13:00&to=2026-03-01T14:00", "The range must lie in the past, not "),
        ("from=2020-03-01&to=2026-03-01", "Choose a shorter one."),
        ("from=&to=2026-03-01", "The time is missing. Use a time in UTC, for example 2026-03-01T06:00."),
    ],
)
def test_a_range_that_cannot_be_run_is_refused(seen_by, editor, noon, asked, said):
    page = seen_by(editor, f"{PAGE}backfill/rehearse/?{asked}", follow=True)

    assert page.redirect_chain == [(PAGE, 302)]
    assert said in next(str(message) for message in page.context["messages"])


ACTIONS = ["trigger", "pause", "resume", "backfill"]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("who", ["olga", "ravi", "zed"])
def test_nobody_acts_without_the_permission(pressed_by, request, noon, who, action):
    page = pressed_by(request.getfixturevalue(who), f"{PAGE}{action}/")

    assert page.status_code == 403
    assert not DueSlot.objects.exists()


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_is_pressed_and_not_looked_at(seen_by, editor, noon, action):
    assert seen_by(editor, f"{PAGE}{action}/").status_code == 405


@pytest.mark.parametrize("action", ACTIONS)
def test_of_a_job_that_is_not_declared_nothing_can_be_asked(pressed_by, editor, noon, settings, action):
    settings.JOBS = [EACH]

    assert pressed_by(editor, f"{PAGE}{action}/").status_code == 404


# Why a slot waits


def test_why_a_slot_has_not_begun_is_told_gate_by_gate(seen_by, ravi, noon):
    DueSlotFactory(job_name="frequent", scheduled_for=NOON)

    page = seen_by(ravi, f"{PAGE}why/")

    assert "The slot of frequent for 2026-03-01 12:00:00 has been due since " in text_of(page)
    assert "No worker is alive" in text_of(page)
    assert 'href="/jobs/frequent/why/"' in text_of(seen_by(ravi, PAGE))


# The page of a job run


def test_the_page_of_a_job_run_tells_its_history(seen_by, ravi, noon):
    row = ended(NOON, "failed", error_message=HOSTILE, rows_processed=12)

    page = seen_by(ravi, f"{PAGE}runs/{row.pk}/")

    said = text_of(page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{{7*7}}" in said
    assert "<dd>12</dd>" in said
    assert "SLOT_CLAIMED" in said
    assert "Run again for this slot" not in said


def test_a_slot_that_has_failed_is_run_again_in_its_stead(seen_by, pressed_by, editor, noon):
    row = ended(NOON, "failed", error_message="no such host")
    assert "Run again for this slot" in text_of(seen_by(editor, f"{PAGE}runs/{row.pk}/"))

    pressed_by(editor, f"{PAGE}trigger/", in_stead_of="2026-03-01T12:00:00+00:00")

    assert DueSlot.objects.get().covers == NOON


def test_what_was_run_by_hand_and_has_failed_is_run_again_in_its_stead(seen_by, pressed_by, editor, noon):
    by_hand = NOON + timedelta(microseconds=7)
    row = ended(by_hand, "failed", error_message="no such host")
    page = text_of(seen_by(editor, f"{PAGE}runs/{row.pk}/"))
    meant = re.search(r'name="in_stead_of" value="([^"]+)"', page)[1]

    pressed_by(editor, f"{PAGE}trigger/", in_stead_of=meant)

    assert DueSlot.objects.get().covers == by_hand


def test_of_a_job_that_is_not_declared_nothing_is_run_again(seen_by, editor, noon, settings):
    row = ended(NOON, "failed")
    settings.JOBS = [EACH]

    assert "Run again for this slot" not in text_of(seen_by(editor, f"{PAGE}runs/{row.pk}/"))


def test_the_run_of_another_job_is_not_found(seen_by, ravi, noon):
    row = ended(NOON, name="each")

    for path in (f"{PAGE}runs/{row.pk}/", f"{PAGE}runs/{10**30}/", "/jobs/no-such-job/", "/jobs/no-such-job/why/"):
        assert seen_by(ravi, path).status_code == 404, path


# Permissions and queries


@pytest.mark.parametrize("path", ["/jobs/", PAGE, f"{PAGE}why/", f"{PAGE}runs/1/", f"{PAGE}backfill/rehearse/"])
def test_whoever_is_in_no_workspace_is_told_nothing(seen_by, client, zed, noon, path):
    assert client.get(path).status_code == 302
    assert seen_by(zed, path).status_code == 403


def test_hostile_names_and_errors_stay_text(seen_by, noon):
    ScheduledJobFactory(name=HOSTILE, paused_at=NOON, paused_by=HOSTILE)
    ended(NOON, "failed", name=HOSTILE, error_message=HOSTILE)
    ended(NOON, "failed", error_message=HOSTILE)
    root = UserFactory(is_superuser=True)

    for path in ("/jobs/", PAGE):
        said = text_of(seen_by(root, path))
        assert "<script>alert" not in said
        assert "&lt;script&gt;" in said


def test_pages_ask_few_questions_however_many_slots_there_are(asks_at_most, editor, noon, at):
    at(NOON + DAY)
    for n in range(40):
        ended(NOON + n * QUARTER, "failed" if n % 3 else "success", **({"error_message": "no"} if n % 3 else {}))
    for n in range(40, 60):
        DueSlotFactory(job_name="frequent", scheduled_for=NOON + n * QUARTER)
    running = JobRunFactory(job_name="frequent", scheduled_for=NOON + 90 * QUARTER)
    for n in range(30):
        ScheduledJobFactory(name=f"old{n}", retired_at=NOON)

    asks_at_most(8, editor, "/jobs/")
    asks_at_most(15, editor, PAGE)
    asks_at_most(15, editor, f"{PAGE}why/")
    asks_at_most(15, editor, f"{PAGE}runs/{running.pk}/")
    asks_at_most(15, editor, f"{PAGE}backfill/rehearse/?from=2026-03-01T11:00&to=2026-03-01T20:00")
