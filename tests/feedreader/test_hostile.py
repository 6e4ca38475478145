"""Feeds that try to cost their reader much, or to break out of it (S8, S11, S21, F13)."""

import re
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from feeds import reading
from feeds.reading import ReadFailed
from tests.feedreader.reading import URL, failure_of, item_of, read
from tests.feeds.samples import item, rss

pytestmark = pytest.mark.once

LAUGHS = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
DECLARING = {
    "billion laughs": f'<!DOCTYPE rss [<!ENTITY a0 "ha">{LAUGHS}]>',
    "quadratic": f'<!DOCTYPE rss [<!ENTITY a "{"x" * 100_000}">]>',
    "a file": '<!DOCTYPE rss [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
    "the network": '<!DOCTYPE rss [<!ENTITY a SYSTEM "http://127.0.0.1:9/">]>',
    "a parameter": '<!DOCTYPE rss [<!ENTITY % a SYSTEM "http://127.0.0.1:9/"> %a;]>',
    "a type elsewhere": '<!DOCTYPE rss SYSTEM "http://127.0.0.1:9/rss.dtd">',
    "a public type elsewhere": '<!DOCTYPE rss PUBLIC "-//Somebody//Else" "http://127.0.0.1:9/rss.dtd">',
    "Netscape's, and more": '<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "" [<!ENTITY a "b">]>',
    "behind a comment": '<!-- <rss> --><!DOCTYPE rss [<!ENTITY a "b">]>',
    "broken": '<!DOCTYPE rss [<!ENTITY a "b"> <broken ]>',
    "in small letters": '<!doctype rss [<!entity a "b">]>',
    "an entity alone": '<!ENTITY a "b">',
}


@pytest.mark.parametrize("declaration", DECLARING.values(), ids=DECLARING)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "cp1252"])
def test_a_declaration_of_a_type_is_refused_before_a_parser_of_feeds_sees_it(declaration, encoding):
    body = rss(item("&a;"), head=f'<?xml version="1.0" encoding="{encoding}"?>{declaration}').decode()

    failure = failure_of(body.encode(encoding))

    assert failure.code == "forbidden"
    assert re.match("This feed was not read: its (DOCTYPE|ENTITY) declaration", str(failure))


TYPE = '<!DOCTYPE rss [\n<!ENTITY a "BOOM">\n]>'
HIDING = {
    "behind a long comment that is none": f"<!-- -- {'x' * 70_000} -->{TYPE}",
    "behind a comment that ends twice": f"<!-->{TYPE}<!-- -- -->",
    "behind an element in a broken comment": f"<!-- -- <rss> -->{TYPE}",
    "in a comment": f"<!--\n{TYPE}\n-->",
    "behind an element with an odd name": f"<:a>\n{TYPE}",
    "behind an element with a foreign name": f"<é>\n{TYPE}",
}


@pytest.mark.parametrize("hiding", HIDING.values(), ids=HIDING)
def test_a_declaration_that_is_hidden_is_refused_too(hiding):
    """expat and feedparser disagree on where a malformed document begins. Custom entities are never expanded."""
    failure = failure_of(rss(item(about="<author>&a;</author>"), head=f'<?xml version="1.0"?>{hiding}'))

    assert failure.code == "forbidden"


def test_what_a_story_says_of_declarations_is_only_text():
    one = item_of(rss(item("How <!DOCTYPE html> began", description='<!DOCTYPE a [<!ENTITY b "c">]><p>Text</p>')))

    assert one.summary.endswith("Text")


def test_nothing_is_included_or_opened():
    include = '<x:include xmlns:x="http://www.w3.org/2001/XInclude" href="file:///etc/passwd" parse="text"/>'

    one = item_of(
        rss(f"<item><link>https://a.example/</link><title>x</title><description>{include}</description></item>")
    )

    assert "root:" not in one.summary


def test_the_name_of_a_file_is_not_opened(tmp_path, monkeypatch):
    """feedparser opens a file if the bytes are a file name."""
    feed = tmp_path / "secret.xml"
    feed.write_bytes(rss(item("A secret")))

    assert failure_of(str(feed)).code == "not_a_feed"


BODIES = {
    "elements in elements": "<a>" * 400_000,
    "items in items": "<item>" * 400_000,
    "markup in text": "<item><description>" + "<div>" * 500_000,
    "angles": "<item><description>" + "<" * 3_000_000,
    "escaped angles": "<item><description>" + "&lt;" * 1_000_000 + "</description></item>",
    "escaped comments": "<item><description>" + "&lt;!--" * 600_000 + "</description></item>",
    "ampersands": "<item><description>" + "&" * 3_000_000,
    "half a section": "<item><description>" + "<![CDATA[" * 400_000,
    "half a comment": "<!--" * 1_000_000,
    "half an instruction": "<?" * 2_000_000,
    "half a declaration": "<!" * 2_000_000,
    "ends": "</" * 2_000_000,
    "attributes": "<item " + "x=1 " * 1_000_000 + ">",
    "a quote": "<item a='" + "y" * 4_000_000,
    "a long name": "<" + "a" * 4_000_000,
    "characters": "<item><title>" + "&#x41;" * 700_000,
    "tags in a title": "<item><title>" + "<b>x</b>" * 500_000 + "</title></item>",
    "bases": "<item xml:base='http://x/'>" * 100_000,
    "prefixes": "".join(f"<x{n}:y xmlns:x{n}='u{n}'>" for n in range(80_000)),
    "a date": "<item><pubDate>" + "1 " * 2_000_000 + "</pubDate></item>",
    "authors": "".join("<item><author>" + "a.b@c" * 200 + " (" * 20 + "</author></item>" for n in range(3000)),
    "categories": "<item>" + "<category>x</category>" * 150_000,
    "links": "<item>" + "<link>x</link>" * 200_000 + "</item>",
    "enclosures": "<item>" + "<enclosure url='x'/>" * 200_000 + "</item>",
}
SMOKE = ("half a comment", "a long name", "escaped comments")


@pytest.mark.parametrize(
    "name", [name if name in SMOKE else pytest.param(name, marks=pytest.mark.long) for name in BODIES]
)
def test_whatever_it_is_reading_has_an_end(name, monkeypatch):
    """The feed is read or refused within the CPU time limit, which is lower here."""
    monkeypatch.setattr(reading, "LIMITS", replace(reading.LIMITS, wall_seconds=600, cpu_seconds=3))

    code = code_of(rss(BODIES[name]))

    assert code in ("read", "malformed", "not_a_feed", "too_slow", "too_large")
    # The next feed is not affected.
    assert read(rss(item())).count == 1


def code_of(body):
    try:
        read(body)
    except ReadFailed as failure:
        return failure.code
    return "read"


@pytest.mark.parametrize(
    "body",
    [Random(1).randbytes(1 << 20), bytes(1 << 20), b"\xff\xfe" * 500_000, b" " * 4_000_000],
    ids=["chance", "zeros", "marks", "spaces"],
)
def test_what_is_no_text_is_no_feed(body):
    assert failure_of(body).code == "not_a_feed"


def test_who_keeps_its_reader_busy_is_ended(monkeypatch):
    """The CPU time limit ends it: one second here, to save time."""
    monkeypatch.setattr(reading, "LIMITS", replace(reading.LIMITS, cpu_seconds=1))

    failure = failure_of(rss(BODIES["elements in elements"]))

    assert failure.code == "too_slow"


def test_who_needs_too_much_memory_is_ended(monkeypatch):
    monkeypatch.setattr(reading, "LIMITS", replace(reading.LIMITS, address_space_bytes=40 << 20))

    failure = failure_of(rss(*(item(f"Story {number}", description="words " * 150) for number in range(4500))))

    assert failure.code == "too_large"


def test_reading_ends_when_nobody_wants_it_any_more():
    began = time.monotonic()

    with pytest.raises(reading.Interrupted, match="worker_stopping"):
        reading.read(rss(BODIES["markup in text"]), URL, "", stop=lambda: "worker_stopping")
    assert time.monotonic() - began < 50


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("open('items.jsonl', 'w').write('nonsense\\n')", "wrote an item that is not valid JSON"),
        ("open('items.jsonl', 'w').write('[' * 100_000 + '\\n')", "wrote an item that is not valid JSON"),
        ("os.symlink('/etc/passwd', 'items.jsonl')", "left no readable items.jsonl"),
        ("os.mkfifo('items.jsonl')", "left items.jsonl, but it is not a file"),
        ("os.mkdir('items.jsonl')", "left items.jsonl, but it is not a file"),
        ("pass", "left no readable items.jsonl"),
        ("sys.exit(3)", "The feed reader failed: exited with code 3"),
        ("os.kill(os.getpid(), 11)", "The feed is too large: the feed reader failed"),
    ],
)
def test_a_reader_that_was_taken_over_is_not_believed(monkeypatch, settings, program, message):
    taken_over(monkeypatch, settings, program)

    with pytest.raises(ReadFailed, match=message):
        list(reading.read(b"x", URL, "").items())


def test_and_what_it_says_is_cut_to_size(monkeypatch, settings):
    line = r'{"url": "%s", "title": 7, "summary": "\\ud800\\u0000x", "published": "now"}' % ("u" * 100_000)
    taken_over(monkeypatch, settings, f"open('items.jsonl', 'w').write('''{line}\\n[]\\n''')")

    first, second = reading.read(b"x", URL, "").items()

    assert (len(first.url), first.title, first.summary, first.published) == (8001, "", "?x", None)
    assert (second.url, second.title) == ("", "")


def taken_over(monkeypatch, settings, program):
    """Replace the reader with another program, which claims to have read something."""
    settings.ADE_WARM_ENGINES = False
    tell = "os.write(int(os.environ['ADE_EVENTS_FD']), b'{\"kind\": \"read\"}\\n')"
    monkeypatch.setattr("ade_feedreader.PROGRAM", f"import os, sys\n{program}\n{tell}")


def test_the_reader_leaves_nothing_behind():
    read(rss(item()))

    with reading.program_directory(reading.FEEDREADER, lambda: None) as place:
        folder = Path(place.directory).parent
        assert sorted(each.name for each in folder.iterdir()) == sorted([".tmp", place.directory.name])
