import pytest

from api.addresses import address_of, origin_of
from config.environment_reader import read

pytestmark = pytest.mark.edge


@pytest.fixture
def asked(rf):
    def asked(address, *forwarded):
        named = {"HTTP_X_FORWARDED_FOR": ", ".join(forwarded)} if forwarded else {}
        return rf.get("/", REMOTE_ADDR=address, **named)

    return asked


@pytest.mark.parametrize("forwarded", [(), ("198.51.100.7",), ("::1",), ("x" * 1000,)])
def test_without_proxies_it_is_the_other_end(asked, forwarded):
    assert address_of(asked("203.0.113.9", *forwarded)) == "203.0.113.9"


@pytest.mark.parametrize(
    ("forwarded", "found"),
    [
        ((), "10.1.0.1"),
        (("198.51.100.7",), "198.51.100.7"),
        # Clients can write anything into the header; the proxy appends what it sees.
        (("127.0.0.1", "198.51.100.7"), "198.51.100.7"),
        (("10.1.0.9", "198.51.100.7"), "198.51.100.7"),
        (("198.51.100.7", "10.1.0.2"), "198.51.100.7"),
        (("198.51.100.7", "nonsense", "10.1.0.2"), "10.1.0.2"),
        (("nonsense",), "10.1.0.1"),
        (("fe80::1%eth0",), "10.1.0.1"),
        (("2001:db8::7",), "2001:db8::7"),
    ],
)
def test_behind_a_proxy_it_is_whom_the_proxy_names(asked, settings, forwarded, found):
    settings.ADE_PROXIES = ["10.1.0.0/16"]

    assert address_of(asked("10.1.0.1", *forwarded)) == found


def test_who_is_no_proxy_names_nobody(asked, settings):
    settings.ADE_PROXIES = ["10.1.0.0/16"]

    assert address_of(asked("10.2.0.1", "198.51.100.7")) == "10.2.0.1"


@pytest.mark.parametrize(
    ("address", "origin"), [("203.0.113.9", "203.0.113.9"), ("2001:db8:0:1::7", "2001:db8:0:1::/64"), ("", "")]
)
def test_who_has_many_addresses_is_one(asked, address, origin):
    assert origin_of(asked(address)) == origin


def test_proxies_are_networks():
    assert read({"ADE_PROXIES": "10.1.0.0/16, ::1"})["ADE_PROXIES"] == ["10.1.0.0/16", "::1/128"]
