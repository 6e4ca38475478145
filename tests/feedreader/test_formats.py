import json

import pytest

from tests.feedreader.reading import failure_of, item_of, items_of, moment, read
from tests.feeds.samples import item, rss

pytestmark = pytest.mark.once

BODY = "<title>One</title><link>https://aster.example/1</link><description>Text</description>"
RSS_1 = f"""<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
 <channel rdf:about="https://aster.example/"><title>Aster</title><link>https://aster.example/</link>
 <items><rdf:Seq><rdf:li resource="https://aster.example/1"/></rdf:Seq></items></channel>
 <item rdf:about="https://aster.example/1">{BODY}<dc:creator>Olga</dc:creator><dc:date>2026-03-01T12:00:00Z</dc:date>
 </item></rdf:RDF>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Aster</title><link href="https://aster.example/"/>
 <link rel="self" href="https://aster.example/feed.xml"/><updated>2026-03-01T12:00:00Z</updated>
 <entry><title>One</title><id>tag:aster.example,2026:1</id><link rel="self" href="https://aster.example/api/1"/>
 <link rel="alternate" href="https://aster.example/1"/><summary>Text</summary><author><name>Olga</name></author>
 <published>2026-03-01T13:00:00+01:00</published><updated>2026-03-02T00:00:00Z</updated></entry></feed>"""
JSON_FEED = {
    "version": "https://jsonfeed.org/version/1.1",
    "title": "Aster",
    "home_page_url": "/",
    "items": [
        {
            "id": "1",
            "url": "/1",
            "title": "One",
            "content_html": "<p>Text</p>",
            "authors": [{"name": "Olga"}],
            "date_published": "2026-03-01T12:00:00Z",
        }
    ],
}
NETSCAPE = (
    '<?xml version="1.0"?><!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN"'
    ' "http://my.netscape.com/publish/formats/rss-0.91.dtd">'
)


def of_version(version, head='<?xml version="1.0"?>'):
    dated = "<pubDate>Sun, 01 Mar 2026 12:00:00 GMT</pubDate><author>Olga</author>"
    about = "<title>Aster</title><link>https://aster.example/</link>"
    return f'{head}<rss version="{version}"><channel>{about}<item>{BODY}{dated}</item></channel></rss>'


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (of_version("0.91", NETSCAPE), "rss091u"),
        (of_version("0.91"), "rss091u"),
        (of_version("0.92"), "rss092"),
        (of_version("2.0"), "rss20"),
        (of_version("2.0", "\n  \n<?xml version='1.0'?>"), "rss20"),
        (RSS_1, "rss10"),
        (ATOM, "atom10"),
        (json.dumps(JSON_FEED), "json1.1"),
        (json.dumps(JSON_FEED | {"version": "https://jsonfeed.org/version/1"}), "json1"),
    ],
)
def test_every_kind_of_feed_says_the_same(body, version):
    found = read(body)

    assert (found.format, found.title, found.site_url) == (version, "Aster", "https://aster.example/")
    (one,) = found.items()
    assert (one.url, one.title, one.summary, one.author) == ("https://aster.example/1", "One", "Text", "Olga")
    assert one.published == moment(2026, 3, 1, 12)
    assert (found.broken, found.total, found.count) == ("", 1, 1)


@pytest.mark.parametrize(
    "body", [rss(), ATOM.partition("<entry>")[0] + "</feed>", json.dumps(JSON_FEED | {"items": []})]
)
def test_a_feed_without_items_is_one(body):
    found = read(body)

    assert (list(found.items()), found.title[:5]) == ([], "Aster")


@pytest.mark.parametrize(
    ("inner", "url"),
    [
        ("<link>/2026/story</link>", "https://aster.example/2026/story"),
        ("<link>story</link>", "https://aster.example/news/story"),
        ("<link xml:base='https://other.example/a/'>story</link>", "https://other.example/a/story"),
        ("<link>//cdn.example/story</link>", "https://cdn.example/story"),
        ("<link>HTTPS://ASTER.example/Story</link>", "https://ASTER.example/Story"),
        ("<guid>https://aster.example/guid</guid>", "https://aster.example/guid"),
        ("<guid isPermaLink='false'>https://aster.example/guid</guid>", "https://aster.example/guid"),
        ("<enclosure url='https://aster.example/episode.mp3' type='audio/mpeg'/>", "https://aster.example/episode.mp3"),
        ("<guid isPermaLink='false'>17</guid>", ""),
        ("<link></link>", ""),
        ("<link>javascript:alert(1)</link>", "javascript:alert(1)"),
        ("<link>data:text/html,x</link>", "data:text/html,x"),
        ("<link>ftp://aster.example/story</link>", "ftp://aster.example/story"),
    ],
)
def test_the_link_of_an_item(inner, url):
    one = item_of(rss(f"<item><title>x</title>{inner}</item>"))

    # The code that stores articles judges unusable links and reports them.
    assert one.url == url or one.url.lower() == url.lower()


def test_links_of_atom_are_relative_to_where_it_says():
    body = ATOM.replace("<feed ", '<feed xml:base="https://base.example/blog/" ')
    body = body.replace("https://aster.example/1", "posts/1")

    assert item_of(body).url == "https://base.example/blog/posts/1"


@pytest.mark.parametrize(
    ("date", "published"),
    [
        ("Sun, 01 Mar 2026 12:00:00 +0100", (2026, 3, 1, 11)),
        ("2026-03-01T12:00:00Z", (2026, 3, 1, 12)),
        ("Sun, 01 Mar 2026 12:00:00 EST", (2026, 3, 1, 17)),
        ("Mon, 01 Jan 0001 00:00:00 GMT", (1, 1, 1)),
        ("yesterday", None),
        ("", None),
        ("Sun, 99 Foo 2026 99:99:99 GMT", None),
    ],
)
def test_the_date_of_an_item(date, published):
    one = item_of(rss(item(about=f"<pubDate>{date}</pubDate>")))

    assert one.published == (moment(*published) if published else None)


def test_how_long_a_feed_wants_to_be_left_alone():
    about = "<title>x</title><ttl>90</ttl>"
    syndication = '<rss version="2.0" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"><channel>'
    daily = f"{syndication}<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>"

    assert read(rss(about=about)).ttl_seconds == 5400
    assert read(f"{daily}</channel></rss>").ttl_seconds == 6 * 3600
    for nonsense in ("-1", "soon", "9" * 40, "٣"):
        assert read(rss(about=f"<title>x</title><ttl>{nonsense}</ttl>")).ttl_seconds == 0


@pytest.mark.parametrize(
    "broken",
    [
        "<title>two</title><link>https://a.example/2</link><description>A & B &nbsp; <br></description></item>",
        "<title>two</title><link>https://a.example/2</link><description>never closed</item>",
        "<title>two</title><link>https://a.example/2</link><description><![CDATA[never closed</description></item>",
        "<title>two</title><link>https://a.example/2</link><media:thumbnail url=x></item>",
        "<title>two</title><link>https://a.example/2</link>",
    ],
)
def test_one_broken_item_does_not_lose_the_others(broken):
    """F15: the items are still read."""
    found = read(rss(item("one", "https://a.example/1"), f"<item>{broken}", item("three", "https://a.example/3")))

    assert sorted(each.url for each in found.items()) == [f"https://a.example/{number}" for number in (1, 2, 3)]
    assert found.broken.startswith("line 1: ")


def test_very_many_broken_items_are_read_too():
    items = [item(f"Story {number}", f"https://a.example/{number}", about="&nbsp;") for number in range(1000)]

    assert read(rss(*items)).count == 1000


def test_what_was_cut_off_is_read_up_to_there():
    whole = rss(item("one", "https://a.example/1"), item("two", "https://a.example/2"))

    found = read(whole[: whole.index(b"<item><title>two") + 60])

    assert [each.title for each in found.items()][:1] == ["one"]
    assert found.broken


def test_json_with_items_of_other_types_loses_only_those():
    items = [None, 7, "x", [], {}, {"url": 7, "title": ["x"], "authors": "Olga", "author": {"name": 1}}]

    found = items_of(json.dumps(JSON_FEED | {"items": [*items, *JSON_FEED["items"]]}))

    assert [each.url for each in found] == [""] * 6 + ["https://aster.example/1"]
    assert {each.title for each in found[:6]} == {""}


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("", "not_a_feed", "it contains only spaces"),
        (" \r\n\ufeff ", "not_a_feed", "it contains only spaces"),
        ("Hello", "not_a_feed", "This is not a feed. ADE reads RSS, RDF, Atom and JSON Feed."),
        (
            "<?xml version='1.0'?><opml><head/></opml>",
            "not_a_feed",
            "This is not a feed: it is XML that begins with <opml>.",
        ),
        (
            "<!doctype html><title>x</title>",
            "not_a_feed",
            "This is a web page, not a feed. Add the address of its feed, if it has one.",
        ),
        ("<!-- x --><HTML><body>x", "not_a_feed", "This is a web page, not a feed"),
        ("<rss version='2.0'><channel><title>", "malformed", "broken before its first item (line 1: "),
        ('{"items": []}', "not_a_feed", "This JSON is not a feed"),
        ('{"version": "https://jsonfeed.org/version/1"}', "not_a_feed", "This JSON is not a feed"),
        ("[1, 2]", "not_a_feed", "This JSON is not a feed"),
        ("{", "malformed", "The JSON of the feed is broken"),
        ("[" * 1_000_000, "malformed", "The JSON of the feed is broken"),
        ('{"a": ' + "9" * 10_000 + "}", "malformed", "The JSON of the feed is broken"),
    ],
)
def test_what_is_no_feed_is_told_so(body, code, message):
    failure = failure_of(body)

    assert failure.code == code
    assert message in str(failure)


def test_a_web_page_says_which_feeds_it_has():
    page = """<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "x"><html><head>
     <link rel="stylesheet" href="/a.css"><link rel="alternate" type="text/html" href="/de/">
     <link href='/feed.xml?a=1&amp;b=2' type="application/rss+xml" rel='alternate' title="x">
     <link rel=alternate type=application/atom+xml href=https://other.example/atom>
     <link rel="alternate" type="application/rss+xml" href="javascript:alert(1)">"""

    assert str(failure_of(page)) == (
        "This is a web page, not a feed. Add https://aster.example/feed.xml?a=1&b=2"
        " or https://other.example/atom instead."
    )


def test_of_a_feed_with_very_many_items_the_first_are_taken():
    """F13: the number of items is limited."""
    found = read(rss(*(item(f"Story {number}", f"https://a.example/{number}") for number in range(20_000))))

    assert (found.total, found.count, found.broken) == (20_000, 5000, "")
    assert [each.url for each in found.items()] == [f"https://a.example/{number}" for number in range(5000)]
