"""F15, F16, X41, X44, seed 001 §8.1: each URL is stored once, and a bad item never loses the others."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction

from feeds.addresses import digest
from feeds.models import RawArticle
from feeds.reading import Item
from feeds.storing import group_by_url, select_new, store
from tests.factories import ArticleFactory, FeedFactory, PurgedUrlFactory
from work import clock


def told(number, **values):
    said = {"url": f"https://aster.example/{number}", "title": f"Story {number}", "summary": "", "author": ""}
    return Item(**{**said, "published": None, **values})


def kept(feed, items):
    with transaction.atomic():
        found = select_new(feed, group_by_url(items))
        return store(found), found.known, found.refused


def urls():
    return sorted(RawArticle.objects.values_list("url", flat=True))


@pytest.fixture
def feed(db):
    return FeedFactory()


def test_items_become_articles(feed):
    before = clock.now()
    published = datetime(2026, 3, 1, 12, tzinfo=UTC)
    item = told(1, summary="What has happened.", author="Olga", published=int(published.timestamp()))

    assert kept(feed, [item]) == (1, 0, 0)

    article = RawArticle.objects.get()
    assert (article.feed, article.url, article.title) == (feed, "https://aster.example/1", "Story 1")
    assert (article.summary, article.author, article.embedding) == ("What has happened.", "Olga", None)
    assert before <= article.seen_at <= clock.now()
    assert (article.published_at, article.happened_at) == (published, published)


def test_the_same_again_changes_nothing(feed):
    kept(feed, [told(1), told(2)])
    before = list(RawArticle.objects.values())

    assert kept(feed, [told(2, title="Another title"), told(1)]) == (0, 2, 0)
    assert list(RawArticle.objects.values()) == before


def test_a_url_in_many_spellings_is_one_article(feed):
    spellings = [
        "https://aster.example/a",
        "HTTPS://Aster.example:443/a?utm_source=rss",
        "https://aster.example/./a#top",
    ]

    assert kept(feed, [told(0, url=url) for url in spellings]) == (1, 2, 0)

    article = RawArticle.objects.get()
    assert (article.url, article.original_url) == (spellings[0], spellings[0])


def test_what_was_found_is_kept_beside_its_spelling(feed):
    found = "https://Aster.example/a?utm_source=" + "x" * 3000

    kept(feed, [told(0, url=found)])

    assert RawArticle.objects.values_list("url", "original_url").get() == ("https://aster.example/a", found)


def test_an_article_of_another_feed_is_there_already(feed):
    ArticleFactory(url="https://aster.example/1")

    assert kept(feed, [told(1), told(2)]) == (1, 1, 0)


def test_what_was_purged_does_not_come_back(feed):
    """X41: a tombstone blocks the URL."""
    PurgedUrlFactory(digest=digest("https://aster.example/1"))

    assert kept(feed, [told(1), told(2)]) == (1, 1, 0)
    assert urls() == ["https://aster.example/2"]


@pytest.mark.parametrize(
    "url", ["", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "https://a.example/" + "x" * 900]
)
def test_an_item_without_a_link_to_follow_does_not_lose_the_others(feed, url):
    found = select_new(feed, group_by_url([told(1), told(2, url=url, title="Bad"), told(3)]))

    assert (store(found), found.refused) == (2, 1)
    assert urls() == ["https://aster.example/1", "https://aster.example/3"]
    (reason,) = found.reasons
    assert re.match(r"'Bad': The (URL '.*|item has no link to an article)", reason)


def test_only_some_reasons_are_told(feed):
    found = select_new(feed, group_by_url([told(number, url="", title="x" * 9999) for number in range(100)]))

    assert (found.refused, len(found.reasons)) == (100, 3)
    assert all(len(reason) <= 300 for reason in found.reasons)


def test_an_item_without_a_title_is_called_by_its_address(feed):
    kept(feed, [told(1, title="")])

    assert RawArticle.objects.get().title == "https://aster.example/1"


@pytest.mark.parametrize(
    "published",
    [
        0,
        -(10**12),
        10**18,
        int(datetime(1, 1, 1, tzinfo=UTC).timestamp()),
        int(datetime(2999, 1, 1, tzinfo=UTC).timestamp()),
    ],
)
def test_an_absurd_date_is_none(feed, published):
    kept(feed, [told(1, published=published)])

    article = RawArticle.objects.get()
    assert (article.published_at, article.happened_at) == (None, article.seen_at)


def test_what_is_dated_in_the_future_has_happened_when_it_was_seen(feed):
    tomorrow = (clock.now() + timedelta(days=1)).replace(microsecond=0)

    kept(feed, [told(1, published=int(tomorrow.timestamp()))])

    article = RawArticle.objects.get()
    assert (article.published_at, article.happened_at) == (tomorrow, article.seen_at)


@pytest.fixture
def picky(feed):
    """A database that refuses one article among others."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "CREATE FUNCTION be_picky() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                " RAISE EXCEPTION 'too bad to keep' USING ERRCODE = '22000'; END $$;"
                " CREATE TRIGGER picky BEFORE INSERT ON raw_articles FOR EACH ROW"
                " WHEN (NEW.title = 'Bad') EXECUTE FUNCTION be_picky()"
            )
        else:
            cursor.execute(
                "CREATE TRIGGER picky BEFORE INSERT ON raw_articles WHEN NEW.title = 'Bad'"
                " BEGIN SELECT RAISE(ABORT, 'too bad to keep'); END"
            )


def test_what_the_database_refuses_does_not_lose_the_others(feed, picky):
    """F15: on PostgreSQL the surrounding transaction survives."""
    with transaction.atomic():
        found = select_new(feed, group_by_url([told(1), told(2, title="Bad"), told(3)]))

        stored = store(found)
        FeedFactory()

    assert (stored, found.refused) == (2, 1)
    assert urls() == ["https://aster.example/1", "https://aster.example/3"]
    assert found.reasons == ["'Bad': The database rejected the article: too bad to keep."]


def test_what_somebody_else_stores_meanwhile_is_a_duplicate(feed):
    """F16, on one connection: another article appears between the lookup and the insert."""
    found = select_new(feed, group_by_url([told(1), told(2), told(3)]))
    other = ArticleFactory(url="https://aster.example/2")

    with transaction.atomic():
        stored = store(found)

    assert (stored, found.known, found.refused) == (2, 1, 0)
    assert RawArticle.objects.get(url=other.url).feed == other.feed


@pytest.mark.django_db(transaction=True)
def test_two_feeds_bring_the_same_at_once(threads):
    """F16: the second transaction waits for the first and treats its articles as known; there is no deadlock."""
    first, second = FeedFactory(), FeedFactory()
    numbers = range(1, 31)
    held = threads.hold(lambda: kept(first, [told(number) for number in numbers]))
    other = threads.start(lambda: kept(second, [told(number) for number in reversed(numbers)] + [told(99)]))
    assert other.waits()

    held.commit()

    assert held.answer() == (30, 0, 0)
    assert other.answer() == (1, 30, 0)
    assert RawArticle.objects.filter(feed=first).count() == 30
    assert RawArticle.objects.get(feed=second).url == "https://aster.example/99"


@pytest.mark.django_db(transaction=True)
def test_what_somebody_has_not_kept_after_all_is_new(threads):
    first, second = FeedFactory(), FeedFactory()
    held = threads.hold(lambda: kept(first, [told(1)]))
    other = threads.start(lambda: kept(second, [told(1)]))
    assert other.waits()

    held.roll_back()

    assert other.answer() == (1, 0, 0)
    assert RawArticle.objects.get().feed == second


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_many_feeds_bring_the_same_at_once(threads):
    feeds = [FeedFactory() for _ in range(6)]
    items = [told(number) for number in range(700)]

    def bring(feed):
        order = items[feed.pk % 7 :: 2] + items[:: feed.pk % 3 + 1]
        return kept(feed, order)[0]

    stored = threads.together([lambda feed=feed: bring(feed) for feed in feeds])

    assert sum(stored) == RawArticle.objects.count() == 700
    assert len(set(urls())) == 700
