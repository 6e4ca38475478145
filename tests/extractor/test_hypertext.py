from dataclasses import replace

import pytest

from tests import effort
from tests.extractor.extracting import HTML, WITHIN, extract, written
from tests.extractor.test_hostile_pdf import failure

pytestmark = [pytest.mark.once, pytest.mark.long]


def page_of(tmp_path, markup):
    (page,) = extract(written(tmp_path / "a.html", markup), HTML).pages
    return page


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<title>News</title><h1>Big</h1><p>One <b>bold</b> word</p><p>Two", "News\n\nBig\n\nOne bold word\n\nTwo"),
        ("a<script>x()</script>b<style>p{}</style>c", "abc"),
        ("a<script>if (a < b) '<p>' </script >b", "ab"),
        ("a<script>never closed <p>hidden</p>", "a"),
        ("a<script/>x()</script>b", "ab"),
        ("<!-- hidden --><?php hidden ?><!DOCTYPE html>shown", "shown"),
        ("&lt;b&gt; &amp; &euro; &#x41; &nosuch;", "<b> & € A &nosuch;"),
        ("one<br>two<br/>three", "one\ntwo\nthree"),
        ("many \n   spaces\tand\nlines", "many spaces and lines"),
        ("<pre>  kept\n    as it is</pre>", "kept\n    as it is"),
        ("<ul><li>a<li>b</ul><div>c<div>d</div>e</div>", "a\n\nb\n\nc\n\nd\n\ne"),
        ("<p onclick='x()' title='>'>safe</p>", "safe"),
        ("a < b and c > d", "a < b and c > d"),
        ("&#0;&#xD800;&#x110000;x", "\ufffd\ufffd\ufffdx"),
    ],
)
def test_what_a_reader_reads(tmp_path, markup, text):
    assert page_of(tmp_path, markup)["text"] == text


def test_tables_are_rows_in_the_text_too(tmp_path):
    markup = "<p>Prices</p><table><tr><th>Item<th>Price<tr><td>Tea</td><td> 3,50 </td></tr></table><p>End"

    page = page_of(tmp_path, markup)

    assert page["tables"] == [{"box": None, "rows": [["Item", "Price"], ["Tea", "3,50"]]}]
    assert page["text"] == "Prices\n\nItem\tPrice\nTea\t3,50\n\nEnd"


@pytest.mark.parametrize(
    "head", ['<meta charset="cp1251">', '<meta http-equiv=x content="text/html; charset=windows-1251">']
)
def test_the_encoding_that_it_names(tmp_path, head):
    assert page_of(tmp_path, head.encode() + "<p>да</p>".encode("cp1251"))["text"] == "да"


@pytest.mark.parametrize("name", ["rot13", "zlib", "unicode_escape", "idna", "punycode", "x" * 30, "\u0430"])
def test_what_is_no_encoding_of_documents_is_not_believed(tmp_path, name):
    assert page_of(tmp_path, f'<meta charset="{name}"><p>Plain \\u0041</p>')["text"] == "Plain \\u0041"


def test_nothing_is_fetched(tmp_path):
    markup = '<!DOCTYPE html [<!ENTITY a SYSTEM "file:///etc/passwd">]><img src="http://127.0.0.1:9/x"><p>&a;</p>'

    page = page_of(tmp_path, markup)

    assert page["images"] == 1
    assert "root:" not in page["text"]


HOSTILE = {
    "open tags": b"<div>" * 400_000,
    "open tables": b"<table><tr><td>x" * 100_000,
    "half a tag": b"<a" * 500_000,
    "half a declaration": b"<!" * 500_000,
    "half a comment": b"<!--" * 300_000,
    "half a section": b"<![" * 400_000,
    "half an instruction": b"<?" * 500_000,
    "an attribute": b"<a " + b"x=" * 500_000,
    "a quote": b"<a x='" + b"y" * 1_000_000,
    "many attributes": b"<a " + b"x=1 " * 300_000 + b">",
    "entities": b"&#" * 500_000,
    "names": b"&" * 1_000_000,
    "end tags": b"</" * 500_000,
    "script": b"<script></" * 100_000,
    "numbers": b"&#" + b"9" * 900_000 + b";",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_anything_ends(tmp_path, name):
    """It ends with text or with the CPU time limit, which is lower here to save time."""
    outcome = extract(written(tmp_path / "a.html", HOSTILE[name]), HTML, limits=replace(WITHIN, cpu_seconds=2))

    assert effort.usual(outcome.ended.cpu_seconds) < 4
    assert outcome.ended.returncode in (0, 1) or outcome.ended.signal in ("SIGXCPU", "SIGKILL"), outcome.ended


def test_what_takes_too_long_is_told_within_ten_seconds(tmp_path):
    assert failure(written(tmp_path / "a.html", HOSTILE["half a tag"]), HTML) == "too_slow"


def test_too_large(tmp_path):
    assert extract(written(tmp_path / "a.html", b"<p>x" * (5 << 20)), HTML).code == "too_large"
