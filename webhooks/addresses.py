"""Decides which receivers are allowed: those on the internet if they use TLS, and those in networks that the operator
lists.
"""

from django.conf import settings

from feeds.fetching.addresses import parse_networks
from feeds.fetching.reach import Reach
from feeds.fetching.targets import target_of


def reach_of(url: str) -> Reach:
    """Return where this URL may lead. Without TLS, traffic could be read and changed on the way, so only the listed
    networks are allowed.
    """
    networks = parse_networks(settings.ADE_WEBHOOK_NETWORKS)
    is_safe = target_of(url).scheme == "https"
    return Reach(networks, "ADE_WEBHOOK_NETWORKS", "receivers", internet=is_safe, names_address=False)


def normalize(url: str) -> str:
    """Return the URL in canonical form if it may be called, without resolving its host. Raises FetchFailed."""
    target = target_of(url.strip())
    reach_of(url.strip()).expect(target)
    return str(target)
