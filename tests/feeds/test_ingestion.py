"""The job `rss_ingestion`: seed 001 §8.1 and §9, F12, F13, F16."""

import re
import threading
import time
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pytest
from django.conf import settings as project
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from feeds import ingestion, lifecycle
from feeds.checking import check
from feeds.ingestion import INGESTION, ingest
from feeds.models import FeedSource, RawArticle
from schedules import job_runs
from schedules.jobs import JobFailed, job_named
from tests.factories import FeedFactory, write
from tests.feeds import servers
from tests.feeds.samples import item, rss, stories
from tests.feeds.turns import turn_of
from work import clock
from work.claims import Interrupted

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def reachable(settings):
    settings.ADE_FEED_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def feed_of(server):
    def feed_of(behaviour, path="", **values):
        path = path or f"/{FeedSource.objects.count()}.xml"
        return FeedFactory(url=server.on(path, behaviour), **values)

    return feed_of


def good(first, last, site="https://aster.example"):
    return servers.serving(rss(*stories(first, last, site)), etag=f'"{first}-{last}"')


def asked_once_more(turn):
    """Run the next slot, with all feeds due again."""
    job_runs.succeed(turn.claim)
    FeedSource.objects.update(next_check_at=clock.now())
    return ingest(turn_of(INGESTION, turn.scheduled_for + timedelta(minutes=15)))


def test_the_job_is_declared():
    assert job_named("rss_ingestion") is INGESTION
    assert "feeds.ingestion.INGESTION" in project.JOBS
    assert (INGESTION.cron, INGESTION.time_zone, INGESTION.coalesce) == ("*/15 * * * *", "UTC", True)
    assert INGESTION.misfire_grace == timedelta(seconds=300)
    assert INGESTION.max_runtime == timedelta(minutes=10)


def test_it_is_the_example_of_how_a_job_is_declared(settings):
    page = Path(settings.BASE_DIR, "docs/jobs.md").read_text()

    (example,) = re.findall(r"^```python\n(INGESTION = .+?)^```", page, re.MULTILINE | re.DOTALL)
    assert example in Path(ingestion.__file__).read_text()


def test_the_feeds_that_are_due_are_asked(feed_of, server):
    feed_of(good(1, 3))
    feed_of(good(4, 5))
    feed_of(good(6, 7), "/later.xml", next_check_at=clock.now() + timedelta(hours=1))
    lifecycle.pause(feed_of(good(8, 9), "/paused.xml").pk, actor="olga")

    assert ingest(turn_of(INGESTION)) == 5

    assert sorted(server.paths()) == ["/0.xml", "/1.xml"]
    assert RawArticle.objects.count() == 5
    assert FeedSource.objects.filter(checked_at=None).count() == 2


def test_without_feeds_there_is_nothing_to_do():
    assert ingest(turn_of(INGESTION)) == 0


def test_the_next_slot_stores_nothing_again(feed_of):
    for number in range(3):
        feed_of(good(number, number + 5))
    turn = turn_of(INGESTION)
    assert ingest(turn) == 8

    assert asked_once_more(turn) == 0
    assert RawArticle.objects.count() == 8


def test_a_feed_is_due_again_in_the_next_slot(feed_of, settings):
    feed = feed_of(good(1, 1))
    slot = clock.now() - timedelta(minutes=5)

    ingest(turn_of(INGESTION, slot))

    feed.refresh_from_db()
    assert feed.next_check_at == slot + timedelta(seconds=settings.ADE_FEED_INTERVAL_SECONDS)


def test_one_that_fails_keeps_nobody_from_the_others(feed_of, server):
    """F12, F13: each failure is isolated."""
    feed_of(servers.failing(500))
    feed_of(servers.serving(b"<html>Sorry"))
    feed_of(servers.resetting(b"<rss"))
    feed_of(servers.bomb(20))
    feed_of(servers.redirecting("http://10.0.0.1/"))
    FeedFactory(url="http://169.254.169.254/latest/meta-data")
    FeedFactory(url="http://127.0.0.1:1/nobody")
    feed_of(good(1, 10))

    assert ingest(turn_of(INGESTION)) == 10

    assert FeedSource.objects.filter(failures=0).count() == 1
    assert not FeedSource.objects.filter(failures=1, last_error="").exists()


def test_the_job_fails_when_no_feed_answers(feed_of):
    for _ in range(3):
        feed_of(servers.failing(503))

    with pytest.raises(JobFailed, match=r"None of the feeds that were due answered \(3 failed\)"):
        ingest(turn_of(INGESTION))
    assert FeedSource.objects.filter(failures=1).count() == 3


def test_the_job_has_succeeded_when_those_that_failed_are_few(feed_of):
    """They are alone in this slot because other feeds are backing off."""
    feed_of(servers.failing(503))
    for _ in range(2):
        feed_of(good(1, 1), next_check_at=clock.now() + timedelta(hours=1))

    assert ingest(turn_of(INGESTION)) == 0


def test_feeds_are_asked_at_the_same_time_but_not_all(feed_of, monkeypatch):
    at_once, most, lock = [0], [0], threading.Lock()

    def busy(call):
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        call.wait(0.3)
        with lock:
            at_once[0] -= 1
        good(1, 2)(call)

    for _ in range(20):
        feed_of(busy)

    ingest(turn_of(INGESTION))

    assert 1 < most[0] <= ingestion.AT_ONCE


def test_threads_ask_no_database(feed_of, monkeypatch):
    connected = []
    connect = BaseDatabaseWrapper.ensure_connection

    def noting(self):
        connected.append(threading.current_thread().name)
        return connect(self)

    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", noting)
    feed_of(good(1, 2))
    feed_of(servers.failing(500))

    ingest(turn_of(INGESTION))

    assert set(connected) == {threading.current_thread().name}


def test_whoever_has_lost_the_slot_stores_nothing_more(feed_of):
    feed = feed_of(good(1, 2))
    turn = turn_of(INGESTION)
    turn.claim.lost.set()

    with pytest.raises(Interrupted, match="lease_lost"):
        ingest(turn)
    feed.refresh_from_db()
    assert (feed.checked_at, RawArticle.objects.count()) == (None, 0)


def test_a_worker_that_stops_does_not_wait_for_feeds_that_have_not_begun(feed_of, server):
    turn = turn_of(INGESTION)

    def stopping(call):
        turn.claim.stopping.set()
        good(1, 2)(call)

    for _ in range(30):
        feed_of(stopping)

    with pytest.raises(Interrupted, match="worker_stopping"):
        ingest(turn)
    assert len(server.asked) <= ingestion.AT_ONCE
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("feeds")]


def test_a_slot_that_has_had_its_time_says_so_and_leaves_the_rest_to_the_next(feed_of):
    turn = turn_of(INGESTION)

    def late(call):
        turn.until = time.monotonic()
        good(1, 2)(call)

    first = feed_of(late)

    with pytest.raises(JobFailed, match="did not finish within 600 s"):
        ingest(turn)
    first.refresh_from_db()
    assert first.checked_at is None
    assert asked_once_more(turn) == 2


def test_a_database_that_is_gone_is_no_fault_of_a_feed(feed_of, monkeypatch):
    feed_of(good(1, 2))

    def gone(*arguments, **values):
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr("feeds.checking.store", gone)

    with pytest.raises(OperationalError, match="closed the connection"):
        ingest(turn_of(INGESTION))
    assert FeedSource.objects.get().failures == 0


@pytest.mark.django_db(transaction=True)
def test_two_feeds_bring_the_same_at_once(feed_of, threads):
    """F16, end to end: one row per URL, and both feeds succeed."""
    meeting = Barrier(2, timeout=300)

    def together(call):
        meeting.wait()
        good(1, 50)(call)

    feeds = [feed_of(together), feed_of(together)]

    checked = threads.together([lambda feed=feed: check(feed, actor="olga") for feed in feeds])

    assert sum(each.new for each in checked) == RawArticle.objects.count() == 50
    assert sum(each.known for each in checked) == 50
    assert not FeedSource.objects.exclude(failures=0).exists()


@pytest.mark.django_db(transaction=True)
def test_a_person_and_the_job_ask_the_same_feed_at_once(feed_of, threads):
    meeting = Barrier(2, timeout=300)

    def together(call):
        meeting.wait()
        good(1, 50)(call)

    feed = feed_of(together)
    turn = turn_of(INGESTION)

    new, checked = threads.together([lambda: ingest(turn), lambda: check(feed, actor="olga")])

    assert new + checked.new == RawArticle.objects.count() == 50
    assert FeedSource.objects.get().failures == 0


def test_the_longest_waiting_feed_is_asked_first(feed_of, server, monkeypatch):
    monkeypatch.setattr(ingestion, "AT_ONCE", 1)
    for number, minutes in enumerate((1, 3, 2)):
        write(feed_of(good(number, number)), next_check_at=clock.now() - timedelta(minutes=minutes))

    ingest(turn_of(INGESTION))

    assert server.paths() == ["/1.xml", "/2.xml", "/0.xml"]


def test_items_of_one_feed_may_name_those_of_another(feed_of):
    feed_of(servers.serving(rss(item("Here", "https://aster.example/1"), item("There", "https://other.example/1"))))
    feed_of(servers.serving(rss(item("There too", "https://other.example/1?utm_source=aster"))))

    assert ingest(turn_of(INGESTION)) == 2
