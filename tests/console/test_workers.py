import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission

from api.models import AuditEntry
from console import queues
from tests.factories import (
    BuildFactory,
    DocumentFactory,
    JobFactory,
    JobRunFactory,
    RunFactory,
    StageFactory,
    UserFactory,
    events_of,
    write,
)
from work import boots, clock, draining
from work.why import LiveWorkers

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def worker(db):
    return boots.register("w1", "boot1", {"run": 2, "build": 1})


@pytest.fixture
def in_charge(olga):
    """Olga with the permission for the shared installation."""
    olga.user_permissions.add(Permission.objects.get(codename="change_queue"))
    return olga


def fall_silent(worker, settings):
    return write(worker, heartbeat_at=clock.now() - timedelta(seconds=2 * settings.ADE_LEASE_SECONDS))


def shown(page):
    return [worker.name for worker, _ in page.context["workers"]]


def test_workers_are_listed_by_how_they_are(seen_by, ravi, settings):
    _, stopped, silent = (boots.register(name, name, {}) for name in ("w1", "w2", "w3"))
    boots.sign_off(stopped)
    fall_silent(silent, settings)

    found = {
        state: shown(seen_by(ravi, f"/workers/?state={state}")) for state in ("", "alive", "silent", "stopped", "all")
    }

    assert found == {
        "": ["w3", "w1"],
        "alive": ["w1"],
        "silent": ["w3"],
        "stopped": ["w2"],
        "all": ["w3", "w2", "w1"],
    }


def test_without_a_worker_the_page_says_what_to_do(seen_by, ravi):
    text = seen_by(ravi, "/workers/").content.decode()

    assert "none alive" in text
    assert "manage.py worker" in text


def test_what_a_worker_does_names_only_rows_of_ones_own(seen_by, ravi, workspace, worker):
    mine, other = RunFactory(configuration__workspace=workspace, input_document__workspace=workspace), RunFactory()
    job_run = JobRunFactory(job_name="rss_ingestion")
    document = DocumentFactory(workspace=workspace)
    stage = StageFactory(job=JobFactory(document=document, status="PROCESSING"))
    write(worker, doing=[f"run {mine.pk}", f"run {other.pk}", f"job_run {job_run.pk}", f"stage {stage.pk}", "errand 7"])

    for path in ("/workers/", f"/workers/{worker.pk}/"):
        text = seen_by(ravi, path).content.decode()
        assert f'<a href="/runs/{mine.pk}/">run {mine.pk}</a>' in text
        assert f"run {other.pk}<" not in text
        assert "run of another workspace" in text
        assert f'<a href="/jobs/rss_ingestion/">job run {job_run.pk}</a>' in text
        assert f'<a href="/documents/{document.pk}/">stage {stage.pk}</a>' in text
        assert "errand of another workspace" in text


def test_superusers_see_all_that_is_done(seen_by, worker):
    run = RunFactory()
    write(worker, doing=[f"run {run.pk}"])
    root = UserFactory(username="root", is_superuser=True)

    assert f'href="/runs/{run.pk}/"' in seen_by(root, "/workers/").content.decode()


def test_the_queue_of_each_kind_is_told(seen_by, ravi, worker):
    waiting, at_work = RunFactory(), RunFactory(status="running")
    BuildFactory()
    StageFactory(status="READY")

    found = {queue.kind: queue for queue in seen_by(ravi, "/workers/").context["queues"]}

    run = found["run"]
    assert (run.waiting, run.running, run.concurrency, run.oldest_since) == (1, 1, 2, waiting.created_at)
    assert (found["build"].waiting, found["build"].running) == (1, 0)
    assert (found["stage"].waiting, found["stage"].concurrency, found["stage"].is_stuck) == (1, 0, True)
    assert at_work.status == "running"


def test_a_long_queue_is_counted_to_a_bound(monkeypatch):
    monkeypatch.setattr("console.queues.MOST_COUNTED", 1)
    RunFactory(), RunFactory()

    (run,) = (queue for queue in queues.queues(LiveWorkers.now()) if queue.kind == "run")

    assert (run.waiting, run.is_over) == (1, True)


def test_the_page_of_a_worker_tells_of_it_and_its_history(seen_by, ravi, worker, settings):
    alive = seen_by(ravi, f"/workers/{worker.pk}/").content.decode()
    fall_silent(worker, settings)
    silent = seen_by(ravi, f"/workers/{worker.pk}/").content.decode()
    boots.sign_off(worker)
    stopped = seen_by(ravi, f"/workers/{worker.pk}/").content.decode()

    assert "before this page was loaded" in alive
    assert "WORKER_STARTED" in alive
    assert f"kill {worker.pid}" in alive
    assert "its work is taken over by other workers" in silent
    # The PID may belong to another process by now.
    assert "kill " not in silent
    assert "WORKER_STOPPED" in stopped


def test_a_worker_of_another_version_is_told(seen_by, ravi, worker):
    write(worker, version="0.0.1")

    assert "Restart the worker to update it." in seen_by(ravi, f"/workers/{worker.pk}/").content.decode()
    assert "other version" in seen_by(ravi, "/workers/").content.decode()


def test_names_of_workers_stay_text(seen_by, ravi, worker):
    write(worker, name=HOSTILE, host=HOSTILE, version=HOSTILE, lanes={HOSTILE: 1}, doing=[f"{HOSTILE} 1"])
    boots.record_contention(worker, HOSTILE)

    for path in ("/workers/", f"/workers/{worker.pk}/"):
        text = seen_by(ravi, path).content.decode()
        assert HOSTILE not in text
        assert "&lt;script&gt;" in text


def test_workers_are_told_of_to_members(seen_by, zed, worker):
    assert [seen_by(zed, path).status_code for path in ("/workers/", f"/workers/{worker.pk}/")] == [403, 403]


def test_a_worker_that_is_not_there_is_not_found(seen_by, ravi):
    assert seen_by(ravi, "/workers/1234567/").status_code == 404


def test_workers_cost_few_queries(asks_at_most, ravi, workspace, worker):
    stage, job_run = StageFactory(), JobRunFactory()
    run, build = RunFactory(configuration__workspace=workspace), BuildFactory()
    rows = {"run": run, "build": build, "stage": stage, "job_run": job_run, "delivery": run}
    write(worker, doing=[f"{kind} {row.pk}" for kind, row in rows.items()])
    for n in range(3):
        boots.register(f"v{n}", f"v{n}", {})

    asks_at_most(15, ravi, "/workers/")
    asks_at_most(15, ravi, f"/workers/{worker.pk}/")


def drain(pressed_by, person, worker, **sent):
    return pressed_by(person, f"/workers/{worker.pk}/drain/", **sent)


def test_a_worker_is_asked_to_drain_with_a_reason(pressed_by, in_charge, worker):
    page = drain(pressed_by, in_charge, worker, reason=" a  new\nversion ")

    worker.refresh_from_db()
    assert page.redirect_chain == [(f"/workers/{worker.pk}/", 302)]
    assert page.said[0].startswith(f"{worker.owner} is draining: it claims nothing more")
    assert (worker.drain_requested_by, worker.drain_reason) == ("olga", "a new version")
    told = events_of(worker).last()
    assert (told.kind, told.actor, told.message) == ("WORKER_DRAIN_REQUESTED", "olga", "a new version")
    entry = AuditEntry.objects.get(operation="console:drain_worker")
    assert (entry.actor, entry.subject_kind, entry.subject_id) == ("olga", "worker", worker.pk)


def test_who_asks_second_is_told_since_when(pressed_by, in_charge, worker):
    draining.drain(worker, actor="ada", reason="first")

    (said,) = drain(pressed_by, in_charge, worker, reason="second").said

    assert f"is already draining: ada requested it at {worker.drain_requested_at:%Y-%m-%d %H:%M:%S} UTC" in said
    assert events_of(worker).last().actor == "ada"


@pytest.mark.parametrize(
    ("leave", "expected"),
    [
        (lambda worker, settings: boots.sign_off(worker), "cannot drain: it stopped at"),
        (fall_silent, "cannot drain: it has sent no heartbeat since"),
    ],
)
def test_a_worker_that_is_gone_cannot_be_asked(pressed_by, in_charge, worker, settings, leave, expected):
    leave(worker, settings)

    (said,) = drain(pressed_by, in_charge, worker).said

    assert expected in said
    worker.refresh_from_db()
    assert worker.drain_requested_at is None


def test_only_who_may_is_offered_it_and_only_while_it_is_alive(seen_by, in_charge, ravi, worker):
    path, action = f"/workers/{worker.pk}/", f"/workers/{worker.pk}/drain/"

    mine, others = seen_by(in_charge, path).content.decode(), seen_by(ravi, path).content.decode()
    draining.drain(worker, actor="ada")
    again = seen_by(in_charge, path).content.decode()
    boots.sign_off(worker)
    gone = seen_by(in_charge, path).content.decode()

    assert f'action="{action}"' in mine
    assert 'name="reason"' in mine
    # The note that a drain does not outlast a restart is shown to every user.
    assert "A drain affects this process only." in mine
    assert "A drain affects this process only." in others
    for page in (others, again, gone):
        assert action not in page
    assert "Drain request</h2>" in gone


def test_whoever_only_looks_and_strangers_are_refused(pressed_by, olga, ravi, zed, worker):
    for person in (olga, ravi, zed):
        assert drain(pressed_by, person, worker).status_code == 403
    worker.refresh_from_db()
    assert worker.drain_requested_at is None


def test_a_worker_that_is_not_there_is_not_asked(pressed_by, in_charge):
    assert pressed_by(in_charge, "/workers/1234567/drain/").status_code == 404


def test_that_it_drains_is_told_as_icon_and_word_on_each_page(seen_by, ravi, worker):
    draining.drain(worker, actor="ada", reason="a new version")

    pages = [seen_by(ravi, path).content.decode() for path in ("/", "/workers/", f"/workers/{worker.pk}/")]

    for page in pages:
        assert re.search(r'<span class="state is-warn"><svg .+</svg>draining</span>', page)
    for page in pages[1:]:
        assert re.search(r"[Rr]equested <time[^>]+>[^<]+</time> by ada", page)
    assert "a new version" in pages[2]
    assert "It takes no new work." in pages[1]


def test_what_a_worker_that_drains_still_does_is_in_no_slot(seen_by, ravi, worker):
    other = boots.register("w2", "boot2", {"run": 1})
    RunFactory(status="running", owner=worker.owner)
    draining.drain(worker, actor="ada")

    def found():
        return next(each for each in seen_by(ravi, "/workers/").context["queues"] if each.kind == "run")

    assert (found().running, found().concurrency, found().is_full) == (1, 1, False)
    RunFactory(status="running", owner=other.owner)
    assert (found().running, found().concurrency, found().is_full) == (2, 1, True)


def test_a_hostile_reason_of_a_drain_stays_text(pressed_by, in_charge, worker):
    page = drain(pressed_by, in_charge, worker, reason=HOSTILE).content.decode()

    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)" in page
