"""Checking one feed: fetching, reading and storing (seed 001 §8.1), and the consequences of each answer."""

from datetime import timedelta

import pytest
from django.db import connection

from feeds import check_times, checking, lifecycle, storing
from feeds.checking import check, preview
from feeds.fetching import FetchFailed
from feeds.models import FeedSource, RawArticle
from feeds.reading import ReadFailed
from tests.factories import ArticleFactory, FeedFactory, age, events_of, told, write
from tests.feeds import servers
from tests.feeds.samples import item, rss, stories
from work import clock

DAY = timedelta(days=1)
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def reachable(settings):
    settings.ADE_FEED_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def feed(server):
    server.on(
        "/feed.xml", servers.serving(rss(*stories(1, 3)), etag='"1"', last_modified="Sun, 01 Mar 2026 12:00:00 GMT")
    )
    return FeedFactory(url=server.url("/feed.xml"), title="")


def answer_with(server, feed, behaviour):
    server.on("/feed.xml", behaviour)
    feed.refresh_from_db()
    return check(feed, actor="olga")


def fresh(feed):
    feed.refresh_from_db()
    return feed


def test_what_a_feed_tells_is_kept(feed):
    before = clock.now()

    checked = check(feed, actor="olga")

    assert (checked.new, checked.known, checked.refused, checked.flaw, checked.failure) == (3, 0, 0, "", "")
    assert sorted(RawArticle.objects.values_list("title", flat=True)) == ["Story 1", "Story 2", "Story 3"]
    fresh(feed)
    assert (feed.title, feed.site_url) == ("Aster News", "https://aster.example/")
    assert (feed.etag, feed.last_modified) == ('"1"', "Sun, 01 Mar 2026 12:00:00 GMT")
    assert before <= feed.checked_at <= clock.now()
    assert feed.succeeded_at == feed.checked_at
    assert (feed.failures, feed.last_error) == (0, "")
    assert feed.next_check_at == checked.next_check_at
    assert told(feed) == ["FEED_ADDED"]


def test_a_feed_that_has_nothing_new_says_so_and_is_not_read(feed, server):
    check(feed, actor="olga")
    age(feed, 3600)

    checked = check(fresh(feed), actor="olga")

    assert (checked.unchanged, checked.new) == (True, 0)
    assert server.asked[1].headers["if-none-match"] == '"1"'
    assert fresh(feed).next_check_at == checked.next_check_at > clock.now()
    assert feed.etag == '"1"'


def test_the_same_again_stores_nothing(feed, server):
    check(feed, actor="olga")

    checked = answer_with(server, feed, servers.serving(rss(*stories(1, 4)), etag='"2"'))

    assert (checked.new, checked.known) == (1, 3)
    assert fresh(feed).etag == '"2"'


def test_what_a_person_has_called_it_stays(feed):
    write(feed, title="My news", site_url="https://mine.example/")

    check(feed, actor="olga")

    assert (fresh(feed).title, feed.site_url) == ("My news", "https://mine.example/")


@pytest.mark.parametrize("site", ["javascript:alert(1)", "https://a.example/" + "x" * 900, ""])
def test_what_it_calls_its_site_is_kept_only_if_people_can_go_there(feed, server, site):
    answer_with(server, feed, servers.serving(rss(about=f"<title>x</title><link>{site}</link>")))

    assert fresh(feed).site_url == ""


def test_a_failure_is_told_and_the_feed_left_alone(feed, server):
    checked = answer_with(server, feed, servers.failing(500))

    assert (checked.new, checked.code) == (0, "http_status")
    assert (
        checked.failure
        == fresh(feed).last_error
        == f"The server at {server.url('')} answered 500 Internal Server Error instead of 200 OK."
    )
    assert (feed.failures, feed.succeeded_at) == (1, None)
    assert clock.now() < feed.next_check_at == checked.next_check_at
    event = events_of(feed).last()
    assert (event.kind, event.actor, event.message, event.data) == (
        "FEED_FAILED",
        "olga",
        checked.failure,
        {"code": "http_status"},
    )


def test_what_it_knew_before_stays_when_it_fails(feed, server):
    check(feed, actor="olga")

    answer_with(server, feed, servers.serving(b"<html>Sorry", etag='"sorry"'))

    assert fresh(feed).etag == '"1"'
    assert RawArticle.objects.count() == 3


def test_the_same_failure_again_is_no_news(feed, server):
    for status in (500, 500, 404, 404):
        answer_with(server, feed, servers.failing(status))

    assert told(feed) == ["FEED_ADDED", "FEED_FAILED", "FEED_FAILED"]
    assert fresh(feed).failures == 4


def test_a_feed_fails_since_the_first_of_its_failures_in_a_row(feed, server):
    answer_with(server, feed, servers.failing(500))
    began = fresh(feed).failing_since
    assert began == feed.checked_at
    answer_with(server, feed, servers.failing(404))
    answer_with(server, feed, servers.failing(404))
    assert (fresh(feed).failures, feed.failing_since) == (3, began)
    assert feed.checked_at > began

    answer_with(server, feed, servers.serving(rss(*stories(1, 1))))

    assert (fresh(feed).failures, feed.failing_since) == (0, None)


@pytest.mark.parametrize("message", ["404", "500"])
def test_a_feed_that_has_answered_meanwhile_fails_since_now(feed, message):
    lifecycle.record_failure(fresh(feed), "404", clock.now(), actor="olga")
    early = fresh(feed).failing_since
    read = FeedSource.objects.get(pk=feed.pk)
    lifecycle.record_success(feed.pk, clock.now(), actor="ravi")

    assert lifecycle.record_failure(read, message, clock.now(), actor="olga")

    assert fresh(feed).failing_since > early


def test_a_feed_that_answers_again_has_recovered(feed, server):
    answer_with(server, feed, servers.failing(500))

    answer_with(server, feed, servers.serving(rss(*stories(1, 1))))

    assert told(feed)[-1] == "FEED_RECOVERED"
    assert (fresh(feed).failures, feed.last_error) == (0, "")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<html>Sorry", "not_a_feed"),
        (b"<rss version='2.0'><channel>", "malformed"),
        (b'<!DOCTYPE rss [<!ENTITY a "b">]>' + rss(), "forbidden"),
    ],
)
def test_what_is_no_feed_is_a_failure(feed, server, body, code):
    """F13: not a feed."""
    checked = answer_with(server, feed, servers.serving(body))

    assert (checked.code, fresh(feed).failures) == (code, 1)


def test_what_could_not_be_taken_is_told_once(feed, server):
    """F15: the other items are stored."""
    flawed = rss(*stories(1, 2), item("Bad", "javascript:alert(1)"))
    for _ in range(3):
        checked = answer_with(server, feed, servers.serving(flawed))

    assert (checked.known, checked.refused) == (2, 1)
    assert (
        checked.flaw
        == fresh(feed).last_error
        == (
            "Items that could not be stored: 1."
            " 'Bad': The URL 'javascript:alert(1)' must begin with https:// or http://."
        )
    )
    assert (feed.failures, told(feed)) == (0, ["FEED_ADDED", "FEED_FLAWED"])


def test_a_flaw_is_gone_when_the_feed_is_whole(feed, server):
    answer_with(server, feed, servers.serving(rss(item(about="&nbsp;"))))
    assert fresh(feed).last_error.startswith(
        "The syntax of the feed is broken (line 1: undefined entity), so some of it may be missing."
    )

    answer_with(server, feed, servers.serving(rss(item())))

    assert (fresh(feed).last_error, told(feed)) == ("", ["FEED_ADDED", "FEED_FLAWED"])


def test_a_flaw_stays_while_nothing_is_new(feed, server):
    behaviour = servers.serving(rss(item("Bad", "javascript:alert(1)")), etag='"x"')
    answer_with(server, feed, behaviour)

    assert answer_with(server, feed, behaviour).unchanged
    assert fresh(feed).last_error.startswith("Items that could not be stored: 1. ")


def test_a_feed_that_was_cut_off_is_read_again(feed, server):
    """The server died without announcing a length, so the ETag belongs to the whole feed."""
    body, dated = rss(*stories(1, 10)), "Sun, 01 Mar 2026 12:00:00 GMT"
    begins = servers.head(ETag='"x"', Last_Modified=dated, Content_Type="application/rss+xml") + b"\r\n"
    cut = answer_with(server, feed, servers.saying(begins + body[: len(body) // 2]))
    assert 0 < cut.new < 10
    assert (fresh(feed).etag, feed.last_modified) == ("", "")

    whole = answer_with(server, feed, servers.serving(body, etag='"x"', last_modified=dated))

    assert (whole.unchanged, cut.new + whole.new) == (False, 10)
    assert (fresh(feed).etag, feed.last_error) == ('"x"', "")


def test_a_flawed_feed_that_had_failed_has_recovered(feed, server):
    answer_with(server, feed, servers.failing(500))

    answer_with(server, feed, servers.serving(rss(item(about="&nbsp;"))))

    assert told(feed) == ["FEED_ADDED", "FEED_FAILED", "FEED_RECOVERED"]
    assert (fresh(feed).failures, feed.last_error[:32]) == (0, "The syntax of the feed is broken")


@pytest.mark.long
def test_more_items_than_are_read_are_told(feed, server):
    checked = answer_with(server, feed, servers.serving(rss(*stories(1, 5001))))

    assert (checked.new, checked.flaw) == (
        5000,
        "The feed has too many items; only the first 5000 were read.",
    )


def test_a_feed_that_has_moved_for_good_is_asked_there(feed, server):
    there = server.on("/new.xml", servers.serving(rss(*stories(1, 1))))
    before = feed.url

    answer_with(server, feed, servers.redirecting("/new.xml", 301))

    assert fresh(feed).url == there
    event = events_of(feed).get(kind="FEED_MOVED")
    assert event.data == {"from": before, "to": there}


@pytest.mark.parametrize("status", [302, 303, 307])
def test_one_that_is_elsewhere_for_now_is_asked_again_where_it_was(feed, server, status):
    server.on("/new.xml", servers.serving(rss(*stories(1, 1))))

    assert answer_with(server, feed, servers.redirecting("/new.xml", status)).new == 1
    assert fresh(feed).url == server.url("/feed.xml")


def test_one_that_has_moved_to_another_feed_stays_and_says_so(feed, server):
    FeedFactory(url=server.on("/new.xml", servers.serving(rss(*stories(1, 1)))))

    checked = answer_with(server, feed, servers.redirecting("/new.xml", 301))

    assert (checked.new, checked.flaw) == (1, "The feed has moved to the address of another feed. Remove one of them.")
    assert (fresh(feed).url, feed.last_error) == (server.url("/feed.xml"), checked.flaw)


def test_a_feed_that_was_removed_meanwhile_leaves_nothing(feed, monkeypatch):
    brought = checking.fetch_feed(feed)
    FeedSource.objects.filter(pk=feed.pk).delete()

    checked = checking.store_result(feed, brought, actor="olga", since=clock.now())

    assert (checked.code, checked.new, RawArticle.objects.count()) == ("removed", 0, 0)


def test_what_ade_fails_at_is_a_failure_of_that_feed(feed, monkeypatch):
    def broken(*arguments):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(checking, "select_new", broken)

    checked = check(feed, actor="olga")

    assert checked.failure == fresh(feed).last_error == "Internal error in ADE: ZeroDivisionError('by zero')"
    assert (feed.failures, feed.etag) == (1, "")


def test_nothing_of_an_answer_is_kept_when_its_articles_are_not(feed, monkeypatch):
    """Keeping the ETag would be worst: the feed would never send the articles again."""

    def broken(*arguments, **values):
        raise ZeroDivisionError

    monkeypatch.setattr(lifecycle, "record_success", broken)
    check(feed, actor="olga")

    assert (RawArticle.objects.count(), fresh(feed).etag) == (0, "")


@pytest.mark.django_db(transaction=True)
def test_what_a_feed_makes_slow_keeps_no_lock(feed, monkeypatch):
    """On SQLite a writing transaction blocks all other writers, so URLs are normalised before it."""
    spell, within = storing.canonical, []

    def looked(url):
        within.append(connection.in_atomic_block)
        return spell(url)

    monkeypatch.setattr(storing, "canonical", looked)

    assert check(feed, actor="olga").new == 3
    assert within == [False] * 3


def test_a_rehearsal_writes_nothing(feed):
    ArticleFactory(url="https://aster.example/1", feed=feed)
    check(feed, actor="olga")
    RawArticle.objects.exclude(url="https://aster.example/1").delete()
    before = FeedSource.objects.filter(pk=feed.pk).values().get()

    previewed = preview(fresh(feed))

    assert [article.url for article in previewed.selection.new] == [
        "https://aster.example/2",
        "https://aster.example/3",
    ]
    assert (previewed.selection.known, previewed.flaw, previewed.result.content.title) == (1, "", "Aster News")
    assert FeedSource.objects.filter(pk=feed.pk).values().get() == before
    assert RawArticle.objects.count() == 1


def test_a_feed_that_there_is_not_yet_can_be_rehearsed(server):
    url = server.on("/feed.xml", servers.serving(rss(*stories(1, 3))))

    assert len(preview(FeedSource(url=url)).selection.new) == 3
    with pytest.raises(FetchFailed, match="404"):
        preview(FeedSource(url=server.url("/nothing.xml")))
    server.on("/page", servers.serving(b"<html>"))
    with pytest.raises(ReadFailed, match="This is a web page, not a feed"):
        preview(FeedSource(url=server.url("/page")))


# The next check


def test_an_answer_is_good_for_an_interval(feed, settings):
    since = clock.now() - timedelta(seconds=100)

    checked = check(feed, actor="olga", since=since)

    assert checked.next_check_at == since + timedelta(seconds=settings.ADE_FEED_INTERVAL_SECONDS)


@pytest.mark.parametrize(("minutes", "pause"), [(1, 900), (60, 3600), (10**6, 86400)])
def test_a_feed_may_ask_to_be_left_alone_for_longer(feed, server, minutes, pause):
    checked = answer_with(server, feed, servers.serving(rss(about=f"<title>x</title><ttl>{minutes}</ttl>")))

    assert 0 <= (clock.now() + timedelta(seconds=pause) - checked.next_check_at).total_seconds() < 60


def test_a_feed_that_fails_is_asked_ever_less_often_but_never_given_up():
    since = clock.now()

    for failures, hours in ((1, 0.25), (2, 0.5), (3, 1), (5, 4), (7, 16), (8, 24), (9, 24), (10**6, 24)):
        pauses = [
            (check_times.after_failure(since, failures, permanent=False) - since).total_seconds() / 3600
            for _ in range(50)
        ]
        assert hours / 2 <= min(pauses) < max(pauses) <= hours


@pytest.mark.parametrize(("says", "pause"), [("7200", 7200), ("0", 0), ("999999999", 86400)])
def test_what_its_server_asks_for_counts_more(feed, server, says, pause):
    write(feed, failures=5, failing_since=clock.now(), last_error="x")

    checked = answer_with(server, feed, servers.failing(429, Retry_After=says))

    assert abs((checked.next_check_at - clock.now()).total_seconds() - pause) < 60


def test_a_feed_that_is_gone_for_good_is_asked_once_a_day(feed, server):
    checked = answer_with(server, feed, servers.failing(410))

    assert DAY / 2 - timedelta(minutes=1) < checked.next_check_at - clock.now() < DAY
    assert checked.failure.endswith(
        "answered 410 Gone instead of 200 OK. This will not change by itself: pause or remove the feed."
    )


def test_an_interval_is_counted_from_the_slot(settings):
    """Counted from the check, a feed would be due a few seconds after the next slot, and wait for the one after it."""
    now = clock.now()

    assert check_times.since(now - timedelta(minutes=10)) == now - timedelta(minutes=10)
    for unusual in (now - timedelta(days=1), now + timedelta(days=1)):
        assert abs(check_times.since(unusual) - now) < timedelta(minutes=1)
