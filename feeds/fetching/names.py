"""Asks for the addresses of a name, without waiting for longer than there is time: the system's resolver has no end
that could be set.
"""

import socket
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import BoundedSemaphore, Thread

from feeds.fetching.limits import Deadline
from feeds.fetching.outcome import FetchFailed, reason_of

Resolve = Callable[[str], list[str]]

# Threads of a resolver that hangs end only when it does, so there is an end to how many are begun.
_PLACES = BoundedSemaphore(32)


def by_the_system(host: str) -> list[str]:
    """May raise OSError, and UnicodeError for what is no name."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def addresses_of(host: str, resolve: Resolve, deadline: Deadline) -> list[str]:
    """At least one. Raises FetchFailed."""
    found: SimpleQueue[list[str] | Exception] = SimpleQueue()
    if not _PLACES.acquire(timeout=deadline.left()):
        raise deadline.missed()
    try:
        # Nobody waits for it when the process ends.
        Thread(target=_look_up, args=(host, resolve, found), name=f"resolve {host}", daemon=True).start()
    except RuntimeError:
        # There is no room for another thread.
        _PLACES.release()
        raise
    try:
        addresses = found.get(timeout=deadline.left())
    except Empty:
        raise deadline.missed() from None
    if isinstance(addresses, Exception):
        message = f"expected an address of {host}, found none ({reason_of(addresses)})"
        raise FetchFailed("unreachable", message) from addresses
    if not addresses:
        raise FetchFailed("unreachable", f"expected an address of {host}, found none")
    return addresses


def _look_up(host: str, resolve: Resolve, found: "SimpleQueue[list[str] | Exception]") -> None:
    try:
        found.put(resolve(host))
    except Exception as error:
        found.put(error)
    finally:
        _PLACES.release()
