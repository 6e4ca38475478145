"""How names are resolved, which address a connection goes to, how hosts are authenticated, and the time limit of each
step.
"""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from threading import Event

import pytest

from feeds.fetching import FetchFailed, fetch
from feeds.fetching.names import resolve_by_system
from feeds.fetching.network import Outside, trust_of_the_system
from tests.feeds.authority import Authority
from tests.feeds.servers import Server, redirecting, saying, serving
from tests.feeds.sockets import watched

pytestmark = pytest.mark.once

FEED = b"<rss version='2.0'><channel><title>News</title></channel></rss>"
# Allows for threads that wait for a processor on a busy machine.
GRACE_SECONDS = 30.0


@pytest.fixture(autouse=True)
def reachable(settings):
    settings.ADE_FEED_NETWORKS = ["127.0.0.1/32"]


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


class Rebinding:
    """A resolver that gives another answer at each request."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def __call__(self, host):
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def failure_of(url, **options):
    with pytest.raises(FetchFailed) as failed:
        fetch(url, **{"seconds": 5, **options})
    return failed.value


def resolving(*addresses):
    return Outside(resolve=lambda host: list(addresses))


# DNS rebinding


def test_s9_a_name_that_leads_inside_when_asked_again_is_asked_once(settings):
    settings.ADE_FEED_NETWORKS = []
    names = Rebinding(["93.184.215.14"], ["127.0.0.1"])

    with watched() as tried:
        failure = failure_of("http://feeds.example.org/", outside=Outside(resolve=names))

    # The tests refuse connections to other machines, and this was the only attempt.
    assert failure.code == "unreachable"
    assert tried == [("93.184.215.14", 80)]
    assert names.asked == ["feeds.example.org"]


def test_s9_the_connection_goes_to_the_address_that_was_looked_at(server):
    server.on("/feed.xml", serving(FEED))
    with Server(host="127.0.0.2", port=server.port) as inside:
        names = Rebinding(["127.0.0.1"], ["127.0.0.2"])

        fetched = fetch(server.url("/feed.xml", host="feeds.example.org"), outside=Outside(resolve=names))

    assert fetched.body == FEED
    assert server.asked[0].headers["host"] == f"feeds.example.org:{server.port}"
    assert (len(names.asked), inside.connections) == (1, 0)


def test_s9_a_name_that_changes_between_two_redirects_is_looked_at_again(server):
    server.on("/feed.xml", redirecting("/2"))
    with Server(host="127.0.0.2", port=server.port) as inside:
        names = Rebinding(["127.0.0.1"], ["127.0.0.2"])

        failure = failure_of(server.url("/feed.xml", host="feeds.example.org"), outside=Outside(resolve=names))

    assert failure.code == "refused_address"
    assert "127.0.0.2" in str(failure)
    assert (len(names.asked), inside.connections) == (2, 0)


@pytest.mark.parametrize("addresses", [["127.0.0.1", "10.0.0.1"], ["127.0.0.1"] * 50 + ["::1"]])
def test_s9_one_address_inside_is_enough_to_refuse_a_name(server, addresses):
    server.on("/feed.xml", serving(FEED))

    failure = failure_of(server.url("/feed.xml", host="feeds.example.org"), outside=resolving(*addresses))

    assert failure.code == "refused_address"
    assert server.connections == 0


def test_a_refusal_says_what_to_do():
    failure = failure_of("http://feeds.example.org:8080/", outside=resolving("10.1.2.3"))

    assert str(failure) == (
        "The host feeds.example.org at 10.1.2.3, port 8080, is not allowed for feeds."
        " Use a public address and port 80 or 443, or add its network to ADE_FEED_NETWORKS."
    )


# Names and connections


@pytest.mark.parametrize("first", ["127.0.0.3", "127.0.0.4"])
def test_an_address_that_does_not_answer_leaves_another_its_turn(server, settings, first):
    settings.ADE_FEED_NETWORKS = ["127.0.0.0/8"]
    url = server.on("/feed.xml", serving(FEED)).replace("127.0.0.1", "feeds.example.org")

    with Full("127.0.0.4", server.port):
        fetched = fetch(url, seconds=2, outside=resolving(first, "127.0.0.1"))

    assert fetched.body == FEED


def test_only_some_of_many_addresses_are_tried(settings):
    settings.ADE_FEED_NETWORKS = ["127.0.0.0/8"]

    with watched() as tried:
        failure = failure_of("http://feeds.example.org:9/", outside=resolving(*(f"127.0.1.{n}" for n in range(100))))

    assert (failure.code, len(tried)) == ("unreachable", 4)
    assert str(failure) == "Could not connect to feeds.example.org on port 9: Connection refused."


def test_the_system_knows_names_too(server, settings):
    settings.ADE_FEED_NETWORKS = ["127.0.0.0/8", "::1/128"]
    url = server.on("/feed.xml", serving(FEED)).replace("127.0.0.1", "localhost")

    assert fetch(url).body == FEED


def test_a_name_may_have_letters_of_all_languages(server):
    names = Rebinding(["127.0.0.1"])
    url = server.on("/feed.xml", serving(FEED)).replace("127.0.0.1", "Größe.example")

    assert fetch(url, outside=Outside(resolve=names)).url == url.replace("Größe", "xn--gre-6ka8i")
    assert names.asked == ["xn--gre-6ka8i.example"]


def test_a_server_may_have_an_address_of_ipv6(settings):
    settings.ADE_FEED_NETWORKS = ["::1/128"]

    with Server(host="::1") as server:
        url = server.on("/feed.xml", serving(FEED))
        fetched = fetch(url)

    assert (fetched.body, fetched.url) == (FEED, f"http://[::1]:{server.port}/feed.xml")
    assert server.asked[0].headers["host"] == f"[::1]:{server.port}"


def test_a_name_that_nobody_has_is_unreachable():
    failure = failure_of("http://nobody.invalid/")

    assert (failure.code, failure.permanent) == ("unreachable", False)
    assert "nobody.invalid" in str(failure)


@pytest.mark.parametrize("error", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long")])
def test_what_a_resolver_fails_at_is_unreachable(error):
    def resolve(host):
        raise error

    assert failure_of("http://feeds.example.org/", outside=Outside(resolve=resolve)).code == "unreachable"


def test_a_name_without_an_address_is_unreachable():
    assert failure_of("http://feeds.example.org/", outside=resolving()).code == "unreachable"


def test_the_system_is_asked_for_what_can_be_connected_to():
    assert resolve_by_system("127.0.0.1") == ["127.0.0.1"]


# Time limits


def test_f12_a_resolver_that_hangs_has_no_more_than_the_time_of_a_fetch():
    released = Event()

    began = time.monotonic()
    silent = Outside(resolve=lambda _: released.wait(600))
    failure = failure_of("http://feeds.example.org/", seconds=0.3, outside=silent)
    released.set()

    assert failure.code == "too_slow"
    assert 0.3 <= time.monotonic() - began < 0.3 + GRACE_SECONDS


def test_f12_threads_of_resolvers_that_hang_have_an_end():
    released = Event()
    began = []

    def resolve(host):
        began.append(host)
        released.wait(600)
        return ["10.0.0.1"]

    with ThreadPoolExecutor(50) as threads:
        options = {"seconds": 1, "outside": Outside(resolve=resolve)}
        failing = [threads.submit(failure_of, f"http://{n}.example/", **options) for n in range(50)]
        assert {each.result().code for each in failing} == {"too_slow"}
    hanging = len(began)
    released.set()

    assert hanging == 32
    # After they have returned, other names can be resolved.
    assert failure_of("http://feeds.example.org/", outside=Outside(resolve=resolve)).code == "refused_address"


def test_f12_a_host_that_does_not_take_the_call_has_no_more_than_the_time_of_a_fetch():
    with Full("127.0.0.1") as full:
        began = time.monotonic()
        failure = failure_of(f"http://127.0.0.1:{full.port}/", seconds=0.3)

    assert failure.code == "too_slow"
    assert 0.3 <= time.monotonic() - began < 0.3 + GRACE_SECONDS


@pytest.mark.parametrize("greeting", [b"", b"\x16\x03\x03\x40\x00" + bytes(16384)])
def test_f12_certificates_come_in_time_or_not_at_all(greeting):
    def slowly(call):
        call.send_slowly(greeting, 0.05)
        call.wait()

    with Server(instead=slowly) as server:
        began = time.monotonic()
        failure = failure_of(f"https://127.0.0.1:{server.port}/", seconds=0.3)

    assert failure.code == "too_slow"
    assert 0.3 <= time.monotonic() - began < 0.3 + GRACE_SECONDS


# Certificates


def test_a_server_proves_its_name(authority):
    with Server(context=authority.context("feeds.example.org")) as server:
        server.on("/feed.xml", serving(FEED))
        outside = Outside(resolve=lambda host: ["127.0.0.1"], trust=authority.trust)

        assert fetch(server.url("/feed.xml", host="feeds.example.org"), outside=outside).body == FEED

        # The certificate must match the name, not the address.
        failure = failure_of(server.url("/feed.xml", host="other.example.org"), outside=outside)
    assert failure.code == "tls"
    assert "Hostname mismatch, certificate is not valid for 'other.example.org'" in str(failure)
    assert len(server.asked) == 1


def test_a_server_may_prove_its_address(authority):
    with Server(context=authority.context("127.0.0.1")) as server:
        url = server.on("/feed.xml", serving(FEED))

        assert fetch(url, outside=Outside(trust=authority.trust)).body == FEED


def test_a_server_may_know_newer_protocols(authority):
    chosen = []

    def choosing(call):
        chosen.append(call.connection.selected_alpn_protocol())
        serving(FEED)(call)

    context = authority.context("127.0.0.1")
    context.set_alpn_protocols(["h2", "http/1.1"])
    with Server(context=context) as server:
        fetch(server.on("/feed.xml", choosing), outside=Outside(trust=authority.trust))

    assert chosen == ["http/1.1"]


def test_a_server_that_nobody_vouches_for_is_not_asked(authority):
    with Server(context=authority.context("127.0.0.1")) as server:
        failure = failure_of(server.on("/feed.xml", serving(FEED)))

    assert (failure.code, failure.permanent) == ("tls", False)
    assert "unable to get local issuer certificate" in str(failure)
    assert server.asked == []


def test_a_certificate_that_has_expired_is_none(authority):
    with Server(context=authority.context("127.0.0.1", until=datetime.now(UTC))) as server:
        failure = failure_of(server.on("/feed.xml", serving(FEED)), outside=Outside(trust=authority.trust))

    assert failure.code == "tls"
    assert "expired" in str(failure)


@pytest.mark.parametrize("greeting", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", bytes(100)])
def test_a_server_without_encryption_proves_nothing(greeting):
    with Server(instead=saying(greeting)) as server:
        failure = failure_of(f"https://127.0.0.1:{server.port}/")

    assert failure.code == "tls"


def test_a_redirect_may_lead_to_encryption_and_not_away_from_it(server, authority):
    with Server(context=authority.context("127.0.0.1")) as encrypted:
        outside = Outside(trust=authority.trust)
        encrypted.on("/feed.xml", serving(FEED))
        server.on("/up", redirecting(encrypted.url("/feed.xml"), 301))
        encrypted.on("/down", redirecting(server.url("/feed.xml"), 301))

        assert fetch(server.url("/up"), outside=outside).moved_to == encrypted.url("/feed.xml")

        failure = failure_of(encrypted.url("/down"), outside=outside)
    assert (failure.code, failure.permanent) == ("refused_redirect", False)
    assert server.paths() == ["/up"]
    assert server.url("") in str(failure)


def test_this_machine_says_whom_to_believe():
    assert trust_of_the_system() is trust_of_the_system()
    assert trust_of_the_system().check_hostname


def test_many_threads_fetch_at_once(server, authority):
    with ExitStack() as stack, ThreadPoolExecutor(16) as threads:
        encrypted = stack.enter_context(Server(context=authority.context("127.0.0.1")))
        trust = authority.trust()
        urls = [each.on(f"/{n}", serving(b"%d" % n * 1000)) for n in range(40) for each in (server, encrypted)]

        fetched = list(threads.map(lambda url: fetch(url, outside=Outside(trust=lambda: trust)), urls))

    assert [each.url for each in fetched] == urls
    assert [each.body for each in fetched] == [b"%d" % n * 1000 for n in range(40) for _ in range(2)]


class Full:
    """A listening socket with a full backlog."""

    def __init__(self, host, port=0):
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((host, port))
        self._listener.listen(0)
        self.port = self._listener.getsockname()[1]
        self._waiting = [socket.socket() for _ in range(4)]

    def __enter__(self):
        for each in self._waiting:
            each.setblocking(False)
            each.connect_ex(self._listener.getsockname())
        return self

    def __exit__(self, *error):
        for each in (*self._waiting, self._listener):
            each.close()
