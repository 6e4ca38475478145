"""Posts a few bytes to somebody outside, under the same guard as feeds are fetched. Redirects are not followed."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus

import httpcore2

from feeds.fetching import answers
from feeds.fetching.exchange import exchanged
from feeds.fetching.limits import Deadline, Meter
from feeds.fetching.network import SYSTEM, Guard, Outside
from feeds.fetching.outcome import FetchFailed, detail
from feeds.fetching.reach import Reach
from feeds.fetching.targets import target_of

SECONDS, CONNECT_SECONDS = 10.0, 5.0
# With all its headers, and hints before them.
MOST_BYTES = 64 << 10
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


@dataclass(frozen=True)
class Posted:
    status: int
    # Of what was answered, what a history can show.
    start: str
    # For how many seconds its server wants to be left alone.
    retry_after: float | None = None

    @property
    def words(self) -> str:
        return f"{self.status} {_PHRASES.get(self.status, '')}".strip()


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    reach: Reach,
    *,
    seconds: float = SECONDS,
    connect_seconds: float = CONNECT_SECONDS,
    outside: Outside = SYSTEM,
) -> Posted:
    """Whatever the status of the answer. Raises FetchFailed when there is none."""
    target = target_of(url)
    deadline = Deadline(seconds)
    guard = Guard(outside.resolve, reach, deadline, Meter(MOST_BYTES), connect_seconds)
    said = {**headers, "Content-Length": str(len(body)), "Accept-Encoding": "identity"}
    with (
        httpcore2.ConnectionPool(ssl_context=outside.trust(), network_backend=guard) as pool,
        exchanged(pool, "POST", target, said, deadline, body) as answer,
    ):
        return Posted(answer.status, _start_of(answer), answers.retry_after(answer, datetime.now(UTC)))


def _start_of(answer: httpcore2.Response) -> str:
    """The status has been said: however the rest comes, or does not, it counts."""
    with suppress(FetchFailed, httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError):
        for piece in answer.iter_stream():
            return detail(piece[:1000].decode("utf-8", "replace"))
    return ""
