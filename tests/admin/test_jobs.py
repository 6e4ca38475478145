from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext

from schedules import firing, handler, history, job_runs, scheduler
from schedules.models import DueSlot, ScheduledJob
from tests.factories import W1, DueSlotFactory, JobRunFactory, UserFactory, events_of
from tests.schedules.declared import EACH, FREQUENT, each, frequent
from work import clock

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
QUARTER = timedelta(minutes=15)
HOSTILE = "<script>alert(1)</script>"
PAGE = "/admin/schedules/scheduledjob/"

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def editor(db):
    """A staff user with the Django permissions to change jobs and view slots."""
    user = UserFactory(username="edda", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["change_scheduledjob", "view_dueslot"]))
    return user


@pytest.fixture
def root(db):
    return UserFactory(username="root", is_staff=True, is_superuser=True)


@pytest.fixture
def viewer(db):
    user = UserFactory(username="vera", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_scheduledjob"))
    return user


@pytest.fixture
def noon(settings, monkeypatch):
    settings.JOBS = [FREQUENT, EACH]

    def at(moment):
        monkeypatch.setattr(clock, "now", lambda: moment)

    at(NOON)
    scheduler.sync(actor=W1)
    return at


@pytest.fixture
def job(noon):
    return ScheduledJob.objects.get(name="frequent")


@pytest.mark.parametrize("who", ["editor", "root"])
def test_jobs_are_paused_and_resumed_by_name(act, job, who, request):
    user = request.getfixturevalue(who)
    other = ScheduledJob.objects.get(name="each")
    history.pause(other, actor="ravi")

    assert act(user, "pause", job, other) == ["Paused 1 scheduled job. Skipped 1 that was already paused."]
    assert act(user, "resume", job, other) == ["Resumed 2 scheduled jobs."]
    assert act(user, "resume", job) == ["Skipped 1 that is not paused."]

    told = events_of(job).filter(kind__in=["JOB_PAUSED", "JOB_RESUMED"])
    assert {event.actor for event in told} == {user.username}


def test_a_job_is_run_now(press, said, job, editor):
    page = press(editor, "run_now", job, follow=True)

    assert said(page) == ["Made 1 scheduled job due now."]
    due = DueSlot.objects.get()
    assert (due.job_name, due.asked_by) == ("frequent", "edda")


def test_a_job_that_the_code_has_no_more_is_not_run(act, job, editor, settings):
    settings.JOBS = [EACH]

    assert act(editor, "run_now", job) == ["Skipped 1 that no longer exists."]

    assert not DueSlot.objects.exists()


@pytest.mark.parametrize("verb", ["run_now", "pause", "resume"])
def test_whoever_may_only_look_changes_nothing(press, job, viewer, olga, verb):
    assert press(viewer, verb, job).status_code == 403
    assert press(olga, verb, job).status_code in (403, 404)

    assert not DueSlot.objects.exists()
    assert events_of(job).count() == 1


@pytest.mark.parametrize("verb", ["run_now", "pause", "resume"])
def test_looking_changes_nothing(sign_in, job, editor, verb):
    assert sign_in(editor).get(f"{PAGE}{job.pk}/{verb}/").status_code == 405


def buttons(site, job):
    return [name for name, _ in site.get(f"{PAGE}{job.pk}/change/").context["buttons"]]


def test_buttons_are_offered_for_what_can_be_done(sign_in, job, editor, settings):
    site = sign_in(editor)
    assert buttons(site, job) == ["run_now", "pause"]
    history.pause(job, actor="olga")
    assert buttons(site, job) == ["run_now", "resume"]
    settings.JOBS = [EACH]
    scheduler.sync(actor=W1)

    assert buttons(site, job) == []


def test_whoever_may_only_look_has_no_buttons(sign_in, job, viewer):
    assert b"formaction" not in sign_in(viewer).get(f"{PAGE}{job.pk}/change/").content


def test_the_page_of_a_job_has_its_slots_and_the_next_three(sign_in, noon, job, viewer):
    noon(NOON + 2 * QUARTER)
    firing.fire(frequent, actor=W1)
    run = handler.claim(W1)
    job_runs.fail(run, HOSTILE)

    page = sign_in(viewer).get(f"{PAGE}{job.pk}/change/")

    slots = [(entry.slot, entry.state) for entry in page.context["ledger"]]
    assert slots == [
        *((NOON + n * QUARTER, "expected") for n in (5, 4, 3)),
        (NOON + 2 * QUARTER, "failed"),
        (NOON + QUARTER, "misfired"),
    ]
    text = page.content.decode()
    assert f'<a href="/admin/schedules/jobrun/{run.id}/change/">{run.id}</a>' in text
    assert "2026-03-01 12:15:00" in text
    assert "every 15 minutes, UTC" in text
    assert "Takes notes." in text
    assert HOSTILE not in text


def test_the_page_stays_short_however_long_a_job_has_run(sign_in, noon, root):
    job = ScheduledJob.objects.get(name="each")
    noon(NOON + timedelta(days=20))
    firing.fire(each, actor=W1)
    for n in range(60):
        JobRunFactory(job_name="each", scheduled_for=NOON + timedelta(days=20) - n * QUARTER, status="success")
    site = sign_in(root)

    with CaptureQueriesContext(connection) as queries:
        page = site.get(f"{PAGE}{job.pk}/change/")

    assert len(page.context["ledger"]) == 53
    assert len(queries) < 25


def test_the_page_says_why_nothing_has_begun(sign_in, job, viewer):
    text = sign_in(viewer).get(f"{PAGE}{job.pk}/change/").content.decode()

    assert "No slot of frequent is due; the next one is 2026-03-01 12:15:00" in text
    assert "schedule: No worker runs the scheduler: no worker is alive." in text


def test_a_due_slot_says_why_it_waits(sign_in, job, editor):
    due = DueSlotFactory(job_name="frequent", scheduled_for=NOON, asked_by=HOSTILE)

    text = sign_in(editor).get(f"/admin/schedules/dueslot/{due.pk}/change/").content.decode()

    assert "worker: No worker is alive. None has ever been started." in text
    assert HOSTILE not in text


def test_the_list_of_jobs_asks_little(sign_in, noon, root):
    site = sign_in(root)
    site.get(PAGE)

    with CaptureQueriesContext(connection) as queries:
        page = site.get(PAGE)

    assert b"every 15 minutes, UTC" in page.content
    assert len(queries) < 8
