"""Sends one request, and turns the errors of the HTTP client into FetchFailed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpcore2
import httpx2

from feeds.fetching.budget import Budget
from feeds.fetching.outcome import FetchFailed, detail, reason_of
from feeds.fetching.targets import origin_of, port_of


@contextmanager
def send(
    pool: httpcore2.ConnectionPool,
    method: str,
    target: httpx2.URL,
    headers: Mapping[str, str],
    budget: Budget,
    body: bytes | None = None,
) -> Iterator[httpcore2.Response]:
    """Send a request and yield the response. Its body has not been read yet; reading it raises the same errors."""
    all_headers = [("Host", target.netloc.decode()), *headers.items()]
    # Pass the parsed parts, so that httpcore doesn't parse the URL differently from how it was checked.
    url = httpcore2.URL(scheme=target.raw_scheme, host=target.raw_host, port=port_of(target), target=target.raw_path)
    try:
        with pool.stream(method, url, headers=all_headers, content=body) as response:
            yield response
    except httpcore2.TimeoutException as error:
        raise budget.too_slow() from error
    except httpcore2.NetworkError as error:
        message = f"The connection to {origin_of(target)} failed: {reason_of(error)}."
        raise FetchFailed("unreachable", message) from error
    except httpcore2.ProtocolError as error:
        message = f"The answer of {origin_of(target)} is not valid HTTP: {detail(error)}."
        raise FetchFailed("bad_answer", message) from error
