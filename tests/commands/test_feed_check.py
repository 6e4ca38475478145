import re
from datetime import timedelta

import pytest

from feeds import checking, lifecycle
from feeds.models import FeedSource, RawArticle
from tests.factories import ArticleFactory, FeedFactory, events_of, write
from tests.feeds.servers import failing, redirecting, serving
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db(transaction=True)]

HOSTILE = "a&#x9b;b&#x202e;c"


@pytest.fixture(autouse=True)
def reachable(settings):
    settings.ADE_FEED_NETWORKS = ["127.0.0.0/8"]


def rss(*titles, name="Tides"):
    links = (f"<link>https://tides.example.org/{n}</link>" for n in range(len(titles)))
    items = "".join(f"<item><title>{title}</title>{link}</item>" for title, link in zip(titles, links, strict=True))
    without = "<item><title>No link</title></item>"
    return f'<rss version="2.0"><channel><title>{name}</title>{items}{without}</channel></rss>'.encode()


@pytest.fixture
def feed(server):
    server.on("/rss", serving(rss("Ebb", "Flow"), etag='"1"'))
    feed = FeedFactory(url=server.url("/rss"), title="")
    write(feed, next_check_at=clock.now() + timedelta(hours=1))
    return feed


@pytest.fixture
def broken(server):
    server.on("/broken", failing(500))
    return FeedFactory(url=server.url("/broken"))


def test_check_asks_at_once_and_says_what_came(manage, feed):
    ArticleFactory(url="https://tides.example.org/0")

    ended = manage("feed", "check", feed.pk, "--as", "olga", "--json")

    (row,) = ended.json["feeds"]
    assert (ended.code, ended.json["rehearsed"]) == (0, False)
    assert (row["id"], row["result"], row["new"], row["known"], row["refused"]) == (feed.pk, "answered", 1, 1, 1)
    assert "The item has no link to an article." in row["message"]
    assert row["code"] is None
    assert row["articles"] is None
    assert row["next_check_at"]
    feed.refresh_from_db()
    assert (feed.title, feed.etag) == ("Tides", '"1"')
    assert RawArticle.objects.get(feed=feed).title == "Flow"
    assert events_of(feed).last().actor == "olga (command)"


def test_what_is_checked_again_is_unchanged(manage, server, feed):
    assert manage("feed", "check", feed.pk).code == 0

    ended = manage("feed", "check", feed.pk, "--json")

    (row,) = ended.json["feeds"]
    assert (ended.code, row["result"], row["new"], row["known"], row["refused"]) == (0, "unchanged", 0, 0, 0)
    assert len(server.asked) == 2


def test_one_that_fails_is_not_in_the_way_of_another(manage, feed, broken):
    ended, text = manage("feed", "check", broken.pk, feed.pk, "--json"), manage("feed", "check", broken.pk, feed.pk)

    assert [(row["id"], row["result"], row["code"]) for row in ended.json["feeds"]] == [
        (broken.pk, "failed", "http_status"),
        (feed.pk, "answered", None),
    ]
    assert (ended.code, text.code) == (1, 1)
    assert ended.json["feeds"][0]["new"] is None
    assert re.search(rf"Feed {broken.pk}: The server at \S+ answered 500 Internal Server Error instead", text.out)
    broken.refresh_from_db()
    assert broken.failures == 2


def test_all_are_those_that_are_not_paused(manage, server, feed, broken):
    still = FeedFactory(url=server.url("/still"))
    assert lifecycle.pause(still.pk, actor="ravi")

    ended = manage("feed", "check", "--all", "--json")

    assert {row["id"] for row in ended.json["feeds"]} == {feed.pk, broken.pk}
    # A feed that is named explicitly is checked although it is paused.
    server.on("/still", serving(rss("Slack")))
    assert manage("feed", "check", still.pk, "--json").json["feeds"][0]["result"] == "answered"
    still.refresh_from_db()
    assert still.paused_by == "ravi"


def test_what_is_not_there_is_told(manage, feed):
    ended = manage("feed", "check", 999_999, feed.pk, feed.pk, "--json")

    assert ended.code == 6
    assert [(row["id"], row["result"]) for row in ended.json["feeds"]] == [
        (999_999, "not found"),
        (feed.pk, "answered"),
    ]
    assert manage("feed", "check").code == 2
    assert manage("feed", "check", feed.pk, "--all").code == 2


def test_a_rehearsal_stores_nothing(manage, feed, broken):
    before = list(FeedSource.objects.values())

    ended, text = (manage("feed", "check", "--all", "--rehearse", *more) for more in (["--json"], []))

    good, bad = ended.json["feeds"]
    assert (ended.code, ended.json["rehearsed"]) == (1, True)
    assert (good["result"], good["new"], good["known"], good["refused"]) == ("answered", 2, 0, 1)
    assert {(each["title"], each["url"]) for each in good["articles"]} == {
        ("Ebb", "https://tides.example.org/0"),
        ("Flow", "https://tides.example.org/1"),
    }
    assert (bad["result"], bad["code"]) == ("failed", "http_status")
    assert text.out.startswith("Preview: nothing was stored.\n")
    assert "Flow  https://tides.example.org/1" in text.out
    assert list(FeedSource.objects.values()) == before
    assert not RawArticle.objects.exists()
    assert events_of(broken).count() == 1


def test_what_feeds_say_does_nothing_to_the_terminal(manage, server, feed):
    server.on("/rss", serving(rss(HOSTILE, name=HOSTILE).replace(b"No link", HOSTILE.encode())))

    said = [manage("feed", "check", feed.pk, "--rehearse"), manage("feed", "check", feed.pk)]
    said += [manage("feed", "list"), manage("feed", "show", feed.pk), manage("feed", "export")]

    assert [ended.code for ended in said] == [0] * 5
    assert not any(c in ended.out for c in "\x1b\x9b\u202e" for ended in said[:4])
    assert "\x9b" not in said[4].out


# add --check


def test_add_takes_what_answers_as_a_feed_and_what_it_brings(manage, server):
    server.on("/rss", serving(rss("Ebb", "Flow")))

    ended = manage("feed", "add", server.url("/rss"), "--check", "--as", "olga", "--json")

    feed = FeedSource.objects.get()
    assert (ended.code, ended.json["id"], ended.json["title"], ended.json["state"]) == (0, feed.pk, "Tides", "ok")
    assert (ended.json["check"]["new"], ended.json["check"]["refused"]) == (2, 1)
    assert RawArticle.objects.filter(feed=feed).count() == 2
    assert events_of(feed).first().actor == "olga (command)"
    # One request is enough.
    assert len(server.asked) == 1


def test_add_says_what_was_found(manage, server):
    server.on("/rss", serving(rss("Ebb")))

    ended = manage("feed", "add", server.url("/rss"), "--check", "--title", "Mine")

    assert "1 refused. Items that could not be stored: 1. 'No link': The item has no link to an article." in ended.out
    assert FeedSource.objects.get().title == "Mine"


@pytest.mark.parametrize(
    ("behaviour", "code"), [(failing(404), "http_status"), (serving(b"just words"), "not_a_feed")], ids=["404", "text"]
)
def test_add_does_not_take_what_is_no_feed(manage, server, behaviour, code):
    server.on("/rss", behaviour)

    ended = manage("feed", "add", server.url("/rss"), "--check", "--json")

    assert (ended.code, ended.error["code"]) == (1, code)
    assert ended.error["message"]
    assert not FeedSource.objects.exists()


def test_add_asks_nobody_for_what_is_there(manage, server, feed):
    ended = manage("feed", "add", feed.url, "--check", "--json")

    assert (ended.code, ended.error["code"]) == (1, "already_there")
    assert server.asked == []


def test_add_does_not_take_an_old_address_of_what_is_there(manage, server, feed):
    server.on("/old", redirecting("/rss", 301))

    ended = manage("feed", "add", server.url("/old"), "--check", "--json")

    assert (ended.code, ended.error["code"], ended.error["details"]) == (1, "already_there", {"id": feed.pk})
    assert FeedSource.objects.get() == feed
    assert not RawArticle.objects.exists()


def test_add_takes_one_that_has_moved_to_where_nothing_is_yet(manage, server):
    there = server.on("/new", serving(rss("Ebb")))
    server.on("/old", redirecting("/new", 301))

    ended = manage("feed", "add", server.url("/old"), "--check", "--json")

    assert (ended.code, ended.json["url"], ended.json["check"]["new"]) == (0, there, 1)


def test_add_takes_one_that_has_moved_to_what_cannot_be_kept(manage, server):
    server.on("/" + "x" * 900, serving(rss("Ebb")))
    server.on("/old", redirecting("/" + "x" * 900, 301))

    ended = manage("feed", "add", server.url("/old"), "--check", "--json")

    assert (ended.code, ended.json["url"], ended.json["check"]["new"]) == (0, server.url("/old"), 1)


def test_add_says_when_what_was_brought_is_not_stored(manage, server, monkeypatch):
    def broken(*arguments):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(checking, "store", broken)
    server.on("/rss", serving(rss("Ebb")))

    ended = manage("feed", "add", server.url("/rss"), "--check")

    assert ended.code == 1
    assert "No articles were stored. Internal error in ADE: ZeroDivisionError" in ended.out
    assert FeedSource.objects.get().failures == 1


def test_add_says_when_somebody_removes_it_at_once(manage, server, monkeypatch):
    settle = checking.store_result

    def settled(feed, *arguments, **values):
        assert lifecycle.remove(feed.pk, actor="ravi")
        return settle(feed, *arguments, **values)

    monkeypatch.setattr(checking, "store_result", settled)
    server.on("/rss", serving(rss("Ebb")))

    ended = manage("feed", "add", server.url("/rss"), "--check", "--json")

    assert (ended.code, ended.error["code"]) == (1, "removed")
