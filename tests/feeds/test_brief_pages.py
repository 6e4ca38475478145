import re
from datetime import timedelta
from urllib.parse import unquote

import feedparser
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from lxml import etree, html

from feeds.briefs import views
from tests.factories import BriefArticleFactory, BriefFactory, BriefItemFactory, FeedFactory, UserFactory, write
from tests.feeds.hostile_words import LONG_URL, TITLES, URLS
from tests.feeds.telling import SLOT, event, published, tell

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
LIST, RSS, PAGE, TEXT = "/briefs/", "/briefs/feed.rss", "/briefs/2026-05-04/", "/briefs/2026-05-04.txt"


@pytest.fixture
def reader(client, zed):
    """A signed-in user without any membership."""
    client.force_login(zed)
    return client


@pytest.fixture
def brief():
    bridge, cats = event("Bridge closed"), event("Cats sleep")
    first, second = FeedFactory(title="First News"), FeedFactory(title="Second News")
    tell(bridge, first, title="The bridge is closed", url="https://first.example.com/bridge?a=1&b=2")
    tell(bridge, second, title="Bridge: closed!", hours=2, summary="It is closed since Monday.")
    tell(cats, second, hours=20)
    for feed in (first, second):
        write(feed, succeeded_at=SLOT)
    return published()


def read(client, url, **headers):
    page = client.get(url, headers=headers)
    assert page.status_code == 200, url
    return page.content.decode()


# Permissions


def test_they_are_for_who_is_signed_in(client, brief):
    for url in (LIST, PAGE, TEXT):
        page = client.get(url)
        assert page.status_code == 302
        assert page["Location"] == f"{reverse('console:sign_in')}?next={url}"
    feed = client.get(RSS)
    assert (feed.status_code, feed["Content-Type"]) == (403, "text/plain; charset=utf-8")
    assert "ADE_PUBLIC_BRIEFS=true" in feed.content.decode()


def test_a_stranger_does_not_learn_which_briefs_there_are(client, brief):
    assert client.get("/briefs/1999-01-01/").status_code == 302


def test_whoever_is_signed_in_may_read_them(reader, brief):
    for url in (LIST, PAGE, TEXT, RSS):
        page = reader.get(url)
        assert page.status_code == 200
        assert "Bridge closed" in page.content.decode()
        assert "private" in page["Cache-Control"]
        assert "Cookie" in page["Vary"]


def test_everybody_may_if_the_settings_say_so(client, brief, settings):
    settings.ADE_PUBLIC_BRIEFS = True

    for url in (LIST, PAGE, TEXT, RSS):
        page = client.get(url)
        assert page.status_code == 200
        assert "private" not in page["Cache-Control"]
        assert not page.cookies


def test_nothing_is_changed_by_reading(reader, brief):
    for url in (LIST, PAGE, TEXT, RSS):
        assert reader.post(url).status_code == 405
        assert reader.head(url).status_code == 200


@pytest.mark.parametrize(
    "url",
    [
        "/briefs/2026-05-03/",
        "/briefs/2026-05-04-2/",
        "/briefs/2026-05-04-2.txt",
        "/briefs/2026-5-4/",
        "/briefs/latest/",
        "/briefs/%D9%A2%D9%A0%D9%A2%D9%A6-05-04/",
        "/briefs/2026-05-04%00/",
        "/briefs/2026-05-04-123456789/",
        "/briefs/?before=2026-05-03",
        "/briefs/?before=%00",
        "/briefs/?before=x",
    ],
)
def test_what_is_not_there_is_not_found(reader, brief, url):
    assert reader.get(url).status_code == 404


# The page of a brief


def test_a_page_tells_the_events_with_articles_sources_and_reasons(reader, brief):
    page = html.fromstring(read(reader, PAGE))

    assert page.xpath("//h1/text()") == ["Brief of Monday, 4 May 2026"]
    assert [each.text for each in page.xpath("//li[@class='story']/h2")] == ["Bridge closed", "Cats sleep"]
    story = page.xpath("//li[@class='story']")[0]
    assert " ".join(story.xpath("p[@class='why']")[0].text_content().split()).startswith(
        "2 articles from 2 sources · began 5 hours earlier · grows by"
    )
    # No line begins with a separator.
    assert re.search(r"\s·", story.xpath("p[@class='why']")[0].text_content()).group() == "\xa0·"
    assert story.xpath("p[@class='summary']/text()") == ["It is closed since Monday."]
    first = story.xpath(".//ul//a")[0]
    assert (first.get("href"), first.text) == ("https://first.example.com/bridge?a=1&b=2", "The bridge is closed")
    assert [each.text_content().strip() for each in story.xpath(".//span[@class='source']")] == [
        "First News, 4 May 2026, 01:00",
        "Second News, 4 May 2026, 04:00",
    ]
    shares = [float(each) for each in story.xpath(".//td[2]/text()")]
    assert sum(shares) == pytest.approx(float(story.xpath(".//summary/text()")[0].split()[1]), abs=0.3)
    about = " ".join(page.xpath("//p[@class='about']")[0].text_content().split())
    assert about.startswith(
        "News from 3 May 2026, 06:00 to 4 May 2026, 06:00 (UTC): 3 articles from 2 feeds, 2 events with news."
    )


def test_articles_that_are_not_shown_are_counted(reader):
    bridge = event()
    for _ in range(7):
        tell(bridge)
    published()

    assert "and 2 more articles" in read(reader, PAGE)
    assert "and 2 more articles\n" in read(reader, TEXT)


def test_times_are_those_of_the_time_zone(reader, settings):
    settings.ADE_BRIEF_TIME_ZONE = "Asia/Kolkata"
    tell(event(), hours=1)
    published()

    page = read(reader, PAGE)

    assert "from 3 May 2026, 11:30 to 4 May 2026, 11:30 (Asia/Kolkata)" in page
    assert '<time datetime="2026-05-04T05:00:00+00:00">4 May 2026, 10:30</time>' in page


def test_a_brief_leads_to_its_neighbours(reader):
    for days in (-1, 0, 1):
        published(SLOT + days * DAY)

    def neighbours(url):
        page = html.fromstring(read(reader, url))
        return {each.get("rel"): each.get("href") for each in page.xpath("//nav[@class='neighbours']/a")}

    assert neighbours("/briefs/2026-05-03/") == {"next": PAGE}
    assert neighbours(PAGE) == {"prev": "/briefs/2026-05-03/", "next": "/briefs/2026-05-05/"}
    assert neighbours("/briefs/2026-05-05/") == {"prev": PAGE}


def test_an_event_that_was_told_leads_to_where(reader):
    bridge = event()
    tell(bridge, hours=30)
    published(SLOT - DAY)
    tell(bridge, hours=3)
    published()

    assert '<a href="/briefs/2026-05-03/">also in the brief of 2026-05-03, 1 new article since</a>' in read(
        reader, PAGE
    )


# No news


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"feeds_seen": 3}, "Nothing new: 3 feeds answered, but none had any news."),
        (
            {"feeds_seen": 3, "feeds_silent": 1},
            "1 of 4 feeds did not answer in this period, so their news is missing.",
        ),
        (
            {"feeds_silent": 2, "last_answer_at": SLOT - 2 * DAY},
            "No feed answered in this period, so it is not known what has happened."
            " The last answer of a feed came at 2 May 2026, 06:00.",
        ),
        ({"feeds_silent": 2}, "No feed has ever answered."),
        ({}, "There are no feeds, or none has been checked yet, so it is not known what has happened."),
        (
            {"last_answer_at": SLOT - 2 * DAY},
            "No feed was checked in this period, so it is not known what has happened."
            " The last answer of a feed came at 2 May 2026, 06:00.",
        ),
        ({"feeds_seen": 3, "articles_seen": 7}, "7 articles arrived, but none belongs to an event with news yet."),
    ],
)
def test_an_empty_brief_says_why_it_is_empty(reader, columns, said):
    seen = {"articles_seen": 0, "feeds_seen": 0, "clusters_seen": 0} | columns
    BriefFactory(name="2026-05-04", scheduled_for=SLOT, **seen)

    for url in (PAGE, TEXT, RSS):
        assert said in " ".join(unquote(read(reader, url)).split()), url


def test_a_second_brief_just_after_the_first_contradicts_neither_it_nor_itself(reader):
    feed = write(FeedFactory(), succeeded_at=SLOT - timedelta(minutes=6), checked_at=SLOT - timedelta(minutes=6))
    for n in range(12):
        tell(event(f"Event of {n}"), feed, hours=0.1)
    published()
    published(SLOT + timedelta(minutes=1, microseconds=1))

    for url in ("/briefs/2026-05-04-2/", "/briefs/2026-05-04-2.txt"):
        said = " ".join(unquote(read(reader, url)).split())
        assert "(UTC): no new articles, 2 events with news from earlier articles." in said
        assert "No feed was checked in this period. The last answer of a feed came at 4 May 2026, 05:54." in said
        assert "not known" not in said


def test_silent_feeds_beside_stories_do_not_make_them_unknown(reader):
    tell(event(), write(FeedFactory(), checked_at=SLOT, failures=1, failing_since=SLOT, last_error="404"))
    published()

    said = " ".join(read(reader, TEXT).split())

    assert "1 article, 1 event with news." in said
    assert "No feed answered in this period. No feed has ever answered." in said


# Hostile content


@pytest.fixture
def hostile(brief):
    """A brief with content that was never cleaned."""
    written = list(zip(TITLES * 3, URLS, strict=False))
    # PostgreSQL enforces the column lengths.
    written += [("x" * 100_000, LONG_URL)] if connection.vendor == "sqlite" else [("x" * 500, "javascript:" * 70)]
    for n, (title, url) in enumerate(written):
        item = BriefItemFactory(brief=brief, position=n + 10, headline=title, summary=title, reasons=[{"words": title}])
        BriefArticleFactory(item=item, position=0, title=title, url=url, source=title[:300])
    return brief


def test_hostile_titles_stay_text(reader, hostile):
    page = read(reader, PAGE)

    document = html.fromstring(page)
    assert not document.xpath("//script[not(@src)]")
    assert not document.xpath("//article//*[self::script or self::img or self::svg or self::iframe]")
    assert not document.xpath("//*[@onclick or @onerror or @onload or @style]")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{ 7*7 }}{% debug %} %s {0.__class__}" in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert not document.xpath("//style")


def test_only_addresses_of_pages_are_links(reader, hostile):
    for document in (html.fromstring(read(reader, PAGE)), *contents_of(read(reader, RSS))):
        links = document.xpath("//*[@href and not(self::link)]")
        elsewhere = [each for each in links if not re.match(r"/[^/]|/$|[?#]", each.get("href"))]
        assert len(elsewhere) == 3
        for each in elsewhere:
            assert each.get("href").startswith(("https://first.example.com/", "https://news.example.com/articles/"))
            assert set(each.get("rel").split()) == {"noopener", "noreferrer", "nofollow"}


def test_links_do_not_tell_where_somebody_comes_from(reader, brief):
    page = reader.get(PAGE)

    links = html.fromstring(page.content.decode()).xpath("//article//a[starts-with(@href, 'http')]")
    assert len(links) == 3
    assert {each.get("referrerpolicy") for each in links} == {"no-referrer"}
    assert page["Referrer-Policy"] == "same-origin"
    assert "'unsafe-inline'" not in page["Content-Security-Policy"]


def test_hostile_text_is_harmless_in_a_terminal(reader, hostile):
    text = read(reader, TEXT)

    assert all(each == "\n" or each.isprintable() for each in text)
    assert "    javascript:alert(1)" in text


def contents_of(feed):
    return [html.fromstring(entry.summary) for entry in feedparser.parse(feed.encode(), sanitize_html=False).entries]


# The text version


def test_as_text_it_is_no_wider_than_a_terminal(reader):
    bridge = event("Bridge closed " * 20)
    url = "https://news.example.com/" + "a" * 200
    tell(bridge, title="A title that goes on and on, " * 10, url=url, summary="Some words. " * 60)
    tell(bridge, title="Donaudampfschifffahrtsgesellschaftskapitänswitwe" * 5)
    published()

    page = reader.get(TEXT)

    assert page["Content-Type"] == "text/plain; charset=utf-8"
    lines = page.content.decode().splitlines()
    assert [line for line in lines if len(line) > 72] == [f"      {url}"]
    assert lines[0] == "Brief of Monday, 4 May 2026"
    assert any(line.startswith(" 1. Bridge closed Bridge closed") for line in lines)
    assert any(line.startswith("    Why: 2 articles from 2 sources · began") for line in lines)


def test_as_text_it_says_what_the_page_says(reader, brief):
    text = " ".join(read(reader, TEXT).split())

    for words in (
        "News from 3 May 2026, 06:00 to 4 May 2026, 06:00 (UTC)",
        "1. Bridge closed It is closed since Monday.",
        "* First News, 4 May 2026, 01:00: The bridge is closed https://first.example.com/bridge?a=1&b=2",
        "2. Cats sleep",
    ):
        assert words in text


# RSS


def test_rss_is_read_by_a_reader(reader, brief):
    published(SLOT + DAY)

    answer = reader.get(RSS)
    feed = feedparser.parse(answer.content)

    assert answer["Content-Type"] == "application/rss+xml; charset=utf-8"
    assert (feed.bozo, feed.version, feed.feed.title) == (False, "rss20", "ADE briefs")
    assert feed.feed.link == "http://testserver/briefs/"
    assert [entry.title for entry in feed.entries] == ["Brief of Tuesday, 5 May 2026", "Brief of Monday, 4 May 2026"]
    entry = feed.entries[1]
    assert entry.id == entry.link == f"http://testserver{PAGE}"
    assert entry.published_parsed[:5] == brief.published_at.timetuple()[:5]
    assert "Bridge closed" in entry.summary
    assert 'href="https://first.example.com/bridge?a=1&amp;b=2"' in entry.summary


def test_rss_is_xml_whatever_strangers_wrote(reader, hostile):
    answer = reader.get(RSS).content

    assert feedparser.parse(answer).bozo is False
    (item,) = etree.fromstring(answer).iter("item")
    assert [each.tag for each in item] == ["title", "link", "description", "pubDate", "guid"]
    assert len(item) == 5
    assert "<script>" not in item.findtext("description")


def test_rss_of_no_brief_is_a_feed(reader):
    feed = feedparser.parse(reader.get(RSS).content)

    assert (feed.bozo, feed.entries) == (False, [])


def test_rss_has_the_latest(reader):
    for n in range(views.MOST_IN_RSS + 2):
        BriefFactory(name=f"2026-05-04-{n}", scheduled_for=SLOT + n * DAY)

    entries = feedparser.parse(reader.get(RSS).content).entries

    assert [entry.link[-3:-1] for entry in entries[:2]] == ["31", "30"]
    assert len(entries) == views.MOST_IN_RSS


# The list


def test_the_list_is_by_month_the_newest_first(reader):
    bridge = event()
    tell(bridge)
    published()
    feed = write(FeedFactory(), succeeded_at=SLOT + timedelta(hours=1))
    for days in (1, 2):
        published(SLOT + days * DAY)
    write(feed, failures=1, failing_since=SLOT, last_error="404")
    published(SLOT + 40 * DAY)

    page = html.fromstring(read(reader, LIST))

    assert page.xpath("//h2/text()") == ["June 2026", "May 2026"]
    assert [each.get("href") for each in page.xpath("//ul[@class='briefs']//a")] == [
        f"/briefs/{name}/" for name in ("2026-06-13", "2026-05-06", "2026-05-05", "2026-05-04")
    ]
    assert page.xpath("//ul[@class='briefs']//p/text()") == ["Bridge closed"]
    assert page.xpath("//span/text()") == ["no feed answered", "no feed was checked", "nothing new", "1 event"]


def test_the_list_goes_on(reader, monkeypatch):
    monkeypatch.setattr(views, "MOST_LISTED", 2)
    for n in range(5):
        BriefFactory(name=f"2026-05-0{n + 1}", scheduled_for=SLOT + n * DAY)

    url, seen = LIST, []
    while url:
        page = html.fromstring(read(reader, url))
        seen += page.xpath("//ul[@class='briefs']//a/@href")
        url = next((LIST + each for each in page.xpath("//a[@rel='next']/@href")), None)

    assert seen == [f"/briefs/2026-05-0{n}/" for n in (5, 4, 3, 2, 1)]


def test_an_empty_list_says_when_there_will_be_one(reader):
    assert "No briefs yet." in read(reader, LIST)


def test_every_page_of_the_admin_leads_to_them(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))

    for url in ("/admin/", "/admin/feeds/brief/", "/documents/search/"):
        page = read(client, url)
        assert '<a href="/briefs/">Briefs</a>' in page
        assert '<a href="/documents/search/">Search</a>' in page


# Conditional answers


@pytest.mark.parametrize("url", [LIST, PAGE, TEXT, RSS])
def test_who_has_it_already_is_told_so(reader, brief, url):
    first = reader.get(url)

    for headers in (
        {"If-None-Match": first["ETag"]},
        {"If-Modified-Since": first["Last-Modified"]},
    ):
        again = reader.get(url, headers=headers)
        assert (again.status_code, again.content) == (304, b"")
        assert again["ETag"] == first["ETag"]
        assert "no-cache" in again["Cache-Control"]
    assert reader.get(url, headers={"If-None-Match": '"another"'}).status_code == 200


def test_it_is_the_same_for_everybody(reader, brief, olga):
    other = Client()
    other.force_login(olga)

    for url in (LIST, PAGE, TEXT, RSS):
        assert reader.get(url)["ETag"] == other.get(url)["ETag"]


def test_only_a_new_neighbour_changes_a_page(reader, brief):
    before, text = reader.get(PAGE), reader.get(TEXT)

    write(event("Another"), title="Changed")
    assert reader.get(PAGE)["ETag"] == before["ETag"]
    published(SLOT + DAY)

    assert reader.get(PAGE)["ETag"] != before["ETag"]
    assert reader.get(TEXT)["ETag"] == text["ETag"]


# Queries


@pytest.mark.parametrize(("url", "most"), [(LIST, 3), (PAGE, 7), (TEXT, 5), (RSS, 5)])
def test_pages_take_few_queries_however_much_they_tell(reader, url, most):
    for n in range(12):
        cluster = event(f"Event of {n}")
        for _ in range(4):
            tell(cluster)
            tell(cluster, hours=-20)
    for days in (-1, 0, 1):
        published(SLOT + days * DAY)

    with CaptureQueriesContext(
        connection,
    ) as queries:
        read(reader, url)

    assert len(queries) <= most, [each["sql"] for each in queries]
