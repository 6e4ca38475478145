"""Where receivers may lie: on the internet behind TLS, or in networks that the operator vouches for."""

from django.conf import settings

from feeds.fetching.addresses import parsed
from feeds.fetching.reach import Reach
from feeds.fetching.targets import target_of


def reach_of(url: str) -> Reach:
    """Without TLS, whoever is on the way reads and writes along: only in one's own networks."""
    networks = parsed(settings.ADE_WEBHOOK_NETWORKS)
    is_safe = target_of(url).scheme == "https"
    return Reach(networks, "ADE_WEBHOOK_NETWORKS", "receivers", internet=is_safe, tells=False)


def spelled(url: str) -> str:
    """In its one spelling, what may be called by the look of it. Raises FetchFailed."""
    target = target_of(url.strip())
    reach_of(url.strip()).expect(target)
    return str(target)
