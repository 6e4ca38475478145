"""Which addresses are on the internet. `is_global` alone does not tell: on Python 3.11 it is true of multicast, of what
translates to an IPv4 address (NAT64, 6to4), of site-local addresses and of some that clouds use for themselves.
"""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Whatever else is public is reached by name, and answers there.
PORTS = (80, 443)

_NOT_PUBLIC = [
    ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        # Metadata of most clouds, with their keys.
        "169.254.0.0/16",
        "172.16.0.0/12",
        # Also metadata, of Oracle's cloud.
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        # Looks public, and is what Azure tells its virtual machines from.
        "168.63.129.16/32",
        # Teredo is here, and other protocols' own.
        "2001::/23",
        "2001:db8::/32",
        "3fff::/20",
    )
]
_UNICAST = IPv6Network("2000::/3")
# IPv6 alone reaches the hosts of IPv4 in this way. Its sister 64:ff9b:1::/48 is for networks of one's own.
_NAT64 = IPv6Network("64:ff9b::/96")
# What stands before an IPv4 address in the lower half of an ISATAP address; the second is said to be unique.
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
_LOW = 0xFFFF_FFFF


def is_public(address: Address) -> bool:
    """And everything that it stands for."""
    if isinstance(address, IPv4Address):
        return _is_global(address)
    if address.ipv4_mapped is not None:
        return _is_global(address.ipv4_mapped)
    if address in _NAT64:
        return _is_global(IPv4Address(int(address) & _LOW))
    return address in _UNICAST and _is_global(address) and all(map(_is_global, _embedded(address)))


def lies_in(address: Address, networks: Iterable[Network]) -> bool:
    plain = plainly(address)
    return any(plain in network for network in networks)


def plainly(address: Address) -> Address:
    """An IPv4 address in the clothes of IPv6 is one."""
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def parsed(networks: Iterable[str]) -> list[Network]:
    return [ip_network(network) for network in networks]


def address_of(text: str) -> Address | None:
    """None for what is a name."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def _is_global(address: Address) -> bool:
    return address.is_global and not address.is_multicast and not lies_in(address, _NOT_PUBLIC)


def _embedded(address: IPv6Address) -> Iterator[IPv4Address]:
    if address.sixtofour is not None:
        yield address.sixtofour
    if (int(address) >> 32) & _LOW in _ISATAP:
        yield IPv4Address(int(address) & _LOW)
