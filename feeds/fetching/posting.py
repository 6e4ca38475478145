"""Posts a small body to an external server, under the same guards as fetching feeds. Redirects are not followed."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import httpcore2

from feeds.fetching import responses
from feeds.fetching.budget import Budget
from feeds.fetching.exchange import send
from feeds.fetching.network import SYSTEM, Guard, Outside
from feeds.fetching.outcome import FetchFailed, detail
from feeds.fetching.reach import Reach
from feeds.fetching.targets import target_of

SECONDS, CONNECT_SECONDS = 10.0, 5.0
# Limit of the response, including its headers and interim responses.
MOST_BYTES = 64 << 10


@dataclass(frozen=True)
class PostResponse:
    status: int
    # The beginning of the response body, to show in a history.
    start: str
    # For how many seconds the server asks not to be called.
    retry_after: float | None = None

    @property
    def words(self) -> str:
        return responses.status_text(self.status)


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    reach: Reach,
    *,
    seconds: float = SECONDS,
    connect_seconds: float = CONNECT_SECONDS,
    outside: Outside = SYSTEM,
) -> PostResponse:
    """Post and return the response, whatever its status. Raises FetchFailed if there is none."""
    target = target_of(url)
    budget = Budget(seconds, MOST_BYTES)
    guard = Guard(outside.resolve, reach, budget, connect_seconds)
    all_headers = {**headers, "Content-Length": str(len(body)), "Accept-Encoding": "identity"}
    start = ""
    with (
        httpcore2.ConnectionPool(ssl_context=outside.trust(), network_backend=guard) as pool,
        send(pool, "POST", target, all_headers, budget, body) as response,
    ):
        # The status is already known, so the result counts even if the body fails.
        with suppress(FetchFailed, httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError):
            start = detail(next(iter(response.iter_stream()), b"")[:1000].decode("utf-8", "replace"))
        return PostResponse(response.status, start, responses.retry_after(response, datetime.now(UTC)))
