from datetime import timedelta

import pytest

from console import charts, latest
from tests.factories import (
    W1,
    BuildFactory,
    ConfigurationFactory,
    DocumentFactory,
    FeedFactory,
    JobRunFactory,
    MembershipFactory,
    RunFactory,
    ScheduledJobFactory,
    StageFactory,
    UserFactory,
    copies_of,
    force_status,
    write,
)
from work import clock
from work.models import Event, Worker

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

HOSTILE = "<script>alert(1)</script>{{7*7}}$(id)%s"
MINUTE = timedelta(minutes=1)


@pytest.fixture
def run_of(configuration, build, workspace):
    def run_of(status="queued", ago=MINUTE, **said):
        document = DocumentFactory(workspace=workspace, name=said.pop("name", "invoice.pdf"))
        run = RunFactory(configuration=configuration, build=build, input_document=document)
        at = clock.now() - ago
        if status == "queued":
            return write(run, created_at=at)
        times = {"created_at": at, "started_at": at} | ({} if status == "running" else {"finished_at": at})
        return force_status(run, status, **times, **said)

    return run_of


@pytest.fixture
def worker(db):
    now = clock.now()
    name, host, pid, boot = "w1", "here", 101, "boot1"
    return Worker.objects.create(
        **{"name": name, "host": host, "pid": pid, "boot_id": boot, "machine": "m", "pid_started": 1, "version": "1"},
        **{"lanes": {"run": 2, "build": 1}, "started_at": now, "heartbeat_at": now},
    )


def text_of(page):
    return " ".join(page.content.decode().split())


def test_a_stranger_is_told_so_and_nothing_else(seen_by, zed, run_of):
    run_of("failed", name="secret.pdf")

    page = seen_by(zed, "/")

    assert page.status_code == 200
    assert "you are not a member of any workspace yet" in page.content.decode()
    assert "now" not in page.context
    assert "hx-get" not in page.content.decode()


def test_who_is_not_signed_in_is_asked_to(client):
    assert client.get("/").url == "/sign-in/?next=/"


def test_an_empty_installation_has_a_page(seen_by, olga, worker):
    page = seen_by(olga, "/")

    assert "Nothing needs attention." in page.content.decode()
    assert "No runs were submitted in this time." in page.content.decode()
    assert "No runs have failed in the last 24 h." in page.content.decode()


def test_the_queue_is_told_of_with_its_places_and_slots(seen_by, olga, run_of, worker, settings):
    settings.ADE_QUEUE_SIZE = 5
    run_of()
    run_of("running")
    RunFactory()

    now = seen_by(olga, "/").context["now"]

    assert (now.waiting.number, len(now.running), now.free, now.concurrency) == (2, 1, 2, 2)


def test_how_fast_it_goes_is_told(seen_by, olga, run_of):
    run_of("succeeded", 2 * MINUTE)
    run_of("failed", 30 * MINUTE)
    run_of("succeeded", 90 * MINUTE)

    throughput = seen_by(olga, "/").context["now"].throughput

    assert (throughput.soon, throughput.hour) == (1, 2)
    assert (throughput.is_soon_cut, throughput.is_hour_cut) == (False, False)
    assert throughput.wait_seconds == 0


def test_what_has_ended_is_seen_behind_any_backlog(seen_by, olga, run_of, monkeypatch):
    monkeypatch.setattr("console.latest.MOST", 4)
    monkeypatch.setattr("console.latest.MOST_COUNTED", 4)
    failed = [run_of("failed", n * 20 * MINUTE) for n in range(3)]
    for _ in range(9):
        run_of("queued", MINUTE)

    page = seen_by(olga, "/")
    throughput = page.context["now"].throughput

    assert (throughput.soon, throughput.hour, throughput.wait_seconds) == (1, 3, 0)
    assert [run.pk for run in page.context["failures"]] == [run.pk for run in failed]
    assert "The last 4 runs, submitted within" in text_of(page)
    assert "Ended, last 5 min</dt><dd>1</dd>" in text_of(page)


def test_of_more_runs_than_are_looked_at_it_is_said_that_there_are_more(seen_by, olga, run_of, monkeypatch):
    monkeypatch.setattr("console.latest.MOST", 3)
    for n in (1, 2, 3, 20, 30):
        run_of("succeeded", n * MINUTE)
    page = seen_by(olga, "/")
    throughput = page.context["now"].throughput
    assert (throughput.soon, throughput.is_soon_cut, throughput.hour, throughput.is_hour_cut) == (3, True, 3, True)
    assert 'Ended, last 5 min</dt><dd><span class="small">over</span> 3</dd>' in text_of(page)
    assert "No runs have failed in the last 24 h." in text_of(page)
    assert "with medians of the last 3" in text_of(page)
    monkeypatch.setattr("console.latest.MOST", 4)

    throughput = seen_by(olga, "/").context["now"].throughput

    assert (throughput.soon, throughput.is_soon_cut, throughput.hour, throughput.is_hour_cut) == (3, False, 4, True)


def test_what_was_submitted_long_ago_and_ends_now_is_seen(seen_by, olga, run_of, monkeypatch):
    monkeypatch.setattr("console.latest.MOST", 3)
    old, now = run_of("failed"), clock.now()
    write(old, created_at=now - timedelta(days=30))
    for _ in range(5):
        run_of("succeeded", 2 * MINUTE)

    page = seen_by(olga, "/")

    assert [run.pk for run in page.context["failures"]] == [old.pk]


def test_workers_say_what_they_do(seen_by, olga, run_of, worker):
    run = run_of("running", name="letter.txt")
    theirs = force_status(RunFactory(input_document__name="secret.pdf"), "running")
    job_run = JobRunFactory(job_name="rss_ingestion", owner=W1)
    StageFactory(status="RUNNING")
    write(worker, doing=[f"run {run.pk}", f"run {theirs.pk}", f"job_run {job_run.pk}", "stage 7"])

    page = seen_by(olga, "/")
    (status,) = page.context["now"].worker_states

    assert [work.url for work in status.works if work.url] == [f"/runs/{run.pk}/", "/jobs/rss_ingestion/"]
    assert "a run of another workspace" in page.content.decode()
    assert "secret.pdf" not in page.content.decode()
    assert "1 stage" in page.content.decode()


def test_a_worker_that_fell_silent_is_shown_until_it_is_started_again(seen_by, olga, worker):
    write(worker, heartbeat_at=clock.now() - 10 * MINUTE)

    silent = [status.state for status in seen_by(olga, "/").context["now"].worker_states]
    again = {field: getattr(worker, field) for field in ("name", "host", "machine", "pid", "pid_started", "version")}
    Worker.objects.create(**again, boot_id="boot2", started_at=clock.now(), heartbeat_at=clock.now())

    assert silent == ["silent"]
    assert [status.state for status in seen_by(olga, "/").context["now"].worker_states] == ["alive"]


def test_the_latest_failures_are_those_that_ended_last(seen_by, olga, run_of):
    run_of("succeeded")
    first, second = run_of("failed", MINUTE), run_of("failed", 2 * MINUTE)
    timed_out = run_of("failed", 3 * MINUTE, failure_type="TIMED_OUT")
    force_status(RunFactory(), "failed")

    page = seen_by(olga, "/")

    assert [run.pk for run in page.context["failures"]] == [first.pk, second.pk, timed_out.pk]
    assert "timed out" in page.content.decode()


def test_runs_are_drawn_by_the_hour_and_told_as_a_table(seen_by, olga, run_of):
    for _ in range(3):
        run_of("succeeded", 5 * 60 * MINUTE)
    run_of("failed", 5 * 60 * MINUTE)
    run_of("failed", MINUTE, failure_type="TIMED_OUT")

    page = seen_by(olga, "/")
    chart = page.context["chart"]

    assert (chart.highest, chart.step, len(chart.bars)) == (4, "1 h", 25)
    assert [(share.outcome, share.count) for share in chart.shares] == [
        ("succeeded", 3),
        ("timed_out", 1),
        ("failed", 1),
    ]
    assert 'role="img" aria-label="Runs by time of submission and by outcome: 3 succeeded,' in text_of(page)
    assert "5 runs submitted in the last 24 h." in text_of(page)
    # A minute ago may still be in the previous hour.
    assert [bar.boxes[0].tone for bar in chart.bars if bar.boxes] == ["good", "warn"]


def test_many_runs_are_drawn_by_shorter_times(olga, run_of, monkeypatch):
    monkeypatch.setattr("console.latest.MOST_COUNTED", 3)
    for n in range(5):
        run_of("succeeded", (20 - n) * MINUTE)

    found = latest.submitted(olga)
    chart = charts.of_runs(found)

    assert found.is_cut
    assert chart.step == "1 min"
    assert "The last 3 runs, submitted within 18 min" in chart.about
    assert sum(share.count for share in chart.shares) == 3


def test_thousands_of_runs_are_drawn_by_the_hour(seen_by, olga, run_of):
    copies_of(run_of("succeeded", 5 * 60 * MINUTE), 2_599)
    copies_of(run_of("failed", 3 * 60 * MINUTE, failure_type="TIMED_OUT"), 399)

    page = seen_by(olga, "/")
    chart = page.context["chart"]

    assert (chart.highest, chart.step, len(chart.bars)) == (2_600, "1 h", 25)
    assert [(share.outcome, share.count) for share in chart.shares] == [("succeeded", 2_600), ("timed_out", 400)]
    assert "3,000 runs submitted in the last 24 h." in text_of(page)
    for root in (UserFactory(is_superuser=True), MembershipFactory(workspace=run_of().workspace).user):
        assert sum(share.count for share in seen_by(root, "/").context["chart"].shares) == 3_001


def test_no_box_is_drawn_outside_of_its_chart(olga, run_of):
    for n in range(30):
        run_of(["succeeded", "failed", "cancelled"][n % 3], n * 47 * MINUTE)

    for bar in charts.of_runs(latest.submitted(olga)).bars:
        assert all(-0.1 <= box.y <= charts.HEIGHT for box in bar.boxes)
        assert all(0 <= box.x <= charts.WIDTH - box.width for box in bar.boxes)


def test_slots_of_today_are_told_by_job(seen_by, olga):
    now = clock.now()
    row = ScheduledJobFactory(name="rss_ingestion", cron="* * * * *", created_at=now - timedelta(days=2))
    minute = now.replace(second=0, microsecond=0)
    ran = JobRunFactory(job_name=row.name, scheduled_for=minute, created_at=max(minute, now - MINUTE))
    force_status(ran, "success")

    job_slots = next(each for each in seen_by(olga, "/").context["now"].job_slots if each.job.name == row.name)
    states = dict(job_slots.slots)

    assert states[minute] == "succeeded"
    assert states[minute + MINUTE] == "expected" or (minute + MINUTE).date() != now.date()
    assert states[minute - 60 * MINUTE] == "missed"


def test_what_was_decided_of_slots_is_no_miss(seen_by, olga):
    now = clock.now()
    row = ScheduledJobFactory(name="rss_ingestion", cron="* * * * *", created_at=now - timedelta(days=2))
    minute = now.replace(second=0, microsecond=0)
    data = {"first": (minute - 90 * MINUTE).isoformat(), "last": (minute - 60 * MINUTE).isoformat(), "count": 31}
    Event.objects.create(
        **{"subject_kind": "scheduled_job", "subject_id": row.pk, "sequence": 1, "at": now},
        **{"kind": "SLOTS_COALESCED", "data": data},
    )

    job_slots = next(each for each in seen_by(olga, "/").context["now"].job_slots if each.job.name == row.name)
    states = dict(job_slots.slots)

    assert {states[minute - n * MINUTE] for n in range(60, 91)} == {"coalesced"}
    assert states[minute - 91 * MINUTE] == states[minute - 59 * MINUTE] == "missed"


def test_slots_before_a_job_was_declared_are_none(seen_by, olga):
    row = ScheduledJobFactory(name="rss_ingestion", cron="* * * * *")

    job_slots = next(each for each in seen_by(olga, "/").context["now"].job_slots if each.job.name == row.name)

    assert all(slot > row.created_at for slot, _ in job_slots.slots)


def test_it_says_how_fresh_it_is_and_follows_what_happens(seen_by, olga):
    text = seen_by(olga, "/").content.decode()

    assert "As of <time" in text
    assert 'hx-sse:connect="/live/"' in text


def test_each_sees_their_own(seen_by, olga, run_of):
    theirs = force_status(RunFactory(input_document__name="secret.pdf"), "failed", error_message="secret")
    other = MembershipFactory(workspace=theirs.workspace).user
    mine = run_of("failed")
    root = UserFactory(is_superuser=True)

    seen = {person: {run.pk for run in seen_by(person, "/").context["failures"]} for person in (olga, other, root)}

    assert seen == {olga: {mine.pk}, other: {theirs.pk}, root: {mine.pk, theirs.pk}}
    assert "secret" not in seen_by(olga, "/").content.decode()


def test_hostile_words_stay_text(seen_by, olga, workspace, worker):
    configuration = ConfigurationFactory(workspace=workspace, name=HOSTILE)
    document = DocumentFactory(workspace=workspace, name=HOSTILE)
    build = BuildFactory(configuration=configuration, status="failed")
    write(build, error_message=HOSTILE)
    for status in ("failed", "running"):
        run = RunFactory(configuration=configuration, input_document=document, build=build)
        force_status(run, status, **({"error_message": HOSTILE} if status == "failed" else {}))
    write(
        FeedFactory(title=HOSTILE),
        failures=3,
        failing_since=clock.now(),
        last_error=HOSTILE,
        created_at=clock.now() - timedelta(days=9),
    )
    write(worker, name=HOSTILE, host=HOSTILE)

    text = seen_by(olga, "/").content.decode()

    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "{{7*7}}$(id)%s" in text


@pytest.mark.parametrize("workspaces", [1, 4, 7])
def test_it_asks_few_questions(asks_at_most, olga, run_of, worker, workspaces):
    for _ in range(workspaces - 1):
        theirs = MembershipFactory(user=olga).workspace
        force_status(RunFactory(configuration__workspace=theirs), "failed")
    for status in ("queued", "running", "failed", "succeeded"):
        for _ in range(5):
            run_of(status, 20 * MINUTE)
    ScheduledJobFactory(name="rss_ingestion", created_at=clock.now() - timedelta(days=2))
    for _ in range(5):
        write(
            FeedFactory(),
            failures=3,
            failing_since=clock.now(),
            last_error="gone",
            created_at=clock.now() - timedelta(days=9),
        )
    clock.keep_measured()

    asks_at_most(15, olga, "/")


def test_it_asks_few_questions_when_nobody_works(asks_at_most, olga, run_of):
    run_of("queued", 20 * MINUTE)
    run_of("running", 20 * MINUTE)
    ScheduledJobFactory(name="rss_ingestion", created_at=clock.now() - timedelta(days=2))
    clock.keep_measured()

    asks_at_most(15, olga, "/")
