"""S9 and F14: no spelling of an address leads to a connection to an internal host."""

import re
from contextlib import suppress
from random import Random

import pytest

from feeds.fetching import FetchFailed, fetch
from feeds.fetching.network import Outside
from feeds.fetching.targets import target_of
from tests.feeds.servers import Server, redirecting
from tests.feeds.sockets import watched

pytestmark = pytest.mark.once

# Names that resolve to internal addresses, as their owners may configure them.
NAMES = {
    "localhost": ["127.0.0.1"],
    "localhost.localdomain": ["::1"],
    "ip6-localhost": ["::1"],
    "spoofed.example.org": ["127.0.0.1"],
    "127.0.0.1.nip.io": ["127.0.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
    "metadata": ["169.254.169.254"],
    "intranet": ["10.1.2.3"],
    "kubernetes.default.svc": ["10.96.0.1"],
    "mixed.example.org": ["93.184.215.14", "10.0.0.1"],
    "mixed6.example.org": ["2606:4700::1111", "::1"],
    "mapped.example.org": ["::ffff:10.0.0.1"],
    "nat64.example.org": ["64:ff9b::a00:1"],
    "zone.example.org": ["fe80::1%2"],
    "odd.example.org": ["no address"],
    "xn--nxasmm1c.example": ["127.0.0.1"],
    "1.1.1.1.example": ["192.168.1.1"],
}
REFUSED = [
    # Internal addresses, written plainly.
    "http://127.0.0.1/",
    "http://127.0.0.1:80/",
    "https://127.0.0.1/",
    "http://127.255.255.254/",
    "http://0.0.0.0/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data/iam/security-credentials/",
    "http://100.64.0.1/",
    "http://100.100.100.200/latest/meta-data/",
    "http://192.0.0.192/opc/v2/instance/",
    "http://168.63.129.16/machine?comp=goalstate",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://[::1]/",
    "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/",
    "http://[2a00:1450::5efe:10.0.0.1]/",
    "http://[fe80::1]/",
    "http://[fec0::1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[ff02::1]/",
    # Internal addresses with names.
    *(f"http://{name}/feed.xml" for name in NAMES),
    "http://LOCALHOST/",
    "http://LocalHost:80/",
    "http://ⓛocalhost.example.org/",
    # Dots and digits outside ASCII.
    "http://127。0。0。1/",
    "http://127．0．0．1/",
    "http://１２７.0.0.1/",
    "http://①②⑦.⓪.⓪.①/",
    "http://loc\u00adalhost/",
    "http://local\u200bhost/",
    # Other spellings of IPv4.
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0x7f.1/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://0177.0.0.01/",
    "http://127.0.0.01/",
    "http://127.1/",
    "http://127.0.1/",
    "http://0/",
    "http://127.0.0.1./",
    "http://127.0.0.0x1/",
    "http://127.0.0.256/",
    "http://127.0.0.1.1/",
    "http://localhost./",
    "http://localhost../",
    "http://%31%32%37.0.0.1/",
    "http://127.0.0.1%00.example.org/",
    "http://127%2e0%2e0%2e1/",
    # Brackets and zones.
    "http://[127.0.0.1]/",
    "http://[::1%25lo]/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[::1/",
    "http://::1/",
    "http://[::1]example.org/",
    "http://example.org[::1]/",
    "http://[]/",
    "http://[v1.fe80]/",
    # User names, and URLs in which parsers find different hosts.
    "http://user:secret@127.0.0.1/",
    "http://user@example.org/",
    "http://:secret@example.org/",
    "http://example.org@127.0.0.1/",
    "http://example.org:80@127.0.0.1/",
    "http://@127.0.0.1/",
    "http://127.0.0.1#@example.org/",
    "http://127.0.0.1?@example.org/",
    "http://127.0.0.1\\@example.org/",
    "http://example.org\\@127.0.0.1/",
    "http://127.0.0.1\\.example.org/",
    "http:\\\\127.0.0.1\\",
    "http:/127.0.0.1/",
    "http:127.0.0.1",
    "http:///127.0.0.1/",
    "http:////127.0.0.1/",
    "//127.0.0.1/",
    "127.0.0.1/feed.xml",
    "http://127.0.0.1\t/",
    "http://127.0.0.1\n/",
    "http://127.0.0.1\r\nHost: example.org/",
    "http://exam ple.org/",
    " http://127.0.0.1/",
    "http://example.org/\x00",
    "http://\u3000127.0.0.1/",
    # Ports.
    "http://127.0.0.1:22/",
    "http://example.org:22/",
    "http://example.org:6379/",
    "http://example.org:8080/",
    "http://example.org:0/",
    "http://example.org:-1/",
    "http://example.org:65536/",
    "http://example.org:80:443/",
    "http://example.org:http/",
    # Other protocols.
    "file:///etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "ftp://127.0.0.1/",
    "gopher://127.0.0.1:6379/_INFO",
    "dict://127.0.0.1:11211/stats",
    "ldap://127.0.0.1/",
    "jar:http://127.0.0.1!/",
    "feed://127.0.0.1/",
    "feed:http://127.0.0.1/",
    "data:text/xml,<rss/>",
    "javascript:alert(1)",
    "ws://127.0.0.1/",
    "unix:///run/docker.sock",
    "http+unix://%2Frun%2Fdocker.sock/",
    "HTTP+X://127.0.0.1/",
    "",
    "http://",
    "https://",
    "http://?",
    f"http://{'a' * 64}.example.org/",
    f"http://{'a.' * 130}org/",
    f"http://example.org/{'a' * 3000}",
    "http://-example.org/",
    "http://a..example.org/",
]
# The others would be paths on the redirecting server, or invalid in a header.
LEADS_AWAY = re.compile(r"//[^/?]|https?:(//[^/?]|\\)|(?!https?:)[a-z+]+:", re.IGNORECASE)
REDIRECTS = [url for url in REFUSED if LEADS_AWAY.match(url) and not re.search(r"[\r\n\0]", url)]
REFUSALS = {"bad_url", "refused_address"}


def resolve(host):
    return NAMES.get(host, ["93.184.215.14"])


def test_s9_the_table_is_long_enough():
    assert len(set(REFUSED)) >= 61


@pytest.mark.parametrize("url", REFUSED)
def test_s9_a_hostile_url_is_refused_before_anything_connects(url):
    with watched() as tried, pytest.raises(FetchFailed) as failed:
        fetch(url, seconds=5, outside=Outside(resolve=resolve))

    assert failed.value.code in REFUSALS
    assert failed.value.permanent is (failed.value.code == "bad_url")
    assert tried == []


@pytest.mark.parametrize("url", REDIRECTS)
def test_s9_f14_a_redirect_to_a_hostile_url_is_refused_before_anything_connects(url, settings):
    settings.ADE_FEED_NETWORKS = ["127.0.0.2/32"]

    with Server(host="127.0.0.2") as server:
        server.on("/feed.xml", redirecting(url))
        with watched() as tried, pytest.raises(FetchFailed) as failed:
            fetch(server.url("/feed.xml"), seconds=5, outside=Outside(resolve=resolve))

    assert failed.value.code in REFUSALS
    assert not failed.value.permanent
    assert tried == [("127.0.0.2", server.port)]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_s9_f14_so_it_is_behind_several_redirects_of_any_kind(status, server, settings):
    settings.ADE_FEED_NETWORKS = ["127.0.0.2/32"]

    with Server(host="127.0.0.2") as first:
        first.on("/1", redirecting("/2", status))
        first.on("/2", redirecting(f"//127.0.0.2:{first.port}/3", status))
        first.on("/3", redirecting(server.url("/inside"), status))
        with watched() as tried, pytest.raises(FetchFailed) as failed:
            fetch(first.url("/1"))

    assert failed.value.code == "refused_address"
    assert set(tried) == {("127.0.0.2", first.port)}
    assert server.connections == 0


def test_s9_no_address_is_read_in_two_ways():
    """The host that was checked is the host of the connection, and a stored URL is checked in the same way."""
    chance = Random(5)
    parts = [
        *"htps:/@.[]%#?&=0127axLé。．①-_\\ \t\r\nß\u200d\u202e\ud800\x00~!|",
        "http://",
        "127.0.0.1",
        "::1",
        "%25",
        "//",
    ]
    taken = 0
    for _ in range(3000):
        url = "http://" + "".join(chance.choices(parts, k=chance.randint(0, 8)))
        with suppress(FetchFailed):
            target = target_of(url)
            taken += 1
            assert target_of(str(target)) == target

    assert taken > 100
