import json

import pytest

from tests.feedreader.reading import item_of, items_of, read
from tests.feeds.samples import item, rss

pytestmark = pytest.mark.once


def summary_of(description):
    return item_of(rss(item(description=description))).summary


@pytest.mark.parametrize(
    ("description", "summary"),
    [
        ("Plain words", "Plain words"),
        ("<p>One <b>bold</b> word</p><p>Two", "One bold word Two"),
        ("one<br>two<br/>three", "one two three"),
        ("un<i>believ</i>able", "unbelievable"),
        ("a<script>alert(1)</script>b<style>p{}</style>c", "a b c"),
        ("a<script>never closed <p>hidden</p>", "a"),
        ("a<!-- <b>hidden</b> -->b", "ab"),
        ("<img src=x onerror=alert(1)>shown", "shown"),
        ("<a href='javascript:alert(1)'>shown</a>", "shown"),
        ("Fish &amp; chips &#8211; &euro;3 &nosuch;", "Fish & chips – €3 &nosuch;"),
        ("&lt;p&gt;Twice &lt;i&gt;escaped&lt;/i&gt;&lt;/p&gt;", "Twice escaped"),
        ("<p>Write &lt;b&gt; for bold</p>", "Write <b> for bold"),
        ("a < b and c > d", "a < b and c > d"),
        ("many \n  spaces\tand\u00a0lines\u2028here", "many spaces and lines here"),
        ("half a tag <a href='x", "half a tag"),
        ("&#0;&#xD800;&#x1F600;&#7;x", "\ufffd\ufffd😀x"),
    ],
)
def test_summaries_are_plain_text(description, summary):
    assert summary_of(description) == summary


def test_cdata_is_text():
    one = item_of(
        rss("<item><title><![CDATA[A <b>bold</b> & brave title]]></title><link>https://a.example/</link></item>")
    )

    assert one.title == "A bold & brave title"


def test_xhtml_of_atom_is_text():
    xhtml = (
        '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>One</p> <p>Two &lt; 3</p></div></content>'
    )
    body = f'<feed xmlns="http://www.w3.org/2005/Atom"><title>x</title><entry><link href="https://a.example/"/>{xhtml}</entry></feed>'

    assert item_of(body).summary == "One Two < 3"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\u202egpj.exe\u202cb", "agpj.exeb"),
        ("a\u2066b\u2069c", "abc"),
        ("שלום\u200f!", "שלום\u200f!"),
        ("👩\u200d👩\u200d👧", "👩\u200d👩\u200d👧"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("\x1b[31mred\x07", "[31mred"),
        ("line\nfeed\r\nlines", "line feed lines"),
        ("nul\0nul", "nulnul"),
        ("\ud800lone", "lone"),
        ("\ud83d\ude00pair", "😀pair"),
        ("\ufffe\uffff", "x"),
    ],
)
def test_what_no_database_and_no_reader_wants_is_removed(text, clean):
    """S3, S20; JSON can contain all of these characters."""
    feed = {
        "version": "https://jsonfeed.org/version/1",
        "items": [{"title": text, "summary": "x", "url": "https://a.example/"}],
    }

    assert item_of(json.dumps(feed)).title == clean


def test_an_item_without_a_title_is_called_by_its_text():
    short, long = items_of(rss(item("", description="Only text"), item("", description="word " * 100)))

    assert short.title == "Only text"
    assert (len(long.title), long.title[-1]) == (120, "…")


def test_texts_are_cut_to_what_can_be_kept():
    author = f"<author>{'a' * 10_000}</author>"
    found = read(
        rss(
            item("t" * 100_000, description="<p>words</p> " * 100_000, about=author),
            about=f"<title>{'f' * 9999}</title>",
        )
    )
    (one,) = found.items()

    assert [len(each) for each in (found.title, one.title, one.summary, one.author)] == [500, 500, 2000, 200]
    assert (one.summary[:11], one.summary[-1]) == ("words words", "…")


ENCODED = "Zażółć gęślą jaźń naïve — „cytat”"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (ENCODED.encode(), ""),
        (ENCODED.encode(), "text/xml"),
        (ENCODED.encode(), "text/xml; charset=iso-8859-1"),
        (b'<?xml version="1.0" encoding="iso-8859-1"?>' + ENCODED.encode(), ""),
        (b'<?xml version="1.0" encoding="nonsense"?>' + ENCODED.encode(), "text/xml; charset=rot13"),
        (b"\xef\xbb\xbf" + ENCODED.encode(), "text/xml; charset=windows-1250"),
        (ENCODED.encode("utf-16"), ""),
        (b'<?xml version="1.0" encoding="utf-8"?>' + ENCODED.encode(), "text/html"),
        ('<?xml version="1.0" encoding="utf-16"?>' + ENCODED, ""),
    ],
)
def test_utf_8_and_16_are_known_whatever_they_are_called(body, content_type):
    assert title_in(body, content_type) == ENCODED


@pytest.mark.parametrize(
    ("encoding", "text", "declared", "content_type"),
    [
        ("windows-1250", "Zażółć gęślą jaźń", "windows-1250", ""),
        ("windows-1250", "Zażółć gęślą jaźń", "", "text/xml; charset=windows-1250"),
        ("windows-1251", "Съешь ещё этих мягких французских булок", "windows-1251", "text/xml; charset=utf-8"),
        ("koi8-r", "Съешь ещё этих мягких французских булок", "KOI8-R", ""),
        ("iso-8859-1", "Über Straßen", "utf-8", "text/xml"),
        ("windows-1252", "“Quotes” – and dashes", "iso-8859-1", ""),
        ("shift_jis", "日本語のニュース", "Shift_JIS", ""),
        ("iso2022_jp", "日本語のニュース", "ISO-2022-JP", ""),
        ("gb18030", "中文新闻", "gb2312", ""),
        ("big5", "中文新聞", "big5", ""),
        ("euc_kr", "한국어 뉴스", "euc-kr", ""),
    ],
)
def test_other_encodings_are_known_where_they_are_said(encoding, text, declared, content_type):
    head = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""

    assert title_in(head.encode() + text.encode(encoding), content_type, encoding=encoding) == text


def test_a_damaged_byte_costs_one_character():
    body = rss(item(ENCODED * 20)).replace(b"na\xc3\xafve", b"na\xefve", 1)

    assert item_of(body).title.startswith(ENCODED.replace("ï", "\ufffd"))


def title_in(text, content_type, encoding="utf-8"):
    """Return the title of a feed with this text; a part before `?>` becomes the XML declaration."""
    if isinstance(text, str):
        text = text.encode()
    wide = text.startswith((b"\xff\xfe", b"\xfe\xff"))
    head, _, title = text.rpartition(b"?>") if not wide else (b"", b"", text[2:])
    head = head + b"?>" if head else (b"\xef\xbb\xbf" if title.startswith(b"\xef\xbb\xbf") else b"")
    before, after = "<rss version='2.0'><channel><title>x</title><item><title>", "</title></item></channel></rss>"
    if wide:
        body = b"\xff\xfe" + before.encode("utf-16-le") + title + after.encode("utf-16-le")
    else:
        body = head + before.encode() + title.removeprefix(b"\xef\xbb\xbf") + after.encode()
    (one,) = items_of(body, content_type)
    return one.title
