"""Guards outgoing connections. A name is resolved once, all of its addresses are checked, and the connection goes to
one of them, so that a DNS answer that changes in between (DNS rebinding) has no effect.
"""

import math
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpcore2

from feeds.fetching.addresses import Address, address_of, unwrap
from feeds.fetching.budget import Budget
from feeds.fetching.names import Resolve, addresses_of, resolve_by_system
from feeds.fetching.outcome import FetchFailed, detail, reason_of
from feeds.fetching.reach import Reach

# How many addresses of one host are tried.
MOST_ATTEMPTS = 4


@cache
def trust_of_the_system() -> ssl.SSLContext:
    """Load the system's certificate authorities, or those in SSL_CERT_FILE and SSL_CERT_DIR. Costs about 30 ms."""
    trust = new_trust()
    trust.load_default_certs()
    return trust


def new_trust() -> ssl.SSLContext:
    """Return an SSL context that trusts no certificate authority yet."""
    trust = _Trust(ssl.PROTOCOL_TLS_CLIENT)
    super(_Trust, trust).set_alpn_protocols(["http/1.1"])
    return trust


class _Trust(ssl.SSLContext):
    """An SSL context that all threads share. httpcore sets the ALPN protocols for each connection, which would race
    with other threads that connect; here they are set once.
    """

    def set_alpn_protocols(self, alpn_protocols: Iterable[str]) -> None:
        pass


@dataclass(frozen=True)
class Outside:
    """The resolver and the trust store; tests replace both."""

    resolve: Resolve = resolve_by_system
    trust: Callable[[], ssl.SSLContext] = trust_of_the_system


SYSTEM = Outside()


class Guard(httpcore2.NetworkBackend):
    def __init__(self, resolve: Resolve, reach: Reach, budget: Budget, connect_seconds: float = math.inf) -> None:
        self._resolve, self._reach, self._budget = resolve, reach, budget
        # The time limit of all connection attempts together.
        self._connect_seconds = connect_seconds

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        addresses = self._allowed_addresses(host, port)[:MOST_ATTEMPTS]
        for following, address in enumerate(addresses, 1):
            # Split the remaining time, so that an address that never answers leaves some for the others.
            share = self._budget.seconds_left() / (len(addresses) - following + 1)
            share = min(share, self._connect_seconds / len(addresses))
            try:
                stream = httpcore2.SyncBackend().connect_tcp(str(address), port, share)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            else:
                return Stream(stream, host, self._budget)
        self._budget.seconds_left()
        message = f"Could not connect to {host} on port {port}: {reason_of(failure)}."
        raise FetchFailed("unreachable", message) from failure

    def _allowed_addresses(self, host: str, port: int) -> list[Address]:
        """Return all addresses of the host. Raises FetchFailed if one of them is not allowed."""
        is_literal = address_of(host) is not None
        addresses = []
        for text in [host] if is_literal else addresses_of(host, self._resolve, self._budget):
            address = address_of(text)
            if address is None or not self._reach.allows(address, port):
                raise self._reach.refusal(host, port, detail(text) if text != host else "")
            addresses.append(unwrap(address))
        return addresses


class Stream(httpcore2.NetworkStream):
    """A stream that ends at the deadline however slowly the server sends, and at the byte limit whatever it sends."""

    def __init__(self, stream: httpcore2.NetworkStream, host: str, budget: Budget) -> None:
        self._stream, self._host, self._budget = stream, host, budget

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._stream.read(max_bytes, self._budget.seconds_left())
        self._budget.count_bytes(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._budget.seconds_left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        try:
            stream = self._stream.start_tls(ssl_context, server_hostname, self._budget.seconds_left())
        except httpcore2.ConnectError as error:
            message = f"Could not make a secure connection to {self._host}: {reason_of(error)}."
            raise FetchFailed("tls", message) from error
        return Stream(stream, self._host, self._budget)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
