"""Goal 4: 200 feeds with 20,000 items, a tenth of the feeds hostile, in a separate process like a worker."""

from statistics import median

import pytest
from django.db.models import Count

from feeds.models import FeedSource, RawArticle
from tests.factories import FeedFactory
from tests.feeds import servers
from tests.feeds.samples import HEAD, item, rss, stories

pytestmark = pytest.mark.django_db(transaction=True)

GOOD, HOSTILE = 180, 20
# The number of items of each good feed: 3,600 or 20,000 in total.
SOME, MANY = 20, 112
# The number of good items in each broken feed.
FEW = 5
# The memory of the fetching process. Another process reads the feeds, with its own limit: docs/feeds.md.
MOST_MEGABYTES = 300
LAUGHS = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
SECONDS = 1000
ROUNDS = 3


def few(name, **options):
    return rss(*stories(1, FEW, f"https://{name}.example"), **options)


def broken_items():
    *whole, last = stories(1, FEW, "https://broken.example")
    unfinished = "<item><title>x</title><link>https://broken.example/x</link><description>never closed</item>"
    return rss(*whole, unfinished, "&nbsp;", last)


def bodies(server):
    """Return the hostile feeds, each with its number of good items."""
    slow = few("slow") * 100
    return {
        "silent": (servers.silent, 0),
        "slow-headers": (servers.slow_headers(), 0),
        "trickling": (servers.trickling(slow), 0),
        "endless": (servers.endless, 0),
        "endless-headers": (servers.endless_headers, 0),
        "endless-hints": (servers.endless_hints, 0),
        "bomb": (servers.bomb(200), 0),
        "nested-bomb": (servers.nested_bomb(200), 0),
        "endless-bomb": (servers.endless_bomb, 0),
        "cut-off": (servers.cut_off(few("cut-off")), 0),
        "resetting": (servers.resetting(few("resetting")), 0),
        "inside": (servers.redirecting("http://169.254.169.254/latest/meta-data/"), 0),
        "file": (servers.redirecting("file:///etc/passwd"), 0),
        "circle": (servers.redirecting(server.url("/hostile/circle.xml")), 0),
        "laughs": (servers.serving(rss(item("&a9;"), head=f"{HEAD}<!DOCTYPE rss [<!ENTITY a0 'ha'>{LAUGHS}]>")), 0),
        "external": (servers.serving(rss(head=f'{HEAD}<!DOCTYPE rss [<!ENTITY a SYSTEM "file:///etc/passwd">]>')), 0),
        "nested": (servers.serving(rss("<a>" * 400_000)), 0),
        "page": (servers.serving(b"<!doctype html><title>Sorry</title>"), 0),
        "broken": (servers.serving(broken_items()), FEW + 1),
        "encoding": (servers.serving(few("encoding").replace(b"Story", b"G\xe9schichte")), FEW),
    }


@pytest.fixture
def good(server, each):
    for number in range(GOOD):
        body = rss(*stories(1, each, f"https://news{number}.example"))
        # Half of the feeds send ETags, the others dates.
        at = f"Sun, 01 Mar 2026 12:{number % 60:02}:00 GMT"
        known = {"etag": f'"{number}"'} if number % 2 else {"last_modified": at}
        FeedFactory(url=server.on(f"/good/{number}.xml", servers.serving(body, **known)))


def asked(programs, slots):
    process = programs.main("tests.feeds.ingesting", slots, ADE_FEED_NETWORKS="127.0.0.0/8", ADE_LOG_LEVEL="ERROR")
    assert process.code(SECONDS) == 0, process.logged()
    return process.said


@pytest.mark.parametrize(
    "each", [pytest.param(SOME, marks=pytest.mark.long(seconds=45)), pytest.param(MANY, marks=pytest.mark.soak)]
)
def test_all_good_items_are_stored_once_and_no_hostile_feed_harms_another(programs, server, good, each):
    hostile = bodies(server)
    assert (len(hostile), GOOD + len(hostile)) == (HOSTILE, 200)
    for name, (behaviour, _) in hostile.items():
        FeedFactory(url=server.on(f"/hostile/{name}.xml", behaviour))
    among_hostile = sum(items for _, items in hostile.values())

    first, again = asked(programs, 2)

    assert first["rows"] == GOOD * each + among_hostile
    assert again["rows"] == 0
    assert RawArticle.objects.count() == first["rows"]
    of_each = FeedSource.objects.annotate(kept=Count("articles"))
    assert {feed.kept for feed in of_each.filter(url__contains="/good/")} == {each}
    assert not FeedSource.objects.filter(url__contains="/good/").exclude(failures=0, last_error="").exists()
    failing = FeedSource.objects.filter(failures=2)
    assert failing.count() == sum(not items for _, items in hostile.values())
    for name, (_, items) in hostile.items():
        feed = of_each.get(url__endswith=f"/{name}.xml")
        assert (feed.kept, feed.failures) == (items, 0 if items else 2), name
        assert feed.last_error or name == "encoding"
    assert RawArticle.objects.get(url="https://encoding.example/1").title == "Géschichte 1"
    assert max(first["megabytes"], again["megabytes"]) < MOST_MEGABYTES


# `tests/benchmarks/test_feeds.py` has a short version.
@pytest.mark.soak
@pytest.mark.parametrize("each", [MANY])
def test_asked_again_those_that_have_nothing_new_take_a_tenth_of_the_time(programs, server, good, each):
    rounds = []
    for _ in range(ROUNDS):
        forget()
        rounds.append(asked(programs, 2))

    assert [[run["rows"] for run in each] for each in rounds] == [[GOOD * each, 0]] * ROUNDS
    conditions = {"if-none-match", "if-modified-since"}
    assert sum(bool(conditions & asked.headers.keys()) for asked in server.asked) == ROUNDS * GOOD
    # The medians, because other programs may use this machine.
    first, again = (median(run["seconds"] for run in runs) for runs in zip(*rounds, strict=True))
    assert again * 10 <= first, rounds


def forget():
    """Reset all feeds as if they had never been fetched."""
    RawArticle.objects.all().delete()
    FeedSource.objects.update(etag="", last_modified="")
