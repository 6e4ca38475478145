from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import urlsplit

import pytest

from feeds.fetching import FetchFailed, fetch
from feeds.fetching.outcome import LONGEST_MESSAGE
from tests.feeds.servers import Server, answering, failing, head, redirecting, saying, serving

pytestmark = pytest.mark.once

FEED = b"<rss version='2.0'><channel><title>News</title></channel></rss>"
YESTERDAY = "Tue, 17 Nov 2026 06:00:00 GMT"


@pytest.fixture(autouse=True)
def reachable(settings):
    settings.ADE_FEED_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def other():
    with Server() as other:
        yield other


def failure_of(url, **options):
    with pytest.raises(FetchFailed) as failed:
        fetch(url, **{"seconds": 60, **options})
    return failed.value


def test_a_feed_is_fetched_with_what_its_server_says_of_it(server):
    url = server.on("/feed.xml", serving(FEED, etag='W/"1"', last_modified=YESTERDAY))

    fetched = fetch(url)

    assert fetched.body == FEED
    assert (fetched.url, fetched.content_type) == (url, "application/rss+xml")
    assert (fetched.etag, fetched.last_modified) == ('W/"1"', YESTERDAY)
    assert (fetched.moved_to, fetched.unchanged) == ("", False)


def test_a_request_says_no_more_than_it_must(server):
    fetch(server.on("/feed.xml", serving(FEED)) + "?a=1&b=%20#part")

    (asked,) = server.asked
    assert (asked.method, asked.path) == ("GET", "/feed.xml?a=1&b=%20")
    assert asked.headers.keys() == {"host", "user-agent", "accept", "accept-encoding"}
    assert asked.headers["host"] == f"127.0.0.1:{server.port}"
    assert asked.headers["user-agent"] == "ADE (feed reader)"
    assert asked.headers["accept-encoding"] == "gzip, deflate"
    assert "rss+xml" in asked.headers["accept"]


@pytest.mark.parametrize("path", ["", "?page=1"])
def test_a_server_without_a_path_is_asked_for_its_root(server, path):
    server.on("/", serving(FEED))

    assert fetch(server.url("") + path).url == server.url("/") + path


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_packed_feed_is_unpacked(server, coding):
    long = FEED * 10_000

    assert fetch(server.on("/feed.xml", serving(long, coding=coding))).body == long


def test_a_proxy_in_the_environment_is_not_asked(server, other, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, other.url(""))

    fetch(server.on("/feed.xml", serving(FEED)))

    assert other.connections == 0


def test_cookies_are_not_kept(server):
    server.on("/feed.xml", answering(status=302, Location="/2", Set_Cookie="visitor=1; Path=/"))
    server.on("/2", serving(FEED))

    fetch(server.url("/feed.xml"))
    fetch(server.url("/2"))

    assert all("cookie" not in asked.headers for asked in server.asked)


# Changed and unchanged feeds


@pytest.mark.parametrize("validators", [{"etag": '"1"'}, {"last_modified": YESTERDAY}])
def test_f12_a_feed_without_news_is_not_sent_again(server, validators):
    url = server.on("/feed.xml", serving(FEED, **validators))
    first = fetch(url)

    again = fetch(url, etag=first.etag, last_modified=first.last_modified)

    assert again.unchanged
    assert again.body == b""
    # The validators are kept for the next request, although a 304 need not repeat them.
    assert (again.etag, again.last_modified) == (first.etag, first.last_modified)


def test_a_feed_with_news_is_sent(server):
    url = server.on("/feed.xml", serving(FEED, etag='"2"'))

    fetched = fetch(url, etag='"1"', last_modified=YESTERDAY)

    assert (fetched.body, fetched.etag, fetched.unchanged) == (FEED, '"2"', False)


def test_a_server_that_repeats_nothing_is_told_the_same_again(server):
    url = server.on("/feed.xml", answering(status=304))

    fetched = fetch(url, etag='"1"', last_modified=YESTERDAY)

    assert (fetched.etag, fetched.last_modified, fetched.unchanged) == ('"1"', YESTERDAY, True)


def test_nothing_new_is_no_answer_to_a_first_question(server):
    failure = failure_of(server.on("/feed.xml", answering(status=304)))

    assert (failure.code, failure.permanent) == ("http_status", False)


@pytest.mark.parametrize("etag", ['"1"\r\nX-Injected: 1', '"ü"', '"\x00"', "  "])
def test_what_cannot_be_said_in_a_header_is_left_out(server, etag):
    fetch(server.on("/feed.xml", serving(FEED)), etag=etag, last_modified="\n")

    assert not {"if-none-match", "if-modified-since", "x-injected"} & server.asked[0].headers.keys()


@pytest.mark.parametrize("etag", ['"' + "a" * 600 + '"', '"\xe4"', '"a\tb"'])
def test_what_cannot_be_kept_of_an_answer_is_left_out(server, etag):
    fetched = fetch(server.on("/feed.xml", answering(FEED, ETag=etag, Content_Type="a" * 300)))

    assert (fetched.body, fetched.etag, fetched.content_type) == (FEED, "", "")


# Redirects


@pytest.mark.parametrize("status", [301, 308])
def test_a_feed_that_has_moved_for_ever_says_where_it_is(server, other, status):
    other.on("/new.xml", serving(FEED))
    server.on("/feed.xml", redirecting(other.url("/new.xml"), status))

    fetched = fetch(server.url("/feed.xml"))

    assert fetched.body == FEED
    assert fetched.url == fetched.moved_to == other.url("/new.xml")


@pytest.mark.parametrize("status", [302, 303, 307])
def test_a_feed_that_is_elsewhere_for_now_has_not_moved(server, status):
    server.on("/feed.xml", redirecting("/new.xml", status))
    server.on("/new.xml", serving(FEED))

    fetched = fetch(server.url("/feed.xml"))

    assert (fetched.url, fetched.moved_to) == (server.url("/new.xml"), "")


@pytest.mark.parametrize("statuses", [(301, 302), (302, 301), (308, 307, 301)])
def test_one_redirect_for_now_is_enough_for_a_feed_not_to_have_moved(server, statuses):
    for number, status in enumerate(statuses):
        server.on(f"/{number}", redirecting(f"/{number + 1}", status))
    server.on(f"/{len(statuses)}", serving(FEED))

    assert fetch(server.url("/0")).moved_to == ""


def test_a_feed_may_have_moved_without_news(server):
    server.on("/feed.xml", redirecting("/new.xml", 301))
    server.on("/new.xml", serving(FEED, etag='"1"'))

    fetched = fetch(server.url("/feed.xml"), etag='"1"')

    assert (fetched.unchanged, fetched.moved_to) == (True, server.url("/new.xml"))


@pytest.mark.parametrize("location", ["new.xml", "./new.xml", "../a/new.xml", "/a/new.xml", "?x=1", "/a/new.xml#part"])
def test_a_redirect_may_be_relative(server, location):
    server.on("/a/new.xml", serving(FEED))
    server.on("/a/feed.xml", lambda call: (serving(FEED) if "?" in call.asked.path else redirecting(location))(call))

    fetched = fetch(server.url("/a/feed.xml"))

    assert (fetched.body, urlsplit(fetched.url).fragment) == (FEED, "")


def test_a_redirect_may_have_letters_of_all_languages_and_spaces(server):
    server.on("/feed.xml", redirecting("/zeitung/größe.xml"))
    server.on("/zeitung/gr%C3%B6%C3%9Fe.xml", redirecting("/mit leerzeichen.xml"))
    server.on("/mit%20leerzeichen.xml", serving(FEED))

    assert fetch(server.url("/feed.xml")).body == FEED


def test_f12_five_redirects_are_followed_and_a_sixth_is_not(server):
    for number in range(6):
        server.on(f"/{number}", redirecting(f"/{number + 1}"))
    server.on("/6", serving(FEED))

    assert fetch(server.url("/1")).body == FEED
    assert failure_of(server.url("/0")).code == "too_many_redirects"
    assert server.paths().count("/6") == 1


def test_f12_a_circle_of_redirects_is_left_at_once(server):
    server.on("/1", redirecting("/2", 301))
    server.on("/2", redirecting("/3", 301))
    server.on("/3", redirecting("/2#again", 301))

    failure = failure_of(server.url("/1"))

    assert (failure.code, server.paths()) == ("too_many_redirects", ["/1", "/2", "/3"])
    assert "circle" in str(failure)


@pytest.mark.parametrize("headers", [{}, {"Location": ""}])
def test_a_redirect_to_nowhere_is_none(server, headers):
    assert failure_of(server.on("/feed.xml", answering(status=302, **headers))).code in (
        "http_status",
        "too_many_redirects",
    )


# Other answers


@pytest.mark.parametrize(
    ("status", "phrase"),
    [
        (201, "Created"),
        (204, "No Content"),
        (206, "Partial Content"),
        (300, "Multiple Choices"),
        (400, "Bad Request"),
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "Not Found"),
        (418, "I'm a Teapot"),
        (500, "Internal Server Error"),
        (502, "Bad Gateway"),
        (599, ""),
    ],
)
def test_any_other_status_is_a_failure_that_may_pass(server, status, phrase):
    failure = failure_of(server.on("/feed.xml", answering(FEED if status >= 200 else b"", status)))

    assert (failure.code, failure.permanent, failure.retry_after) == ("http_status", False, None)
    answered = f"{status} {phrase}".strip()
    assert str(failure) == f"The server at {server.url('')} answered {answered} instead of 200 OK."


def test_a_feed_that_is_gone_does_not_come_back(server):
    failure = failure_of(server.on("/feed.xml", failing(410)))

    assert (failure.code, failure.permanent) == ("http_status", True)
    assert "410 Gone" in str(failure)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("120", 120),
        ("0", 0),
        ("99999999", 24 * 3600),
        ("-5", None),
        ("soon", None),
        ("1e9", None),
        ("", None),
        ("٣", None),
        ("Wed, 01 Jan 2020 00:00:00 GMT", 0),
        ("Wed, 01 Jan 2200 00:00:00 GMT", 24 * 3600),
        ("Wed, 99 Jan 2020 00:00:00 GMT", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
    ],
)
def test_a_busy_server_may_say_for_how_long(server, status, said, seconds):
    retry_after = said.encode().decode("latin-1")

    failure = failure_of(server.on("/feed.xml", failing(status, Retry_After=retry_after)))

    assert (failure.code, failure.permanent, failure.retry_after) == ("http_status", False, seconds)


def test_a_busy_server_may_say_until_when(server):
    until = datetime.now(UTC) + timedelta(hours=1)

    failure = failure_of(server.on("/feed.xml", failing(503, Retry_After=format_datetime(until, usegmt=True))))

    assert 3500 < failure.retry_after <= 3600


def test_a_server_that_is_not_busy_need_not_say_for_how_long(server):
    assert failure_of(server.on("/feed.xml", failing(404, Retry_After="120"))).retry_after is None


def test_what_a_message_says_is_no_secret_and_short(server):
    server.on("/feed.xml", saying(b"HTTP/1.1 200 \x1b[31m\x07" + b"A" * 90_000 + b"\r\n\x00bad: 1\r\n\r\n"))

    failure = failure_of(server.url("/feed.xml?token=geheim"))

    assert failure.code == "bad_answer"
    assert len(str(failure)) <= LONGEST_MESSAGE
    assert str(failure).isprintable()
    assert "geheim" not in str(failure)


@pytest.mark.parametrize(
    "url",
    [
        "http://ravi:geheim@127.0.0.1/",
        "ravi:geheim@127.0.0.1/",
        "geheim:ravi@127.0.0.1/",
        "http://[::1]:geheim/",
        "http://geheim\\/",
        "http://geheim.%2f/",
    ],
)
def test_a_refused_address_is_not_repeated(url):
    assert "geheim" not in str(failure_of(url))


def test_status_lines_of_http_1_0_do(server):
    server.on("/feed.xml", saying(head().replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n" + FEED))

    assert fetch(server.url("/feed.xml")).body == FEED
