from collections import namedtuple
from datetime import timedelta

import pytest

from runs import queue
from tests.factories import (
    BuildFactory,
    ConfigurationFactory,
    DocumentFactory,
    FeedFactory,
    JobFactory,
    JobRunFactory,
    RunFactory,
    ScheduledJobFactory,
    UserFactory,
    WorkspaceFactory,
    copies_of,
    force_status,
    write,
)
from work import boots, clock, draining
from work.models import Worker

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def worker(db):
    now = clock.now()
    row = {"name": "w1", "host": "here", "pid": 101, "boot_id": "boot1", "machine": "m", "pid_started": 1}
    lanes = {"run": 2, "build": 1, "stage": 2}
    return Worker.objects.create(**row, version="1", lanes=lanes, started_at=now, heartbeat_at=now)


@pytest.fixture
def run_of(configuration, build, workspace):
    def run_of(status="queued", ago=MINUTE, **said):
        run = RunFactory(configuration=configuration, build=build, input_document=DocumentFactory(workspace=workspace))
        at = clock.now() - ago
        if status == "queued":
            return write(run, created_at=at)
        times = {"created_at": at, "started_at": at} | ({} if status == "running" else {"finished_at": at})
        return force_status(run, status, **times, **said)

    return run_of


@pytest.fixture
def told(seen_by, olga):
    """Return a function that returns the attention lines of Olga, each as word, sentence and link."""

    def told(person=olga):
        return [(line.word, line.message, line.url) for line in seen_by(person, "/").context["attention"]]

    return told


def test_nothing_needs_anybody_while_all_goes_well(told, worker, run_of):
    run_of("succeeded")
    run_of("running")
    run_of("queued")

    assert told() == []


def test_an_installation_without_workspaces(seen_by, worker):
    root = UserFactory(is_superuser=True)
    (line,) = seen_by(root, "/").context["attention"]
    assert (line.word, line.url) == ("no workspace", "/documents/add/")
    WorkspaceFactory()

    assert seen_by(root, "/").context["attention"] == []


def test_work_that_waits_without_any_worker(told, run_of, worker, workspace):
    write(worker, stopped_at=clock.now(), heartbeat_at=clock.now())
    run_of()
    run_of()
    JobFactory(document__workspace=workspace)

    said = "No worker is alive, and 2 runs are queued and 1 document is waiting to be processed."
    assert told() == [("no worker", said, "/workers/")]


def test_since_when_nobody_works(seen_by, olga, run_of, worker):
    write(worker, heartbeat_at=clock.now() - 5 * MINUTE)
    run_of()

    (line,) = seen_by(olga, "/").context["attention"]

    assert line.since == worker.heartbeat_at


def test_that_nobody_works_is_told_before_something_waits(told):
    assert told() == [("no worker", "No worker is alive, so new work will wait.", "/workers/")]


def test_workers_without_a_slot_for_runs(told, worker, run_of):
    write(worker, lanes={"run": 0, "stage": 2})
    run_of("queued", HOUR)

    assert told() == [
        ("no thread", "1 run is queued, but no worker has a thread for runs (1 worker alive).", "/workers/")
    ]


def test_workers_that_all_drain(told, worker, run_of):
    draining.drain(worker, actor="ada")

    assert told() == [
        ("draining", "The only worker is draining: no work is started, and new work will wait.", "/workers/")
    ]
    run_of()
    assert told() == [
        ("draining", "The only worker is draining: no work is started, and 1 run is queued.", "/workers/"),
    ]
    draining.drain(boots.register("w2", "boot2", {"run": 1}), actor="ada")
    assert told()[0][1] == "All 2 workers are draining: no work is started, and 1 run is queued."


def test_of_several_workers_the_one_for_runs_drains(told, worker, run_of):
    boots.register("w2", "boot2", {"build": 1})
    draining.drain(worker, actor="ada")
    assert told() == []
    run_of()

    said = "1 run is queued, but no worker that is not draining has a thread for runs (2 workers alive)."
    assert told() == [("no thread", said, "/workers/")]


def test_a_pause_with_its_person_and_reason(told, worker, run_of):
    run_of("queued", HOUR)
    queue.pause(actor="ada", reason="a disk is full")

    assert told() == [
        ("paused", "The run queue was paused by ada: a disk is full. 1 run is queued.", "#queue"),
    ]


def test_a_pause_without_a_reason(told, worker):
    queue.pause(actor="ada")

    assert told() == [("paused", "The run queue was paused by ada, without a reason.", "#queue")]


def test_a_build_that_fails(told, worker, configuration):
    build = BuildFactory(configuration=configuration, status="failed")

    assert told() == [("build", "The build of invoices failed: no such package", f"/builds/{build.pk}/")]


def test_a_build_that_failed_before_a_better_one_needs_nobody(told, worker, configuration):
    BuildFactory(configuration=configuration, status="failed", fingerprint="first")
    BuildFactory(configuration=configuration, status="ready", fingerprint="second")

    assert told() == []


def test_a_build_that_failed_long_ago_needs_nobody(told, worker, configuration):
    at = clock.now() - 4 * DAY
    build = BuildFactory(configuration=configuration, status="failed")
    write(build, created_at=at, started_at=at, finished_at=at)

    assert told() == []


def test_of_many_builds_that_fail_the_first_are_named(told, worker, workspace):
    for _ in range(5):
        BuildFactory(configuration=ConfigurationFactory(workspace=workspace), status="failed")

    assert [said for _, said, _ in told()][3:] == ["2 more builds failed."]


def test_runs_that_wait_for_long(told, worker, run_of):
    run_of("queued", MINUTE)
    oldest = run_of("queued", 30 * MINUTE)
    run_of("queued", 20 * MINUTE)

    assert told() == [("waiting", "2 runs have been waiting for over 10 min.", f"/runs/{oldest.pk}/")]


def test_a_run_of_others_that_waits_for_long_is_not_named(told, worker):
    write(RunFactory(), created_at=clock.now() - HOUR)

    assert told() == [("waiting", "1 run has been waiting for over 10 min.", "/runs/?outcome=queued")]


def test_runs_over_their_time(told, worker, run_of, settings):
    settings.ADE_RUN_TIMEOUT_SECONDS = 120
    run = run_of("running", HOUR)
    run_of("running", 2 * MINUTE)

    said = f"Run {run.pk} of invoices has been running for 1 h; its time limit is 2 min."
    assert told() == [("over time", said, f"/runs/{run.pk}/")]


def test_a_build_over_its_time(told, worker, configuration, settings):
    settings.ADE_BUILD_TIMEOUT = 600
    build = BuildFactory(configuration=configuration, status="building")
    write(build, created_at=clock.now() - HOUR, started_at=clock.now() - HOUR)

    said = "The build of invoices has exceeded its time limit of 10 min."
    assert told() == [("over time", said, f"/builds/{build.pk}/")]


def test_a_job_whose_last_slots_failed(told, worker):
    row = ScheduledJobFactory(name="rss_ingestion", cron="0 0 1 1 *")
    at = clock.now().replace(microsecond=0)
    for ago, status in ((4 * MINUTE, "failed"), (3 * MINUTE, "success"), (2 * MINUTE, "failed"), (MINUTE, "failed")):
        job_run = JobRunFactory(job_name=row.name, scheduled_for=at - ago, created_at=at - ago)
        said = {"error_message": "nobody answered\nat all"} if status == "failed" else {}
        force_status(job_run, status, started_at=at - ago, finished_at=at - ago, **said)

    last = at - MINUTE
    said = (
        f"rss_ingestion: 2 slots went wrong in the last day (2 failed), the last at {last:%H:%M} UTC. “nobody answered”"
    )
    assert told() == [("job", said, "/jobs/rss_ingestion/")]


def test_a_job_that_went_well_again_needs_nobody(told, worker):
    row = ScheduledJobFactory(name="rss_ingestion", cron="0 0 1 1 *")
    at = clock.now()
    for ago, status in ((2 * MINUTE, "failed"), (MINUTE, "success")):
        job_run = JobRunFactory(job_name=row.name, scheduled_for=at - ago, created_at=at - ago)
        said = {"error_message": "nobody answered"} if status == "failed" else {}
        force_status(job_run, status, started_at=at - ago, finished_at=at - ago, **said)

    assert told() == []


def test_slots_that_nobody_has_run(told, worker):
    now = clock.now()
    created = now - 3 * HOUR
    ScheduledJobFactory(name="rss_ingestion", cron="0 * * * *", created_at=created, decided_until=now)

    ((word, said, url),) = told()

    assert (word, url) == ("job", "/jobs/rss_ingestion/")
    assert "missed" in said


def test_slots_of_a_paused_job_need_nobody(told, worker):
    now = clock.now()
    ScheduledJobFactory(
        name="rss_ingestion", cron="0 * * * *", created_at=now - 3 * HOUR, paused_at=now, paused_by="ada"
    )

    assert told() == []


def test_feeds_that_have_not_answered_for_long(told, worker):
    now = clock.now()
    feed = write(
        FeedFactory(title="Gazette"),
        failures=9,
        failing_since=clock.now(),
        last_error="it is gone",
        succeeded_at=now - 4 * DAY,
    )
    write(FeedFactory(), failures=9, failing_since=clock.now(), last_error="it is gone", succeeded_at=now - DAY)

    said = "The feed Gazette has not answered for over 3 d: it is gone"
    assert told() == [("feed", said, f"/feeds/{feed.pk}/")]


def test_many_silent_feeds_are_one_line(told, worker):
    for _ in range(5):
        write(
            FeedFactory(),
            failures=9,
            failing_since=clock.now(),
            last_error="it is gone",
            created_at=clock.now() - 4 * DAY,
        )

    assert told() == [("feeds", "5 feeds have not answered for over 3 d.", "/feeds/")]


def test_a_cause_of_failures_that_rises(told, worker, run_of):
    for n in range(4):
        run_of("failed", n * MINUTE, error_message=f"expected 3 columns, found {n}")
    run_of("failed", 5 * HOUR, error_message="expected 3 columns, found 9")
    for n in range(20):
        run_of("failed", n * HOUR, error_message="division by zero")

    ((word, said, url),) = told()

    assert word == "rising"
    assert said.startswith("expected ")
    assert said.endswith(": 4 runs failed this way in the last 1 h (1 in the 23 h before).")
    assert url.startswith("/failures/")


def test_a_cause_that_rises_is_seen_behind_any_backlog(told, worker, run_of, monkeypatch):
    monkeypatch.setattr("console.latest.MOST", 9)
    run_of("failed", 5 * HOUR, error_message="expected 3 columns, found 9")
    for n in range(4):
        run_of("failed", n * MINUTE, error_message=f"expected 3 columns, found {n}")
    for _ in range(12):
        run_of("queued")

    ((word, said, _),) = told()

    assert word == "rising"
    assert said.endswith(": 4 runs failed this way in the last 1 h (1 in the 23 h before).")


def test_a_burst_of_failures_is_seen_behind_any_number_of_good_runs(told, worker, run_of):
    copies_of(run_of("failed", 17 * MINUTE, error_message="the disk is gone"), 249)
    copies_of(run_of("succeeded", 10 * MINUTE), 2_000)

    ((word, said, _),) = told()

    assert word == "rising"
    assert said == "the disk is gone: 250 runs failed this way in the last 1 h (0 in the 23 h before)."


@pytest.mark.parametrize("ago", [17 * MINUTE, 90 * MINUTE])
def test_a_burst_of_more_failures_than_are_looked_at_is_not_taken_for_usual(told, worker, run_of, monkeypatch, ago):
    monkeypatch.setattr("console.latest.MOST", 20)
    copies_of(run_of("failed", ago, error_message="the disk is gone"), 30)
    copies_of(run_of("succeeded", MINUTE), 30)

    ((word, said, _),) = told()

    assert word == "rising"
    assert said.startswith("the disk is gone: 2")
    assert "runs failed this way in the last" in said


def test_as_many_failures_as_ever_need_nobody_again(told, worker, run_of):
    for hours in range(24):
        copies_of(run_of("failed", hours * HOUR + MINUTE, error_message="the disk is gone"), 4)

    assert told() == []


def test_a_few_failures_are_no_rise(told, worker, run_of):
    for _ in range(2):
        run_of("failed", error_message="division by zero")

    assert told() == []


@pytest.mark.parametrize(("free", "like"), [(50 * 2**20, "broken"), (500 * 2**20, "warning"), (5 * 2**30, None)])
def test_a_disk_that_is_nearly_full(seen_by, olga, worker, monkeypatch, free, like):
    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage(10 * 2**30, 0, free))

    found = seen_by(olga, "/").context["attention"]

    assert [line.look for line in found] == ([like] if like else [])


def test_the_worst_comes_first(told, run_of, configuration):
    BuildFactory(configuration=configuration, status="failed", fingerprint="another")
    run_of("queued", HOUR)
    queue.pause(actor="ada")

    assert [word for word, _, _ in told()] == ["no worker", "paused", "build"]


def test_what_needs_a_viewer_is_told_too(told, ravi, worker, configuration):
    BuildFactory(configuration=configuration, status="failed")

    assert [word for word, _, _ in told(ravi)] == ["build"]


def test_nobody_is_told_of_builds_of_others(told, worker):
    BuildFactory(status="failed")

    assert told() == []
