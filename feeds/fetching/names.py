"""Resolves host names with a timeout, which the system's resolver doesn't have."""

import socket
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import BoundedSemaphore, Thread

from feeds.fetching.budget import Budget
from feeds.fetching.outcome import FetchFailed, reason_of

Resolve = Callable[[str], list[str]]

# A thread with a hanging resolver can't be stopped, so the number of threads is limited.
_PLACES = BoundedSemaphore(32)


def resolve_by_system(host: str) -> list[str]:
    """Resolve a name with the system. Raises OSError, or UnicodeError for an invalid name."""
    infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in infos))


def addresses_of(host: str, resolve: Resolve, budget: Budget) -> list[str]:
    """Return at least one address. Raises FetchFailed."""
    results: SimpleQueue[list[str] | Exception] = SimpleQueue()

    def look_up() -> None:
        try:
            results.put(resolve(host))
        except Exception as error:
            results.put(error)
        finally:
            _PLACES.release()

    if not _PLACES.acquire(timeout=budget.seconds_left()):
        raise budget.too_slow()
    try:
        # A daemon thread, so that a hanging resolver can't delay the end of the process.
        Thread(target=look_up, name=f"resolve {host}", daemon=True).start()
    except RuntimeError:
        # The system can't start another thread.
        _PLACES.release()
        raise
    try:
        addresses = results.get(timeout=budget.seconds_left())
    except Empty:
        raise budget.too_slow() from None
    if isinstance(addresses, Exception):
        message = f"The host name {host} could not be resolved: {reason_of(addresses)}."
        raise FetchFailed("unreachable", message) from addresses
    if not addresses:
        raise FetchFailed("unreachable", f"The host name {host} has no address.")
    return addresses
