"""Fetches feeds from untrusted servers, with guards against internal addresses, slow responses and oversized
responses.
"""

from dataclasses import replace
from http import HTTPStatus

import httpcore2
import httpx2
from django.conf import settings

from feeds.fetching import bodies, responses
from feeds.fetching.addresses import parse_networks
from feeds.fetching.budget import Budget
from feeds.fetching.exchange import send
from feeds.fetching.network import SYSTEM, Guard, Outside
from feeds.fetching.outcome import FeedResponse as FeedResponse
from feeds.fetching.outcome import FetchFailed as FetchFailed
from feeds.fetching.reach import Reach
from feeds.fetching.targets import next_target, origin_of, target_of

# Limit of the decompressed feed. Large feeds have some hundred KB, podcasts with all their episodes some MB.
MOST_BYTES = 5_000_000
MOST_REDIRECTS = 5
# Allowance for redirects, headers and chunk framing. httpcore accepts headers of up to 100 KB.
BESIDES_BYTES = 500_000

_PERMANENT = (HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.PERMANENT_REDIRECT)
_REDIRECTS = (*_PERMANENT, HTTPStatus.FOUND, HTTPStatus.SEE_OTHER, HTTPStatus.TEMPORARY_REDIRECT)
# No cookies, passwords or proxies: nothing here supports them.
_HEADERS = {
    "User-Agent": "ADE (feed reader)",
    "Accept": "application/atom+xml, application/rss+xml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.1",
    "Accept-Encoding": ", ".join(bodies.CODINGS),
}


def fetch(
    url: str,
    *,
    etag: str = "",
    last_modified: str = "",
    seconds: float = 30.0,
    most_bytes: int = MOST_BYTES,
    outside: Outside = SYSTEM,
) -> FeedResponse:
    """Fetch a feed within `seconds`, using little more memory than `most_bytes`. Raises FetchFailed."""
    target = target_of(url)
    budget = Budget(seconds, BESIDES_BYTES)
    guard = Guard(outside.resolve, reach(), budget)
    conditions = responses.conditional_headers(etag, last_modified)
    with httpcore2.ConnectionPool(ssl_context=outside.trust(), network_backend=guard) as pool:
        return _follow(pool, target, conditions, budget, most_bytes)


def reach() -> Reach:
    return Reach(parse_networks(settings.ADE_FEED_NETWORKS), "ADE_FEED_NETWORKS", "feeds")


def _follow(
    pool: httpcore2.ConnectionPool, target: httpx2.URL, conditions: dict[str, str], budget: Budget, most_bytes: int
) -> FeedResponse:
    seen = {target}
    is_permanent = True
    for _ in range(MOST_REDIRECTS + 1):
        with send(pool, "GET", target, {**_HEADERS, **conditions}, budget) as response:
            if response.status not in _REDIRECTS:
                budget.allow_bytes(most_bytes)
                feed = responses.read_feed(response, target, conditions, most_bytes)
                return replace(feed, moved_to=str(target)) if is_permanent and len(seen) > 1 else feed
            is_permanent = is_permanent and response.status in _PERMANENT
            target = next_target(target, responses.location(response, target))
        if target in seen:
            raise _too_many(f"The redirects go in a circle: they lead back to {origin_of(target)}.")
        seen.add(target)
    raise _too_many(f"There are more than {MOST_REDIRECTS} redirects; the last one leads to {origin_of(target)}.")


def _too_many(message: str) -> FetchFailed:
    return FetchFailed("too_many_redirects", message)
