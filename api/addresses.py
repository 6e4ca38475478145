"""From where a request comes: the other end of the connection or, behind proxies that are known, whom they name."""

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest

# Who has one address of such a network has all of them.
IPV6_PREFIX = 64


def address_of(request: HttpRequest) -> str:
    """Of X-Forwarded-For only what our own proxies have written, from its end: the rest anybody may have made up."""
    address = str(request.META.get("REMOTE_ADDR", ""))
    known = _networks(tuple(settings.ADE_PROXIES))
    forwarded = str(request.META.get("HTTP_X_FORWARDED_FOR", "")).split(",")
    while known and forwarded and _is_in(address, known):
        named = forwarded.pop().strip()
        if not _is_address(named):
            break
        address = named
    return address if _is_address(address) else ""


def address_for_axes(request: HttpRequest) -> str | None:
    return address_of(request) or None


def origin_of(request: HttpRequest) -> str:
    """What is limited together."""
    address = address_of(request)
    if address and isinstance(parsed := ip_address(address), IPv6Address):
        return str(ip_network((parsed, IPV6_PREFIX), strict=False))
    return address


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    # With the name of an interface, databases know none.
    return "%" not in text


def _is_in(address: str, networks: tuple[IPv4Network | IPv6Network, ...]) -> bool:
    return _is_address(address) and any(ip_address(address) in network for network in networks)


@lru_cache
def _networks(written: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(map(ip_network, written))
