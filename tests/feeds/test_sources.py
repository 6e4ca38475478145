import re
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import IntegrityError, connection
from hypothesis import given, settings
from hypothesis import strategies as st

from feeds import lifecycle, opml, sources
from feeds.models import FeedSource, RawArticle
from feeds.opml import Entry
from feeds.sources import AlreadyThere, NotAdded
from tests.factories import ArticleFactory, FeedFactory, columns_of, events_of, write
from work import clock
from work.models import Event
from work.operations.outcomes import Outcome

pytestmark = pytest.mark.django_db

LISTS = Path(__file__).parent / "lists"


@pytest.fixture
def feed():
    feed = FeedFactory(title="Tides")
    write(feed, next_check_at=clock.now() + timedelta(hours=1))
    return feed


@pytest.fixture
def paused(feed):
    assert lifecycle.pause(feed.pk, actor="ravi")
    feed.refresh_from_db()
    return feed


@pytest.fixture
def gone():
    feed = FeedFactory()
    assert lifecycle.remove(feed.pk, actor="ravi")
    return feed


def refused(url):
    with pytest.raises(NotAdded) as caught:
        sources.add(url, actor="olga")
    return caught.value


# Add


def test_a_feed_is_added_and_due():
    feed = sources.add("https://tides.example.org/rss", title=" Tides\nand  Moons ", actor="olga")

    feed.refresh_from_db()
    assert (feed.url, feed.title) == ("https://tides.example.org/rss", "Tides and Moons")
    assert list(FeedSource.objects.due()) == [feed]
    event = events_of(feed).get()
    assert (event.kind, event.actor) == ("FEED_ADDED", "olga")


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        (" HTTPS://Tides.Example.org:443/rss#top\n", "https://tides.example.org/rss"),
        ("http://tides.example.org", "http://tides.example.org/"),
        ("feed://tides.example.org/rss", "http://tides.example.org/rss"),
        ("feed:https://tides.example.org/rss", "https://tides.example.org/rss"),
        ("FEED:http://tides.example.org/rss", "http://tides.example.org/rss"),
        ("https://bücher.example.org/ü", "https://xn--bcher-kva.example.org/%C3%BC"),
        ("https://93.184.215.14/rss", "https://93.184.215.14/rss"),
    ],
)
def test_a_url_has_one_spelling(url, kept):
    assert sources.add(url, actor="olga").url == kept


@pytest.mark.parametrize(
    "url",
    [
        *("", "tides.example.org/rss", "//tides.example.org/rss", "file:///etc/passwd", "javascript:alert(1)"),
        *("ftp://tides.example.org/", "feed:file:///etc/passwd", "feed:feed:https://a.example.org", "https://"),
        *("https://olga:secret@tides.example.org/", "https://tides.example.org:99999/", "https://[::1/"),
        *("http://2130706433/", "http://0x7f.1/", "https://a.example.org/" + "a" * 800, "https://a b.example.org/"),
    ],
)
def test_what_is_no_address_of_the_web_is_refused(url):
    error = refused(url)

    assert error.code == "bad_url"
    assert re.match(r"The (brackets in the )?(URL|port) .*\.$", str(error))
    assert "secret" not in str(error)
    assert not FeedSource.objects.exists()


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1/", "http://10.0.0.1/feed", "http://169.254.169.254/latest/meta-data/", "http://[::1]/"),
        *("http://[::ffff:127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://100.64.0.1/", "http://224.0.0.1/"),
        *("https://tides.example.org:22/", "https://93.184.215.14:8080/"),
    ],
)
def test_what_fetching_would_refuse_by_its_form_is_refused_at_once(url):
    """S9, S10, F14: the address of a name is only checked when the feed is fetched."""
    assert refused(url).code == "refused_address"
    assert not FeedSource.objects.exists()


def test_the_networks_of_the_operator_are_allowed(settings):
    settings.ADE_FEED_NETWORKS = ["127.0.0.0/8"]

    assert sources.add("http://127.0.0.1:8080/feed", actor="olga")
    # Its name may resolve to an address there.
    assert sources.add("http://intranet.example.org:8080/feed", actor="olga")
    assert refused("http://10.0.0.1/").code == "refused_address"


def test_a_url_is_added_once_however_it_is_spelled(feed):
    error = refused(feed.url.upper().replace("/FEED.XML", "/feed.xml"))

    assert isinstance(error, AlreadyThere)
    assert (error.code, error.feed) == ("already_there", feed)
    assert FeedSource.objects.count() == 1


def test_somebody_else_may_be_quicker(monkeypatch):
    url, looked = "https://tides.example.org/rss", sources.expect_new

    def looked_too_early(url):
        spelled = looked(url)
        monkeypatch.setattr(sources, "expect_new", looked)
        FeedFactory(url=spelled)
        return spelled

    monkeypatch.setattr(sources, "expect_new", looked_too_early)

    assert refused(url).code == "already_there"
    assert FeedSource.objects.count() == 1


@pytest.mark.parametrize("title", ["\0\x1b[2J\u202e\ud800", "x" * 5000, "\x00 \x00", ""])
def test_any_title_can_be_kept(title):
    feed = sources.add("https://tides.example.org/rss", title=title, actor="olga")

    feed.refresh_from_db()
    assert feed.title.isprintable()
    assert len(feed.title) <= 300
    assert str(feed)


@pytest.mark.parametrize("site", ["javascript:alert(1)", "https://" + "a" * 900, "nonsense"])
def test_a_page_that_nobody_should_follow_is_not_kept(site):
    assert sources.add("https://tides.example.org/rss", site_url=site, actor="olga").site_url == ""


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=[])))
def test_a_title_in_one_line_stays_as_it_is(title):
    once = sources.one_line(title)

    assert sources.one_line(once) == once
    assert len(once) <= 300
    assert not set(once) & set("\n\r\t\0\u202e\u2028")


# The other verbs: the states they work from, the changes, the event, and the states they refuse.

VERBS = {
    "pause": lambda feed: sources.pause(feed, actor="olga", reason="too loud"),
    "resume": lambda feed: sources.resume(feed, actor="olga"),
    "make_due": lambda feed: sources.make_due(feed, actor="olga"),
    "rename": lambda feed: sources.rename(feed, " Tides \n", actor="olga"),
    "remove": lambda feed: sources.remove(feed, actor="olga"),
}


def test_pausing(feed):
    assert VERBS["pause"](feed) == Outcome.PAUSED

    feed.refresh_from_db()
    assert feed.paused_by == "olga"
    assert not FeedSource.objects.due().exists()
    event = events_of(feed).last()
    assert (event.kind, event.actor, event.message) == ("FEED_PAUSED", "olga", "too loud")


def test_resuming(paused):
    assert VERBS["resume"](paused) == Outcome.RESUMED

    paused.refresh_from_db()
    assert (paused.paused_at, paused.paused_by) == (None, "")
    assert list(FeedSource.objects.due()) == [paused]
    assert (events_of(paused).last().kind, events_of(paused).last().actor) == ("FEED_RESUMED", "olga")


def test_making_due(feed):
    assert not FeedSource.objects.due().exists()

    assert VERBS["make_due"](feed) == Outcome.DUE

    assert list(FeedSource.objects.due()) == [feed]
    assert (events_of(feed).last().kind, events_of(feed).last().actor) == ("FEED_CHECK_ASKED", "olga")


def test_renaming(feed):
    assert sources.rename(feed, "Tides\nand Moons", actor="olga") == Outcome.RENAMED

    feed.refresh_from_db()
    assert feed.title == "Tides and Moons"
    event = events_of(feed).last()
    assert (event.kind, event.actor) == ("FEED_RENAMED", "olga")
    assert event.data == {"title": "Tides and Moons", "before": "Tides"}


def test_a_name_may_be_taken_away_and_given_back(feed):
    assert sources.rename(feed, "", actor="olga") == Outcome.RENAMED
    assert sources.rename(feed, "Tides", actor="olga") == Outcome.RENAMED


def test_removing(feed):
    assert VERBS["remove"](feed) == Outcome.REMOVED

    assert not FeedSource.objects.exists()
    event = events_of(feed).last()
    assert (event.kind, event.actor) == ("FEED_REMOVED", "olga")
    assert event.data == {"url": feed.url, "title": "Tides"}
    assert sources.add(feed.url, actor="olga").pk > feed.pk


def test_a_feed_that_is_paused_may_be_removed_and_renamed(paused):
    assert sources.rename(paused, "Moons", actor="olga") == Outcome.RENAMED
    assert VERBS["remove"](paused) == Outcome.REMOVED


@pytest.mark.parametrize(
    ("verb", "state", "why"),
    [
        ("pause", "paused", Outcome.WAS_PAUSED),
        ("resume", "feed", Outcome.NOT_PAUSED),
        ("make_due", "paused", Outcome.IS_PAUSED),
        ("rename", "feed", Outcome.SAME_NAME),
        *((verb, "gone", Outcome.NOT_FOUND) for verb in VERBS),
    ],
)
def test_a_verb_changes_nothing_where_it_cannot(verb, state, why, request):
    feed = request.getfixturevalue(state)
    before, told = list(FeedSource.objects.values()), Event.objects.count()

    assert VERBS[verb](feed) == why

    assert list(FeedSource.objects.values()) == before
    assert Event.objects.count() == told


def test_a_feed_with_articles_is_not_removed(feed):
    ArticleFactory(feed=feed)
    before = columns_of(feed)

    assert VERBS["remove"](feed) == Outcome.HAS_ARTICLES

    assert columns_of(feed) == before
    assert events_of(feed).last().kind == "FEED_ADDED"


@pytest.mark.django_db(transaction=True)
def test_an_article_that_is_just_coming_has_a_feed_or_is_not_there(threads):
    feed = FeedFactory()
    article = threads.hold(lambda: ArticleFactory(feed=feed))
    removing = threads.start(lambda: sources.remove(feed, actor="olga"))
    # On SQLite the removal waits; on PostgreSQL the foreign key of the article is checked at its commit.
    is_kept = removing.waits()

    with nullcontext() if is_kept else pytest.raises(IntegrityError):
        article.commit()

    assert removing.answer() == (Outcome.HAS_ARTICLES if is_kept else Outcome.REMOVED)
    assert FeedSource.objects.exists() == RawArticle.objects.exists() == is_kept
    assert events_of(feed).last().kind == ("FEED_ADDED" if is_kept else "FEED_REMOVED")


@pytest.mark.django_db(transaction=True)
def test_an_article_does_not_come_to_a_feed_that_has_just_gone(threads):
    feed = FeedFactory()
    removing = threads.hold(lambda: sources.remove(feed, actor="olga"))
    article = threads.start(lambda: ArticleFactory(feed=feed))
    assert article.waits()

    removing.commit()

    assert isinstance(article.error(), IntegrityError)
    assert not FeedSource.objects.exists()


# Lists


def test_a_damaged_list_gives_all_that_is_good_in_it():
    """F15: a refused entry does not affect the others."""
    entries = opml.read((LISTS / "damaged.opml").read_bytes())

    taken = list(sources.import_entries(entries, actor="olga"))

    assert [(each.entry.title, each.result) for each in taken] == [
        ("First", "added"),
        ("No address", "bad_url"),
        ("A file of the machine", "bad_url"),
        ("A script", "bad_url"),
        ("An inner machine", "refused_address"),
        ("A strange port", "refused_address"),
        ("First again", "twice"),
        ("Last", "added"),
    ]
    assert [each.is_refused for each in taken] == [False, True, True, True, True, True, False, False]
    assert all(each.message for each in taken if each.result != "added")
    assert taken[6].message == "This is the same feed as in line 4."
    assert list(FeedSource.objects.order_by("id").values_list("title", flat=True)) == ["First", "Last"]
    assert {each.feed_id for each in taken} - {None} == set(FeedSource.objects.values_list("pk", flat=True))


def test_a_rehearsal_tells_the_same_and_adds_nothing(feed):
    entries = [*opml.read((LISTS / "damaged.opml").read_bytes()), Entry(feed.url)]

    foreseen = list(sources.import_entries(entries, actor="olga", rehearse=True))
    assert FeedSource.objects.count() == 1
    done = list(sources.import_entries(entries, actor="olga"))

    assert [each.result for each in foreseen] == [each.result for each in done]
    assert [each.feed_id for each in foreseen if each.result != "added"] == [
        each.feed_id for each in done if each.result != "added"
    ]


def test_a_list_that_is_imported_again_adds_nothing():
    entries = opml.read((LISTS / "folders.opml").read_bytes())

    first = [each.result for each in sources.import_entries(entries, actor="olga")]
    second = [each.result for each in sources.import_entries(entries, actor="olga")]

    assert first == ["added", "added", "twice"]
    assert second == ["already_there", "already_there", "twice"]


def feeds():
    return list(FeedSource.objects.order_by("id").values_list("url", "title", "site_url"))


titles = st.text(st.characters(exclude_categories=[]), max_size=40)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 9), titles, st.booleans()), max_size=4))
def test_what_is_exported_is_imported_as_the_same_feeds(rows):
    for number, title, has_page in rows:
        host = f"https://news{number}.example.org"
        entry = Entry(f"{host}/feed?a=1&b=<{number}>", title, f"{host}/" if has_page else "")
        list(sources.import_entries([entry], actor="olga"))
    before, written = feeds(), opml.write(sources.entries())
    FeedSource.objects.all().delete()

    list(sources.import_entries(opml.read(written), actor="ravi"))

    # XML cannot express some characters, such as U+FFFE.
    assert feeds() == [(url, opml._UNREPRESENTABLE.sub("\ufffd", title), page) for url, title, page in before]
    assert opml.write(sources.entries()) == written
    FeedSource.objects.all().delete()


def test_many_are_taken_in_with_few_questions(django_assert_max_num_queries):
    entries = [Entry(f"https://news{n}.example.org/feed") for n in range(100)]

    with django_assert_max_num_queries(100 * (4 if connection.vendor == "postgresql" else 7)):
        assert {each.result for each in sources.import_entries(entries, actor="olga")} == {"added"}
