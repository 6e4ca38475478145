from datetime import timedelta

import pytest

from console.models import Visit
from feeds import lifecycle
from runs import queue
from tests.factories import (
    BuildFactory,
    DocumentFactory,
    FeedFactory,
    JobRunFactory,
    RunFactory,
    force_status,
    write,
)
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

HOSTILE = "<script>alert(1)</script>{{7*7}}$(id)%s"
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def run_of(configuration, build, workspace):
    def run_of(status, ago, **said):
        document = DocumentFactory(workspace=workspace, name=said.pop("name", "invoice.pdf"))
        run = RunFactory(configuration=configuration, build=build, input_document=document)
        at = clock.now() - ago
        return force_status(run, status, created_at=at, started_at=at, finished_at=at, **said)

    return run_of


def looked(person, ago):
    at = clock.now() - ago
    return Visit.objects.create(person=person, looked_until=at, last_seen_at=at)


def until_of(page):
    return page.context["changes"].absence.until.isoformat()


def test_what_has_changed_since_is_told(seen_by, olga, run_of, configuration):
    looked(olga, HOUR)
    run_of("succeeded", HOUR / 2)
    failed = run_of("failed", HOUR / 2)
    run_of("failed", 2 * HOUR)
    BuildFactory(configuration=configuration, fingerprint="another", status="failed")
    force_status(JobRunFactory(job_name="rss_ingestion"), "failed", error_message="nobody answered")
    write(FeedFactory(title="Gazette"), failures=2, failing_since=clock.now() - HOUR / 2, last_error="it is gone")
    write(FeedFactory(title="Herald"), failures=9, failing_since=clock.now() - 2 * HOUR, last_error="it is gone")
    queue.pause(actor="ada", reason="a disk is full")

    page = seen_by(olga, "/news/")
    text = " ".join(page.content.decode().split())

    assert page.context["changes"].outcomes == {"succeeded": 1, "failed": 1}
    assert f'<a href="/runs/{failed.pk}/">' in text
    assert "no such package" in text
    assert "rss_ingestion</a>: 1 slot failed" in text
    assert "Gazette" in text
    assert "Herald" not in text
    assert "Paused by ada" in text
    assert "a disk is full" in text


@pytest.mark.parametrize("status", ["failed", "skipped_timeout"])
def test_a_slot_that_began_before_somebody_looked_is_told_when_it_ends(seen_by, olga, status):
    now = clock.now()
    looked(olga, HOUR)
    long, before = (JobRunFactory(job_name=name) for name in ("retention_cleanup", "rss_ingestion"))
    force_status(long, status, created_at=now - 2 * HOUR, started_at=now - 2 * HOUR, finished_at=now - HOUR / 2)
    force_status(before, status, created_at=now - 3 * HOUR, started_at=now - 3 * HOUR, finished_at=now - 2 * HOUR)

    (failed,) = seen_by(olga, "/news/").context["changes"].failed_jobs

    assert (failed.job, failed.number) == ("retention_cleanup", 1)


def test_feeds_that_began_to_fail_since_are_told_whenever_they_last_answered(seen_by, olga):
    looked(olga, HOUR)
    soon, never, silent, well = (FeedFactory() for _ in range(4))
    write(soon, succeeded_at=clock.now() - HOUR - MINUTE)
    write(silent, failures=3, failing_since=clock.now() - 2 * HOUR, last_error="404", succeeded_at=clock.now() - DAY)
    for feed in (soon, never):
        lifecycle.record_failure(feed, "it is gone", clock.now(), actor="w1")
    lifecycle.record_success(well.pk, clock.now(), actor="w1")

    assert seen_by(olga, "/news/").context["changes"].feeds == [soon, never]


def test_what_has_ended_is_told_behind_any_backlog(seen_by, olga, run_of, monkeypatch):
    monkeypatch.setattr("console.latest.MOST", 3)
    looked(olga, HOUR)
    failed = run_of("failed", HOUR / 2)
    for _ in range(5):
        write(RunFactory(configuration=failed.configuration), created_at=clock.now())

    page = seen_by(olga, "/news/")

    assert page.context["changes"].outcomes == {"failed": 1}
    assert "Nothing has changed" not in page.content.decode()
    assert "there are more" not in page.content.decode()


def test_of_more_runs_than_are_counted_it_is_said_that_there_are_more(seen_by, olga, run_of, monkeypatch):
    monkeypatch.setattr("console.latest.MOST", 3)
    looked(olga, HOUR)
    for _ in range(5):
        run_of("succeeded", HOUR / 2)

    page = seen_by(olga, "/news/")

    assert page.context["changes"].outcomes == {"succeeded": 3}
    assert "Only the last 3 runs, which ended since " in page.content.decode()
    assert "there are more" in page.content.decode()


def test_a_run_that_was_submitted_long_ago_is_news_when_it_ends(seen_by, olga, run_of):
    looked(olga, HOUR)
    write(run_of("failed", HOUR / 2), created_at=clock.now() - timedelta(days=30))

    assert seen_by(olga, "/news/").context["changes"].outcomes == {"failed": 1}


def test_looking_alone_writes_nothing(seen_by, olga, run_of):
    run_of("failed", HOUR)

    first, second = seen_by(olga, "/news/"), seen_by(olga, "/news/")

    assert not Visit.objects.exists()
    assert first.context["changes"].outcomes == second.context["changes"].outcomes == {"failed": 1}


def test_what_somebody_has_seen_is_new_no_more(seen_by, pressed_by, olga, ravi, run_of):
    run_of("failed", HOUR)

    page = pressed_by(olga, "/news/seen/", until=until_of(seen_by(olga, "/news/")))

    assert page.said[0].startswith("Marked everything up to ")
    assert page.context["changes"].outcomes == {}
    assert seen_by(ravi, "/news/").context["changes"].outcomes == {"failed": 1}


def test_what_came_behind_the_page_is_still_new(seen_by, pressed_by, olga, run_of):
    until = until_of(seen_by(olga, "/news/"))
    run_of("failed", timedelta())

    page = pressed_by(olga, "/news/seen/", until=until)

    assert page.context["changes"].outcomes == {"failed": 1}


def test_an_older_page_takes_nothing_back(seen_by, pressed_by, olga):
    old = until_of(seen_by(olga, "/news/"))
    pressed_by(olga, "/news/seen/", until=clock.now().isoformat())
    before = Visit.objects.get()

    page = pressed_by(olga, "/news/seen/", until=old)

    assert page.said == ["Nothing was changed: you had already marked this as seen."]
    assert Visit.objects.get().looked_until == before.looked_until


def test_nobody_looks_into_the_future(pressed_by, olga):
    pressed_by(olga, "/news/seen/", until=(clock.now() + timedelta(days=9)).isoformat())

    assert Visit.objects.get().looked_until <= clock.now()


@pytest.mark.parametrize("until", ["", "yesterday", "2026-13-45T00:00:00+00:00", "2026-01-01T00:00:00", HOSTILE])
def test_what_is_no_moment_changes_nothing(pressed_by, olga, until):
    page = pressed_by(olga, "/news/seen/", until=until)

    assert page.said[0].startswith("Nothing was changed")
    assert not Visit.objects.exists()


def test_who_was_away_for_long_is_shown_a_week(seen_by, olga, run_of):
    looked(olga, timedelta(days=30))
    run_of("failed", timedelta(days=20))
    run_of("failed", timedelta(days=5))

    page = seen_by(olga, "/news/")

    assert page.context["changes"].outcomes == {"failed": 1}
    assert "Only the last week is shown." in page.content.decode()


def test_nothing_new_is_said_calmly(seen_by, olga):
    assert "Nothing has changed" in seen_by(olga, "/news/").content.decode()


def test_nobody_is_told_of_others(seen_by, pressed_by, zed, olga, run_of):
    stranger = force_status(RunFactory(input_document__name="secret.pdf"), "failed", error_message="secret")
    run_of("failed", HOUR)

    text = seen_by(olga, "/news/").content.decode()

    assert stranger.error_message not in text
    assert seen_by(zed, "/news/").status_code == 403
    assert pressed_by(zed, "/news/seen/", until=clock.now().isoformat()).status_code == 403
    assert seen_by(olga, "/news/seen/").status_code == 405


def test_hostile_words_stay_text(seen_by, olga, run_of):
    run_of("failed", HOUR, name=HOSTILE[:40], error_message=HOSTILE)
    queue.pause(actor="ada", reason=HOSTILE)
    write(
        FeedFactory(title=HOSTILE), failures=2, failing_since=clock.now(), last_error=HOSTILE, succeeded_at=clock.now()
    )

    assert "<script>alert" not in seen_by(olga, "/news/").content.decode()


def test_it_asks_few_questions(asks_at_most, olga, run_of):
    looked(olga, HOUR)
    for _ in range(20):
        run_of("failed", HOUR / 2)
        FeedFactory()
    queue.pause(actor="ada")
    clock.keep_measured()

    asks_at_most(15, olga, "/news/")
