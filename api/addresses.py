"""Finds the client's address: the connection's peer or, if that is a trusted proxy, the address that it reports."""

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest

# A client with one IPv6 address usually controls its whole /64 network.
IPV6_PREFIX = 64


def address_of(request: HttpRequest) -> str:
    return client_address(str(request.META.get("REMOTE_ADDR", "")), str(request.META.get("HTTP_X_FORWARDED_FOR", "")))


def client_address(address: str, forwarded_for: str) -> str:
    """Return the client's address. X-Forwarded-For is read from the end, and only the entries that our own proxies
    added: a client can forge all others.
    """
    proxies = _networks(tuple(settings.ADE_PROXIES))
    forwarded = forwarded_for.split(",")
    while proxies and forwarded and _is_in(address, proxies):
        last = forwarded.pop().strip()
        if not _is_address(last):
            break
        address = last
    return address if _is_address(address) else ""


def is_proxy(address: str) -> bool:
    return _is_in(address, _networks(tuple(settings.ADE_PROXIES)))


def address_for_axes(request: HttpRequest) -> str | None:
    """Return the origin without its prefix length, because django-axes has no column for a network."""
    return origin_of(request).partition("/")[0] or None


def origin_of(request: HttpRequest) -> str:
    """Return the client's IPv4 address or IPv6 network. All requests from the same origin share one rate limit."""
    return origin_of_address(address_of(request))


def origin_of_address(address: str) -> str:
    if not _is_address(address):
        return ""
    if isinstance(parsed := ip_address(address), IPv6Address):
        return str(parsed.ipv4_mapped or ip_network((parsed, IPV6_PREFIX), strict=False))
    return address


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    # Databases reject an IPv6 address with a zone (`%eth0`).
    return "%" not in text


def _is_in(address: str, networks: tuple[IPv4Network | IPv6Network, ...]) -> bool:
    return _is_address(address) and any(ip_address(address) in network for network in networks)


@lru_cache
def _networks(texts: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(map(ip_network, texts))
