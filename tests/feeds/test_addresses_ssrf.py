"""S10: which addresses are public, however they are written or embedded."""

from ipaddress import ip_address

import pytest

from feeds.fetching.addresses import address_of, is_public, parse_networks
from feeds.fetching.reach import Reach

pytestmark = pytest.mark.once

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.215.14",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.1",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450:4001::200e",
    "2001:200::1",
    "2620:4f:8000::1",
    # The embedded IPv4 address is public too.
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2a00:1450::5efe:808:808",
    "2a00:1450::200:5efe:808:808",
]
NOT_PUBLIC = [
    # This host, and private networks.
    "0.0.0.0",  # noqa: S104  # no socket is bound to it
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.255.255",
    "::",
    "::1",
    "fc00::1",
    "fd12:3456:789a::1",
    "fe80::1",
    "fe80::1%eth0",
    "febf::1",
    # Shared address space of providers, which Python regards as neither private nor global.
    "100.64.0.0",
    "100.64.0.1",
    "100.127.255.255",
    # Metadata services of clouds, which return keys.
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
    "fd00:ec2::254",
    "fd20:ce::254",
    # Documentation, benchmarks, protocol assignments.
    "192.0.0.1",
    "192.0.0.8",
    "192.0.0.255",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "2001:db8::1",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "3fff::1",
    "5f00::1",
    "100::1",
    # Multicast and reserved addresses.
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "ff02::1",
    "ff0e::1",
    "ff05::1:3",
    "fec0::1",
    "4000::1",
    "8::1",
    # IPv4 embedded in IPv6: mapped, compatible, translated,
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:100.64.0.1",
    "::ffff:224.0.0.1",
    "::ffff:0.0.0.0",
    "::127.0.0.1",
    "::7f00:1",
    "::8.8.8.8",
    "::ffff:0:127.0.0.1",
    "::ffff:0:8.8.8.8",
    # NAT64 with the well-known prefix and with the local prefix,
    "64:ff9b::7f00:1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b::a83f:8110",
    "64:ff9b::224.0.0.1",
    "64:ff9b::1:808:808",
    "64:ff9b:1::7f00:1",
    "64:ff9b:1::808:808",
    "64:ff9b:1:fffe::1",
    # 6to4, Teredo with the server or the client embedded,
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2002:a9fe:a9fe::",
    "2002:c0a8:101::1",
    "2002:808:808::1",
    "2002:e000:1::1",
    "2001::1",
    "2001:0:7f00:1::",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    # ISATAP.
    "2a00:1450::5efe:7f00:1",
    "2a00:1450::5efe:10.0.0.1",
    "2a00:1450::200:5efe:169.254.169.254",
    "2002:808:808::5efe:10.0.0.1",
    "fe80::5efe:8.8.8.8",
]
# Python regards these as global; Python 3.11 more of them than later versions.
LIES = "224.0.0.1 ff0e::1 64:ff9b::7f00:1 192.88.99.1 fec0::1 ::7f00:1 168.63.129.16 2a00:1450::5efe:7f00:1"


@pytest.mark.parametrize("text", PUBLIC)
def test_s10_an_address_on_the_internet_is_public(text):
    assert is_public(ip_address(text))


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_s10_any_other_address_is_not(text):
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", LIES.split())
def test_s10_the_table_has_what_is_global_alone_would_let_pass(text):
    assert ip_address(text).is_global
    assert text in NOT_PUBLIC


@pytest.mark.parametrize(
    ("text", "port", "networks", "may"),
    [
        ("8.8.8.8", 80, [], True),
        ("8.8.8.8", 443, [], True),
        ("8.8.8.8", 22, [], False),
        ("8.8.8.8", 8080, [], False),
        ("10.1.2.3", 80, [], False),
        ("10.1.2.3", 80, ["10.1.0.0/16"], True),
        ("10.1.2.3", 8080, ["10.1.0.0/16"], True),
        ("10.2.2.3", 80, ["10.1.0.0/16"], False),
        ("10.2.2.3", 80, ["10.1.0.0/16", "10.2.2.3/32"], True),
        ("::ffff:10.1.2.3", 8080, ["10.1.0.0/16"], True),
        ("fd00::1", 8080, ["fd00::/8"], True),
        ("fd00::1", 8080, ["10.1.0.0/16"], False),
        # A translator may map this address to any network.
        ("64:ff9b::10.1.2.3", 80, ["10.1.0.0/16"], False),
        ("8.8.8.8", 8080, ["10.1.0.0/16"], False),
    ],
)
def test_an_operator_may_allow_networks_with_all_their_ports(text, port, networks, may):
    assert Reach(parse_networks(networks), "ADE_FEED_NETWORKS", "feeds").allows(ip_address(text), port) is may


@pytest.mark.parametrize("text", ["example.org", "127.1", "0x7f000001", "2130706433", "017700000001", "127.0.0.01", ""])
def test_only_the_one_spelling_of_an_address_is_read_as_one(text):
    assert address_of(text) is None
