import io
import json

import pytest

from ade_client import Client, File, Problem, Transport, Unreachable
from ade_client.transport import (
    BETWEEN_STREAMS_SECONDS,
    LONGEST_PAUSE_SECONDS,
    MOST_REDIRECTS,
    Call,
    _redirect_target,
    events_of,
)
from tests.client.server import Server, hangs_up, says, streams

pytestmark = pytest.mark.once

GET, POST = Call("GET", "/x", {}), Call("POST", "/x", {}, body={})
CREATE = Call("POST", "/x", {}, body={"a": 1}, creates=True)
BUSY = json.dumps({"code": "run_queue_full", "message": "no place", "details": {"limit": 3}}).encode()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.end()


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def transport(server, pauses):
    return Transport(server.address, "ade_x_secret", sleep=pauses.append, attempts=4, timeout_seconds=5)


def test_a_token_is_sent_and_an_answer_read(server, transport):
    server.script = [says(200, b'{"a": 1}')]

    assert transport.json(Call("GET", "/x", {"limit": 5, "status": None, "is": True})) == {"a": 1}

    ((method, path, headers, _),) = server.asked
    assert (method, path) == ("GET", "/x?limit=5&is=true")
    assert headers["Authorization"] == "Bearer ade_x_secret"


@pytest.mark.parametrize("call", [GET, CREATE], ids=["read", "create"])
@pytest.mark.parametrize("first", [says(503, BUSY), says(429, BUSY), says(502, b"<html>"), hangs_up])
def test_what_does_no_harm_is_asked_again(server, transport, call, first):
    server.script = [first, first, says(201, b'{"id": 5}')]

    assert transport.json(call) == {"id": 5}

    keys = {headers.get("Idempotency-Key") for _, _, headers, _ in server.asked}
    assert len(keys) == 1
    assert (None in keys) == (call is GET)
    assert {body for *_, body in server.asked} == {b"" if call is GET else b'{"a": 1}'}


def test_each_creation_has_a_key_of_its_own(server, transport):
    server.script = [says(201), says(201), says(201)]
    for call in (CREATE, CREATE, Call("POST", "/x", {}, creates=True, headers={"Idempotency-Key": "mine"})):
        transport.json(call)

    keys = [headers["Idempotency-Key"] for _, _, headers, _ in server.asked]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


@pytest.mark.parametrize(("first", "expected"), [(says(503, BUSY), Problem), (hangs_up, Unreachable)])
def test_what_might_be_done_twice_is_asked_once(server, transport, first, expected):
    server.script = [first]

    with pytest.raises(expected):
        transport.json(POST)

    assert len(server.asked) == 1


def test_it_waits_for_as_long_as_the_server_says(server, transport, pauses):
    server.script = [says(429, BUSY, Retry_After=7), says(503, BUSY, Retry_After=86400), says(200)]

    transport.json(GET)

    assert 7 <= pauses[0] < 8
    assert LONGEST_PAUSE_SECONDS <= pauses[1] < LONGEST_PAUSE_SECONDS + 1


def test_it_waits_longer_each_time_and_gives_up(server, transport, pauses):
    server.script = [says(429, BUSY, X_Request_ID="abc12345")] * 4

    with pytest.raises(Problem) as raised:
        transport.json(GET)

    assert (raised.value.status, raised.value.code, raised.value.message) == (429, "run_queue_full", "no place")
    assert (raised.value.details, raised.value.request_id) == ({"limit": 3}, "abc12345")
    assert len(pauses) == 3
    assert 0.25 <= pauses[0] <= 0.5 <= pauses[1] <= 1 <= pauses[2] <= 2


def test_a_refusal_is_not_asked_again(server, transport, pauses):
    server.script = [says(404, b"<html>not here</html>")]

    with pytest.raises(Problem) as raised:
        transport.json(GET)

    assert (raised.value.status, raised.value.code) == (404, "")
    assert pauses == []


def test_pages_are_read_to_the_end(server, transport):
    server.script = [says(200, b'{"items": [1, 2], "next": "abc"}'), says(200, b'{"items": [3], "next": null}')]

    assert list(transport.pages(Call("GET", "/x", {"limit": 2}))) == [1, 2, 3]

    assert [path for _, path, _, _ in server.asked] == ["/x?limit=2", "/x?limit=2&cursor=abc"]


def test_a_stream_goes_on_where_it_broke_off(server, transport):
    server.script = [
        streams(': hello\n\nid: 1\nevent: RUN_STARTED\ndata: {"a": 1}\n\nid: 2\ndata: plain\ndata: text\n\nid: 3\nda'),
        hangs_up,
        streams('id: 3\ndata: {"a": 3}\n\n'),
        streams('event: end\ndata: {"reason": "finished"}\n\n'),
    ]

    events = list(transport.follow(GET))

    assert [(event.id, event.kind, event.data) for event in events] == [
        ("1", "RUN_STARTED", {"a": 1}),
        ("2", "message", "plain\ntext"),
        ("3", "message", {"a": 3}),
        ("", "end", {"reason": "finished"}),
    ]
    assert [headers.get("Last-Event-ID") for _, _, headers, _ in server.asked] == [None, "2", "2", "3"]


@pytest.mark.parametrize("reason", ["finished", "gone", "forbidden"])
def test_a_stream_that_has_ended_is_not_asked_for_again(server, transport, pauses, reason):
    server.script = [streams(f'event: end\ndata: {{"reason": "{reason}"}}\n\n')]

    assert [(event.kind, event.data) for event in transport.follow(GET)] == [("end", {"reason": reason})]

    assert (len(server.asked), pauses) == (1, [])


def test_a_stream_that_has_told_only_where_it_begins_goes_on_from_there(server, transport):
    server.script = [
        streams("retry: 1000\n\nid: 1042:1037\n\n: still there\n\n"),
        streams('event: again\ndata: {"reason": "time"}\n\nid: 1043\n\n'),
        streams('event: end\ndata: {"reason": "forbidden"}\n\n'),
    ]

    assert [event.kind for event in transport.follow(GET)] == ["again", "end"]

    assert [headers.get("Last-Event-ID") for _, _, headers, _ in server.asked] == [None, "1042:1037", "1043"]


def test_a_stream_that_is_cut_goes_on_when_the_server_wants_it_to(server, transport, pauses):
    server.script = [
        streams('event: again\ndata: {"reason": "time"}\n\n'),
        streams('retry: 2500\n\nevent: again\ndata: {"reason": "time"}\n\n'),
        streams("retry: 99999999\n\n"),
        streams('retry: soon\n\nevent: end\ndata: {"reason": "finished"}\n\n'),
    ]

    assert [event.kind for event in transport.follow(GET)] == ["again", "again", "end"]

    assert pauses == [BETWEEN_STREAMS_SECONDS, 2.5, LONGEST_PAUSE_SECONDS]


def test_lines_that_end_in_other_ways_are_lines():
    lines = [b"data: 1\r\n", b"\r\n", b"data:2\n", b"\n", b"retry: 5\n", b"\n"]

    assert [(event.kind, event.data) for event in events_of(lines)] == [
        *(("message", 1), ("message", 2)),
        *(("retry", 5), ("", None)),
    ]


def test_a_file_is_sent_piece_by_piece(server, transport, tmp_path):
    (path := tmp_path / 'a "b".txt').write_bytes(b"x" * 200_000)
    server.script = [says(503, BUSY), says(200)]
    told = []

    files = {"file": File(path, content_type="text/plain")}
    transport.json(
        Call(
            "POST",
            "/x",
            {},
            {"again": True},
            files,
            creates=True,
            progress=lambda sent, size: told.append((sent, size)),
        )
    )

    _, _, headers, body = server.asked[1]
    assert int(headers["Content-Length"]) == len(body)
    assert b'name="again"\r\n\r\ntrue\r\n' in body
    assert b'filename="a %22b%22.txt"\r\nContent-Type: text/plain\r\n\r\n' + b"x" * 200_000 + b"\r\n--" in body
    assert told[-1] == (len(body), len(body))
    assert len(told) > 8


def test_a_download_that_breaks_off_is_told(server, transport):
    server.script = [says(200, b"short", Content_Length=50, Connection="close")]

    with pytest.raises(Unreachable, match="50 bytes"):
        transport.download(GET, io.BytesIO())


@pytest.fixture
def elsewhere():
    server = Server()
    yield server
    server.end()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_download_is_fetched_from_where_it_lies_without_the_token(server, elsewhere, transport, status):
    server.script = [says(status, b"", Location=f"{elsewhere.address}/in a/b%20c?sig=a%2Fb%3D&sp=r#part")]
    elsewhere.script = [says(200, b"the bytes")]

    count = transport.download(Call("GET", "/x", {}, headers={"Range": "bytes=0-8"}), copy := io.BytesIO())

    assert (count, copy.getvalue()) == (9, b"the bytes")
    ((method, path, headers, body),) = elsewhere.asked
    assert (method, path, body) == ("GET", "/in%20a/b%20c?sig=a%2Fb%3D&sp=r", b"")
    assert "Authorization" not in headers
    assert "ade_x_secret" not in str(headers)
    assert headers["Range"] == "bytes=0-8"


def test_where_a_download_lies_may_be_told_from_where_it_was_asked_for(server):
    server.script = [says(302, b"", Location="../files/1"), says(302, b"", Location="?part=2"), says(200, b"abc")]

    assert Transport(f"{server.address}/ade", "ade_x_secret").download(Call("GET", "/v1/x", {}), io.BytesIO()) == 3

    assert [path for _, path, _, _ in server.asked] == ["/ade/v1/x", "/ade/files/1", "/ade/files/1?part=2"]
    assert ["Authorization" in headers for _, _, headers, _ in server.asked] == [True, False, False]


def test_a_download_that_breaks_off_where_it_lies_is_told(server, elsewhere, transport):
    server.script = [says(302, b"", Location=elsewhere.address)]
    elsewhere.script = [says(200, b"short", Content_Length=50, Connection="close")]

    with pytest.raises(Unreachable, match="50 bytes"):
        transport.download(GET, io.BytesIO())


@pytest.mark.parametrize("first", [says(503, b"<Error/>"), hangs_up])
def test_whoever_is_busy_where_a_download_lies_is_asked_again_by_a_new_address(
    server, elsewhere, transport, pauses, first
):
    server.script = [says(302, b"", Location=f"{elsewhere.address}/{n}") for n in (1, 2)]
    elsewhere.script = [first, says(200, b"abc")]

    assert transport.download(GET, io.BytesIO()) == 3

    assert [path for _, path, _, _ in elsewhere.asked] == ["/1", "/2"]
    assert len(pauses) == 1


@pytest.mark.parametrize("status", [204, 304, 403, 404])
def test_what_is_no_file_where_a_download_lies_is_told(server, elsewhere, transport, status):
    server.script = [says(302, b"", Location=f"{elsewhere.address}/a?sig=secret")]
    elsewhere.script = [says(status, b"")]

    with pytest.raises(Problem, match=f"not from ADE: {status} .* from 127.0.0.1") as raised:
        transport.download(GET, copy := io.BytesIO())

    assert (raised.value.status, raised.value.code, copy.getvalue()) == (status, "", b"")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "location",
    ["", "ftp://127.0.0.1/x", "file:///etc/passwd", "https://", "//[", "http://127.0.0.1:x/", "http://127.0.0.1:0/"],
)
def test_a_download_is_led_to_nothing_but_the_web(server, transport, location):
    server.script = [says(302, b"", Location=location)]

    with pytest.raises(
        Unreachable, match=r"The redirect to .* is refused: only addresses with http or https are followed"
    ):
        transport.download(GET, io.BytesIO())


def test_a_download_is_led_from_https_to_https():
    with pytest.raises(
        Unreachable, match=r"The redirect to 'http://x/y' is refused: only addresses with https are followed"
    ):
        _redirect_target("https://ade.example.com/x", "http://x/y?sig=secret")


def test_a_download_that_is_led_in_a_circle_ends(server, transport):
    server.script = [says(302, b"", Location="/x")] * 20

    with pytest.raises(Problem, match=r"302 Found from 127.0.0.1, which redirects to '/x'"):
        transport.download(GET, io.BytesIO())

    assert len(server.asked) == 1 + MOST_REDIRECTS


@pytest.mark.parametrize("call", [GET, POST, CREATE], ids=["read", "act", "create"])
@pytest.mark.parametrize("status", [301, 302, 304, 307])
def test_what_leads_elsewhere_is_no_answer_to_what_is_not_a_download(server, elsewhere, transport, call, status):
    server.script = [says(status, b"{}" if status != 304 else b"", Location=f"{elsewhere.address}/y?sig=secret")]

    with pytest.raises(Problem, match=f"not from ADE: {status}") as raised:
        transport.json(call)

    assert raised.value.status == status
    assert "secret" not in str(raised.value)
    assert elsewhere.asked == []


def test_a_stream_does_not_go_on_elsewhere(server, elsewhere, transport):
    server.script = [says(302, b"", Location=elsewhere.address)]

    with pytest.raises(Problem, match="302"):
        next(transport.follow(GET))

    assert elsewhere.asked == []


def test_ids_are_quoted_in_paths(server):
    server.script = [says(200)]

    Client(server.address + "/", "x").show_run("../1?x")

    assert server.asked[0][1] == "/api/v1/runs/..%2F1%3Fx"


@pytest.mark.parametrize("address", ["ftp://x", "x", "http://"])
def test_an_address_is_one_of_the_web(address):
    with pytest.raises(ValueError, match="is not an address of a server"):
        Client(address, "x")


def test_nobody_there_is_told(pauses):
    transport = Transport("http://127.0.0.1:9", "x", sleep=pauses.append, attempts=3)

    with pytest.raises(Unreachable, match="GET /x"):
        transport.json(GET)

    assert len(pauses) == 2
