"""Clients that connect and never send, send for ever, or read no answer: over real sockets to a real gunicorn."""

import contextlib
import http.client
import inspect
import resource
import socket
import time
from urllib.parse import urlsplit

import psutil
import pytest
from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.workers import gasgi

from config import connections
from config.connections import connections_possible
from config.logs import RateLimitedLog
from tests.api.serving import served
from tests.stepping import DEADLINE_SECONDS, until

pytestmark = pytest.mark.once

PAGE = "/api/v1/openapi.json"
CHUNK = b"x" * 32_768


@pytest.fixture
def site(programs):
    def start(**environment):
        address = served(programs, "tests.api.hurried", **environment)
        return Site(urlsplit(address).port, programs.started[-1])

    return start


class Site:
    def __init__(self, port, program):
        self.port, self.program = port, program

    def connect(self, source="127.0.0.1"):
        return socket.create_connection(("127.0.0.1", self.port), DEADLINE_SECONDS, (source, 0))

    def status(self, source="127.0.0.1"):
        caller = http.client.HTTPConnection("127.0.0.1", self.port, DEADLINE_SECONDS, (source, 0))
        with contextlib.closing(caller):
            caller.request("GET", PAGE)
            return caller.getresponse().status

    def open_connections(self):
        [process] = psutil.Process(self.program.pid).children()
        return sum(each.status == psutil.CONN_ESTABLISHED for each in process.net_connections("tcp"))


@contextlib.contextmanager
def many(site, number, first=b"", addresses=1):
    """Open half-open connections: each has sent the beginning of a request and sends nothing more."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, number + 500)), hard))
    with contextlib.ExitStack() as open_until_the_end:
        for index in range(number):
            each = open_until_the_end.enter_context(site.connect(f"127.0.0.{index % addresses + 1}"))
            # A connection that the server has already closed fails here.
            with contextlib.suppress(OSError):
                each.sendall(first)
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def is_closed(connection):
    """Return whether the other end has closed the connection; it may have sent something first."""
    connection.settimeout(0.01)
    try:
        return connection.recv(1 << 16) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


HALF = b"GET / HTTP/1.1\r\nHost: local"


@pytest.mark.parametrize(
    ("number", "first", "addresses", "limits"),
    [
        pytest.param(600, HALF, 20, {"ADE_CONNECTIONS": 200}, marks=pytest.mark.long(seconds=5)),
        pytest.param(10_000, b"", 1, {}, marks=pytest.mark.soak),
        pytest.param(10_000, HALF, 100, {}, marks=pytest.mark.soak),
    ],
)
def test_half_open_connections_cost_nobody_an_answer(site, number, first, addresses, limits):
    site = site(**limits)

    with many(site, number, first, addresses):
        statuses = [site.status(source) for source in ("127.0.0.1", "127.0.0.2", "127.0.1.1") for _ in range(3)]
        still_open = site.open_connections()

    assert statuses == [200] * 9
    assert still_open <= limits.get("ADE_CONNECTIONS", 2000)
    assert len(site.program.logged().splitlines()) < 30


@pytest.mark.long(seconds=3)
def test_of_one_client_only_so_many_are_open(site):
    site = site(ADE_CONNECTIONS_PER_CLIENT=5)

    with many(site, 3):
        with many(site, 20, addresses=1):
            until(lambda: "web.waiting_connections_closed" in site.program.logged())
        assert site.status("127.0.0.2") == 200


@pytest.mark.long(seconds=3)
def test_headers_that_dribble_have_an_end(site):
    site = site(TEST_HEADER_SECONDS=1)

    with site.connect() as silent, site.connect() as dribbles:
        dribbles.sendall(b"GET / HTTP/1.1\r\nX-Long: ")
        until(lambda: sends(dribbles) or is_closed(dribbles), every=0.1)
        until(lambda: is_closed(silent))

    assert site.program.logged().count("web.slow_clients_closed") == 1


def sends(connection, data=b"x"):
    """Whether it can no longer."""
    try:
        connection.sendall(data)
    except OSError:
        return True
    return False


@pytest.mark.long(seconds=3)
def test_a_body_that_dribbles_is_answered_and_ends(site):
    site = site(TEST_BODY_SECONDS=1)

    with site.connect() as dribbles:
        dribbles.sendall(b"POST /documents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
        received = b""
        dribbles.settimeout(0.1)
        until_at = time.monotonic() + DEADLINE_SECONDS
        while b"HTTP/1.1" not in received:
            assert time.monotonic() < until_at
            with contextlib.suppress(TimeoutError):
                dribbles.sendall(b"x")
                received += dribbles.recv(1 << 16)

    assert received.startswith(b"HTTP/1.1 408 ")


@pytest.mark.long(seconds=5)
def test_a_body_that_comes_slowly_but_comes_is_taken(site):
    """Each 4 KiB extend the time limit by four seconds."""
    site = site(TEST_BODY_SECONDS=2)

    caller = http.client.HTTPConnection("127.0.0.1", site.port, timeout=DEADLINE_SECONDS)
    with contextlib.closing(caller):

        def parts():
            for _ in range(6):
                time.sleep(0.5)
                yield b"x" * 4096

        caller.request("POST", "/documents", parts(), {"Content-Length": str(6 * 4096), "Content-Type": "text/plain"})
        status = caller.getresponse().status

    assert status == 401


@pytest.mark.long(seconds=5)
def test_bodies_that_come_just_fast_enough_give_way_to_a_request(site):
    site = site(ADE_CONNECTIONS=3, TEST_BODY_SECONDS=1)

    with contextlib.ExitStack() as open_until_the_end:
        slow = [open_until_the_end.enter_context(site.connect()) for _ in range(3)]
        for each in slow:
            head = b"POST /documents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n"
            # Each chunk extends the time limit by half a minute.
            each.sendall(head + CHUNK)

        # Wait until their headers have been read: before that they give way like silent connections.
        time.sleep(1)
        until(lambda: [sends(each, CHUNK) for each in slow] and is_answered(site), every=0.1)

    assert site.program.logged().count("web.waiting_connections_closed") == 1
    assert "web.slow_clients_closed" not in site.program.logged()


def is_answered(site):
    try:
        return site.status() == 200
    except OSError:
        return False


@pytest.mark.long(seconds=5)
def test_a_client_that_takes_no_answer_is_let_go(site):
    site = site(TEST_WRITE_SECONDS=1)

    requests = f"GET {PAGE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 5000
    sent = 0
    with site.connect() as greedy:
        greedy.settimeout(0.1)

        def goes_on():
            nonlocal sent
            with contextlib.suppress(OSError):
                sent += greedy.send(requests[sent : sent + 1000])
            return "web.stalled_clients_closed" in site.program.logged()

        until(goes_on)

    assert site.status() == 200


@pytest.mark.long(seconds=3)
def test_one_that_waits_for_a_next_request_gives_way(site):
    """An idle keep-alive connection is closed in favour of a new request."""
    site = site(ADE_CONNECTIONS=1)

    with contextlib.ExitStack() as kept:
        for _ in range(3):
            until(lambda: asks_and_stays(site, kept), every=0.05)


def asks_and_stays(site, kept):
    caller = kept.enter_context(
        contextlib.closing(http.client.HTTPConnection("127.0.0.1", site.port, timeout=DEADLINE_SECONDS))
    )
    try:
        caller.request("GET", PAGE)
        return (answer := caller.getresponse()).status == 200 and answer.read()
    except OSError:
        # The previous connection was not idle yet, so there was none to close.
        return False


def test_what_happens_often_is_written_down_seldom(caplog):
    times = iter((0.0, 1.0, 59.0, 60.0, 61.0, 130.0))
    seldom = RateLimitedLog(clock=lambda: next(times))

    for _ in range(6):
        seldom.say("web.something", client="192.0.2.7")

    told = [record.msg for record in caplog.records]
    assert [each["count"] for each in told] == [1, 3, 2]


def test_gunicorn_still_has_what_connections_change_of_it():
    """Its inner names, which another version may change: then config/connections.py has to be read again with it."""
    methods = ["_on_headers_complete", "_on_body", "_on_message_complete", "_arm_keepalive_timer", "_close_transport"]
    methods += ["_send_error_response", "pause_writing", "resume_writing", "connection_made", "connection_lost"]
    values = ["_closed", "_conn_lost_handled", "_request_ready", "_current_request", "_body_receiver", "transport"]
    protocol = inspect.getsource(ASGIProtocol)

    assert [name for name in methods if name not in vars(ASGIProtocol)] == []
    assert [name for name in values if f"self.{name} = " not in protocol] == []
    # Each method is called, and not only defined: a parser that calls others would pass ours by.
    called = protocol + inspect.getsource(inspect.getmodule(ASGIProtocol))
    assert [name for name in methods[:6] if f"self.{name}" not in called] == []
    assert gasgi.ASGIProtocol is connections.Connection
    assert "ASGIProtocol(self)" in inspect.getsource(gasgi)
    assert "_setup_event_loop" in vars(gasgi.ASGIWorker)


@pytest.mark.parametrize(
    ("hard", "wanted", "possible", "soft_then"),
    [
        (resource.RLIM_INFINITY, 2000, 2000, 8128),
        (1_000_000, 2000, 2000, 8128),
        (1024, 2000, 224, 1024),
        (100, 2000, 1, 100),
    ],
)
def test_there_are_no_more_connections_than_files_may_be_open(monkeypatch, hard, wanted, possible, soft_then):
    limits = [(min(hard, 64) if hard > 0 else 64, hard)]
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(connections.resource, "setrlimit", lambda _, given: limits.append(given))

    assert connections_possible(wanted) == possible
    assert limits[-1][0] == soft_then
