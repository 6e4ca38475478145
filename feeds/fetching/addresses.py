"""Decides which IP addresses are on the public internet. `is_global` alone is not enough: on Python 3.11 it is true
for multicast, for addresses that translate to IPv4 (NAT64, 6to4), for site-local addresses, and for some that clouds
use internally.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Public hosts may be called only on these ports.
PORTS = (80, 443)

_NOT_PUBLIC = [
    ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        # Link-local; here most clouds serve instance metadata, including credentials.
        "169.254.0.0/16",
        "172.16.0.0/12",
        # Includes the metadata service of Oracle Cloud.
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        # Looks public, but Azure uses it for its virtual machines.
        "168.63.129.16/32",
        # Teredo and other protocol assignments.
        "2001::/23",
        "2001:db8::/32",
        # 6to4: its relays no longer exist, and it would hide an IPv4 address.
        "2002::/16",
        "3fff::/20",
    )
]
_UNICAST = IPv6Network("2000::/3")
# NAT64 prefix by which IPv6-only networks reach IPv4 hosts. The other prefix, 64:ff9b:1::/48, is for local networks
# and is refused.
_NAT64 = IPv6Network("64:ff9b::/96")
# What precedes the IPv4 address in the lower half of an ISATAP address; the second form is for globally unique ones.
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
_LOW = 0xFFFF_FFFF


def is_public(address: Address) -> bool:
    """Return whether the address, and every address embedded in it, is public."""
    if isinstance(address, IPv4Address):
        return _is_global(address)
    if address.ipv4_mapped is not None:
        return _is_global(address.ipv4_mapped)
    if address in _NAT64:
        return _is_global(IPv4Address(int(address) & _LOW))
    if (int(address) >> 32) & _LOW in _ISATAP and not _is_global(IPv4Address(int(address) & _LOW)):
        return False
    return address in _UNICAST and _is_global(address)


def is_in(address: Address, networks: Iterable[Network]) -> bool:
    plain = unwrap(address)
    return any(plain in network for network in networks)


def unwrap(address: Address) -> Address:
    """Unwrap an IPv4-mapped IPv6 address."""
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def parse_networks(networks: Iterable[str]) -> list[Network]:
    return [ip_network(network) for network in networks]


def address_of(text: str) -> Address | None:
    """Return None for a host name."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def _is_global(address: Address) -> bool:
    return address.is_global and not address.is_multicast and not is_in(address, _NOT_PUBLIC)
