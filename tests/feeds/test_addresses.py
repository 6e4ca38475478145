import hashlib
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feeds import addresses
from feeds.addresses import BadUrl, canonical, digest
from feeds.models import LONGEST_URL
from tests import effort

pytestmark = pytest.mark.once

# Parts of URLs, and parts that do not belong into one.
PIECES = [
    "http:", "HTTPS:", "//", "/", "\\", "?", "#", "#!/", "&", "=", ";", ":", ":80", ":0443", "@", "%", "%2", "%2e",
    "%C3", "%41", "%00", "..", ".", "a", "EXAMPLE.com", "müller.de", "ß", "[::1]", "[", "]", "utm_source=x", "fbclid",
    " ", "\t", "\n", "\0", "\ud800", "😀", "\u202e", "+", "~", "'", '"', "<", "|", "xn--", "日本語",
]  # fmt: skip
URLS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@pytest.mark.parametrize(
    ("url", "spelling"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("http://example.com:0080/a", "http://example.com/a"),
        ("http://example.com:443/a", "http://example.com:443/a"),
        ("http://example.com:/a", "http://example.com/a"),
        ("http://example.com./a", "http://example.com/a"),
        ("https://Müller.de/", "https://xn--mller-kva.de/"),
        ("https://日本語.jp/", "https://xn--wgv71a119e.jp/"),
        ("http://ex%61mple.com/", "http://example.com/"),
        ("http://[::FFFF:0:1]:8080/", "http://[::ffff:0.0.0.1]:8080/"),
        ("http://a.example/b/./c/../d", "http://a.example/b/d"),
        ("http://a.example/../..", "http://a.example/"),
        ("http://a.example/b/%2E%2e/c", "http://a.example/c"),
        ("http://a.example/b/..", "http://a.example/"),
        ("http://a.example/b\\c", "http://a.example/b/c"),
        ("http://a.example//b/", "http://a.example//b/"),
        ("http://a.example/%7euser/%c3%a9/é", "http://a.example/~user/%C3%A9/%C3%A9"),
        ("http://a.example/100%/a b", "http://a.example/100%25/a%20b"),
        ("http://a.example/a%2Fb", "http://a.example/a%2Fb"),
        (" \n http://a.example/a\n\tb \0", "http://a.example/ab"),
        ("http://a.example/?", "http://a.example/"),
        ("http://a.example/?b=2&&a=1&", "http://a.example/?b=2&a=1"),
        ("http://a.example/?q=a+b%20c", "http://a.example/?q=a+b%20c"),
        ("http://a.example/#comments", "http://a.example/"),
        ("http://a.example/#!/story/1", "http://a.example/#!/story/1"),
        ("http://a.example/#/story/1", "http://a.example/#/story/1"),
    ],
)
def test_one_spelling_of_a_url(url, spelling):
    assert canonical(url) == spelling


@pytest.mark.parametrize(
    "parameter",
    [
        "utm_source=rss",
        "UTM_Campaign=x",
        "utm%5Fmedium=feed",
        "fbclid=1",
        "gclid",
        "mc_cid=1",
        "at_medium=RSS",
        "_hsenc=",
    ],
)
def test_what_follows_readers_around_is_dropped(parameter):
    plain, followed = "http://a.example/story", f"http://a.example/story?{parameter}"

    assert canonical(followed) == plain
    assert canonical(f"{followed}&id=7") == canonical(f"{plain}?id=7&{parameter}") == f"{plain}?id=7"


def test_what_only_looks_like_it_stays():
    url = "http://a.example/?utm=1&ref=home&id=utm_source"

    assert canonical(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "story.html",
        "//a.example/story",
        "javascript:alert(1)",
        "JavaScript://a.example/%0aalert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "ftp://a.example/",
        "mailto:olga@a.example",
        "https:/a.example",
        "https://",
        "https://:80/",
        "https://a..example/",
        "https://a b.example/",
        "https://a%2fb.example/",
        "https://olga:secret@a.example/",
        "https://bank.example@evil.example/",
        "https://a.example:0/",
        "https://a.example:65536/",
        "https://a.example:http/",
        "https://[::1/",
        "https://[nonsense]/",
        "https://[fe80::1%25eth0]/",
        "https://\u202eexample.com/",
        f"https://{'a' * 64}.example/",
        f"https://{'a.' * 127}example/",
        f"https://{'ü' * 5000}.example/",
    ],
)
def test_what_is_no_address_on_the_web_is_refused(url):
    with pytest.raises(BadUrl, match=r"^The (brackets in the )?URL .*'.*\.$"):
        canonical(url)


def test_a_secret_is_not_told():
    with pytest.raises(BadUrl) as caught:
        canonical("https://olga:secret@a.example/")

    assert "secret" not in str(caught.value)


def test_a_url_is_as_long_as_every_database_can_keep_unique():
    longest = "https://a.example/" + "x" * (LONGEST_URL - len("https://a.example/"))

    assert canonical(f"{longest}?utm_source={'x' * 1000}#{'x' * 1000}") == longest
    with pytest.raises(BadUrl, match="it has 801 or more characters, and the limit is 800"):
        canonical(f"{longest}x")
    with pytest.raises(BadUrl, match="it has 1000018 characters, and the limit is 8000"):
        canonical("https://a.example/" + "x" * 1_000_000)


@settings(deadline=None)
@given(URLS)
def test_a_spelling_is_its_own(url):
    try:
        spelling = canonical(url)
    except BadUrl:
        return

    assert canonical(spelling) == spelling
    assert spelling.isascii()
    assert spelling.isprintable()


@settings(deadline=None)
@given(URLS)
def test_no_url_on_the_web_is_taken_for_something_else(url):
    """Every string is accepted or refused, without another error."""
    with suppress(BadUrl):
        assert canonical(f"https://a.example/{url}").startswith("https://a.example/")


@pytest.mark.parametrize("piece", ["%", "../", "&utm_source", "//", "[", "é", "\\", "\t"])
def test_the_longest_that_is_looked_at_takes_no_time(piece):
    began = time.process_time()

    for _ in range(10):
        with suppress(BadUrl):
            canonical("https://a.example/" + "x" * 900 + piece * (7000 // len(piece)))

    assert effort.since(began) < 1


@pytest.mark.parametrize("piece", ["|", "é", "%", "%41", "/%7C", "?|", "#!|", "&|", "utm_source=|"])
def test_no_more_is_escaped_than_can_be_kept(piece, monkeypatch):
    """A compressed feed of 10 KB can contain 600 of these."""
    escape, escaped = addresses._escape, []
    monkeypatch.setattr(addresses, "_escape", lambda match: escaped.append(match[0]) or escape(match))

    with suppress(BadUrl):
        canonical("https://a.example/" + piece[0] + piece * (7900 // len(piece)))

    assert len(escaped) <= LONGEST_URL


def test_a_digest_is_that_of_the_spelling():
    assert digest("http://a.example/") == hashlib.sha256(b"http://a.example/").hexdigest()
