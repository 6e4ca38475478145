import pytest

from feeds.briefs import formatting
from tests.feeds.hostile_words import LONG_URL, URLS

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("found", "read"),
    [
        ("  Bridge \t closed\r\nfor days ", "Bridge closed for days"),
        ("\x1b[31mred\x07\x00 alert", "[31mred alert"),
        ("abc\u202edef\u2066ghi\u200f", "abcdefghi"),
        ("a\ufffeb\uffffc\ufeffd\ud800e", "abcde"),
        ("one\u2028two\u2029three\x85four", "one two three four"),
        ("family 👨‍👩‍👧 of three", "family 👨‍👩‍👧 of three"),
        ("<b>bold</b> & {{ 7*7 }}", "<b>bold</b> & {{ 7*7 }}"),
        ("\u0000\u202e", ""),
    ],
)
def test_a_line_is_harmless_and_says_the_same(found, read):
    assert formatting.line(found, 500) == read


def test_a_line_is_cut_and_costs_little_however_long_it_is():
    assert formatting.line("x" * 10_000_000, 500) == "x" * 500
    assert formatting.line("\u202e" * 10_000_000 + "end", 500) == ""


def test_a_beginning_ends_with_a_word():
    assert formatting.beginning("The bridge is closed.", 100) == "The bridge is closed."
    assert formatting.beginning("The bridge is closed for days.", 20) == "The bridge is…"
    assert formatting.beginning("It is closed. It is closed.", 15) == "It is closed…"
    assert formatting.beginning("Donaudampfschifffahrt", 10) == "Donaudamp…"
    assert len(formatting.beginning("word " * 30_000, 400)) <= 400


@pytest.mark.parametrize(
    "url",
    [
        "https://news.example.com/articles/1?a=b&c=%20d#e",
        "http://news.example.com",
        "HTTPS://NEWS.EXAMPLE.COM/A",
        "https://news.example.com:8443/a",
        "https://news.example.com/@somebody/post",
        "https://[2001:db8::1]/a",
        "https://bücher.example/straße",
    ],
)
def test_links_may_be_followed(url):
    assert formatting.link(url) == url


@pytest.mark.parametrize("url", [*URLS, LONG_URL, ""])
def test_what_is_no_address_of_a_page_is_no_link(url):
    assert formatting.link(url) == ""


def test_a_site_is_its_host():
    assert formatting.site("https://www.example.com/news?x") == "example.com"
    assert formatting.site("") == formatting.site("no url") == formatting.site("https://[broken") == ""
