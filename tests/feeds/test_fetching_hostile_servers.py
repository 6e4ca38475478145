"""F12: a slow, endless or broken server costs no more than its time and byte limits."""

import gzip
import time
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from feeds.fetching import BESIDES_BYTES, MOST_BYTES, FetchFailed, bodies, fetch
from tests.feeds.servers import (
    Server,
    answering,
    bomb,
    cut_off,
    endless,
    endless_bomb,
    endless_headers,
    endless_hints,
    half_closed,
    head,
    nested_bomb,
    redirecting,
    resetting,
    saying,
    serving,
    silent,
    slow_headers,
    trickling,
)

pytestmark = pytest.mark.once

FEED = b"<rss version='2.0'><channel><title>News</title></channel></rss>"
# Allows for threads that wait for a processor on a busy machine.
GRACE_SECONDS = 30.0


@pytest.fixture(autouse=True)
def reachable(settings):
    settings.ADE_FEED_NETWORKS = ["127.0.0.0/8"]


def failure_of(url, **options):
    with pytest.raises(FetchFailed) as failed:
        fetch(url, **{"seconds": 60, **options})
    return failed.value


# Slow


@pytest.mark.parametrize(
    "behaviour",
    [silent, slow_headers(), trickling(FEED * 100)],
    ids=["silent", "slow headers", "trickling"],
)
def test_f12_a_slow_server_has_no_more_than_its_time(server, behaviour):
    url = server.on("/feed.xml", behaviour)

    began = time.monotonic()
    failure = failure_of(url, seconds=0.3)

    assert failure.code == "too_slow"
    assert not failure.permanent
    assert 0.3 <= time.monotonic() - began < 0.3 + GRACE_SECONDS


def test_f12_redirects_share_the_time(server):
    def slowly(call):
        call.wait(0.2)
        redirecting(f"/{int(call.asked.path[1:]) + 1}")(call)

    for number in range(5):
        server.on(f"/{number}", slowly)

    assert failure_of(server.url("/0"), seconds=0.5).code == "too_slow"
    assert "/3" not in server.paths()


def test_f12_a_server_is_left_when_its_time_is_over(server):
    url = server.on("/feed.xml", trickling(FEED * 100))

    failure_of(url, seconds=0.3)

    while server.is_busy():
        time.sleep(0.01)
    assert server.seconds_of("/feed.xml") < 0.3 + GRACE_SECONDS


# Large


@pytest.mark.parametrize(
    "behaviour",
    [endless, endless_hints, bomb(100), bomb(100, "deflate"), endless_bomb, answering(bytes(MOST_BYTES + 1))],
    ids=["endless", "hints without end", "gzip bomb", "deflate bomb", "bomb without end", "one byte too many"],
)
def test_f12_a_feed_that_is_too_large_is_not_read_to_its_end(server, behaviour):
    url = server.on("/feed.xml", behaviour)

    tracemalloc.start()
    try:
        # tracemalloc is slow, and the machine may be too.
        failure = failure_of(url, seconds=300)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (failure.code, failure.permanent) == ("too_large", False)
    assert most < 3 * MOST_BYTES


def test_f12_what_says_that_it_is_too_large_is_not_read_at_all(server):

    def large(call):
        call.send(head(Content_Length=MOST_BYTES + 1) + b"\r\n")
        call.wait()

    assert failure_of(server.on("/feed.xml", large)).code == "too_large"


def test_f12_redirects_share_what_may_come_before_a_feed(server):
    """Interim answers take time to read, which other feeds then lack."""
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </again>\r\n\r\n"

    def talkative(call):
        call.send(hint * (BESIDES_BYTES // 4 // len(hint)))
        redirecting(f"/{int(call.asked.path[1:]) + 1}")(call)

    for number in range(4):
        server.on(f"/{number}", talkative)
    server.on("/4", serving(FEED))

    assert fetch(server.url("/1")).body == FEED
    assert failure_of(server.url("/0"), most_bytes=1_000_000).code == "too_large"


@pytest.mark.parametrize("coding", ["", "gzip", "deflate"])
def test_a_feed_may_be_as_large_as_allowed_and_no_larger(server, coding):
    url = server.on("/feed.xml", serving(bytes(range(256)) * 1000, coding=coding))

    assert len(fetch(url, most_bytes=256_000).body) == 256_000
    assert failure_of(url, most_bytes=255_999).code == "too_large"


def test_f12_what_is_packed_to_nothing_ends_as_well(server):
    """Deflate allows any number of empty blocks, which unpack to nothing."""

    def nothing(call):
        call.send(head(Content_Encoding="deflate") + b"\r\n" + zlib.compress(b"")[:2])
        while True:
            call.send(b"\x00\x00\x00\xff\xff" * 10_000)

    began = time.monotonic()
    failure = failure_of(server.on("/feed.xml", nothing), most_bytes=10_000)

    assert failure.code == "too_large"
    assert str(10_000 + BESIDES_BYTES) in str(failure)
    assert time.monotonic() - began < 50


@pytest.mark.parametrize(
    "behaviour",
    [
        endless_headers,
        saying(b"HTTP/1.1 200 " + b"a" * 1_000_000),
        saying(head(X="a" * 1_000_000) + b"\r\n" + FEED),
        saying(head(**{f"X{number}": number for number in range(50_000)}) + b"\r\n" + FEED),
        saying(head(Transfer_Encoding="chunked") + b"\r\n" + b"1" * 1_000_000),
        saying(head(Transfer_Encoding="chunked") + b"\r\n1;" + b"a" * 1_000_000),
        saying(head(Transfer_Encoding="chunked") + b"\r\n0\r\n" + b"X: again\r\n" * 100_000),
    ],
    ids=["without end", "a long status", "a long one", "many", "a long chunk size", "a long extension", "trailers"],
)
def test_f12_headers_have_an_end(server, behaviour):
    assert failure_of(server.on("/feed.xml", behaviour)).code == "bad_answer"


# Broken


@pytest.mark.parametrize("body", [b"", FEED])
def test_a_feed_that_is_cut_off_is_none(server, body):
    failure = failure_of(server.on("/feed.xml", cut_off(body)))

    assert failure.code == "bad_answer"
    assert "without sending complete message body" in str(failure)


def test_what_is_sent_beyond_its_length_is_not_part_of_it(server):
    url = server.on("/feed.xml", saying(head(Content_Length=len(FEED)) + b"\r\n" + FEED + b"HTTP/1.1 200 More\r\n\r\n"))

    assert fetch(url).body == FEED


def test_a_connection_may_be_reset(server):
    failure = failure_of(server.on("/feed.xml", resetting(FEED)))

    assert (failure.code, failure.permanent) == ("unreachable", False)
    assert "reset" in str(failure)


def test_silence_may_be_the_end_of_a_feed(server):
    assert fetch(server.on("/feed.xml", half_closed(FEED))).body == FEED


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\r\n",
        FEED,
        FEED + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 99999 OK\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n" + FEED,
        b"ICY 200 OK\r\n\r\n",
        b"220 smtp.example.org\r\n",
        b"\x00" * 1000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n: nameless\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 25 + b"\r\n\r\nab",
    ],
)
def test_what_is_no_http_is_no_feed(server, answer):
    failure = failure_of(server.on("/feed.xml", saying(answer)))

    assert (failure.code, failure.permanent) == ("bad_answer", False)


@pytest.mark.parametrize("coding", ["", "gzip", "deflate"])
def test_an_empty_answer_is_no_feed(server, coding):
    assert failure_of(server.on("/feed.xml", serving(b"", coding=coding))).code == "bad_answer"


def test_a_feed_said_to_be_packed_may_be_nothing_at_all(server):
    assert failure_of(server.on("/feed.xml", answering(b"", Content_Encoding="gzip"))).code == "bad_answer"


# Compressed


@pytest.mark.parametrize(
    "coding", ["gzip, gzip", "deflate, gzip", "gzip, br", "br", "zstd", "compress", "utf-8", "gzip;q=1"]
)
def test_f12_what_is_packed_twice_or_in_another_way_is_not_unpacked(server, coding):
    failure = failure_of(server.on("/feed.xml", answering(FEED, Content_Encoding=coding)))

    assert failure.code == "bad_answer"
    assert coding in str(failure)


def test_f12_a_bomb_in_a_bomb_is_not_unpacked(server):
    assert failure_of(server.on("/feed.xml", nested_bomb(100))).code == "bad_answer"
    assert (
        failure_of(server.on("/2", saying(head() + b"Content-Encoding: gzip\r\n" * 6 + b"\r\n"))).code == "bad_answer"
    )


@pytest.mark.parametrize("coding", ["identity", "X-GZIP", "identity, gzip", " gzip ,", "GZip"])
def test_codings_have_several_spellings(server, coding):
    packed = gzip.compress(FEED) if "gzip" in coding.lower() else FEED

    assert fetch(server.on("/feed.xml", answering(packed, Content_Encoding=coding))).body == FEED


def test_deflate_may_come_without_its_header(server):
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = packer.compress(FEED) + packer.flush()

    assert fetch(server.on("/feed.xml", answering(packed, Content_Encoding="deflate"))).body == FEED


def test_what_is_packed_may_come_byte_by_byte():
    pieces = [bytes([byte]) for byte in zlib.compress(FEED)]

    assert bodies.read(pieces, ["deflate"], 1000) == FEED


@pytest.mark.parametrize(
    "size", [bodies.PIECE_BYTES - 1, bodies.PIECE_BYTES, bodies.PIECE_BYTES + 1, 3 * bodies.PIECE_BYTES]
)
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_nothing_of_what_is_packed_is_left_in_the_packer(size, coding):
    pack = gzip.compress if coding == "gzip" else zlib.compress

    assert bodies.read([pack(bytes(size))], [coding], 1_000_000) == bytes(size)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("missing", [1, 5, 30])
def test_what_is_packed_and_cut_off_is_none(server, coding, missing):
    pack = gzip.compress if coding == "gzip" else zlib.compress
    url = server.on("/feed.xml", answering(pack(FEED)[:-missing], Content_Encoding=coding))

    failure = failure_of(url)

    assert failure.code == "bad_answer"
    assert "cut off" in str(failure)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("body", [FEED, b"<", gzip.compress(FEED, mtime=0)[:10] + b"\xff" * 50])
def test_what_is_not_packed_as_it_says_is_none(server, coding, body):
    assert failure_of(server.on("/feed.xml", answering(body, Content_Encoding=coding))).code == "bad_answer"


def test_what_follows_the_packed_feed_is_not_read(server):
    url = server.on("/feed.xml", answering(gzip.compress(FEED) + b"\x00" * 100, Content_Encoding="gzip"))

    assert fetch(url).body == FEED


# All at once


def test_f12_hostile_servers_do_no_harm_to_others():
    hostile = [silent, slow_headers(), trickling(FEED), endless, endless_headers, endless_hints, bomb(50), endless_bomb]
    with Server() as server, ThreadPoolExecutor(24) as threads:
        bad = [server.on(f"/bad/{number}", behaviour) for number, behaviour in enumerate(hostile)]
        good = [server.on(f"/good/{number}", serving(b"%d" % number * 1000)) for number in range(40)]

        failing = [threads.submit(failure_of, url, seconds=1) for url in bad]
        fetched = [threads.submit(fetch, url, seconds=30) for url in good]

        assert [each.result().body for each in fetched] == [b"%d" % number * 1000 for number in range(40)]
        assert all(each.result().code in ("too_slow", "too_large", "bad_answer") for each in failing)
