"""The periodic task for the environments of a worker's host."""

import structlog
from django.conf import settings

from builds import environments

log = structlog.get_logger(__name__)


def tidy(_owner: str = "") -> int:
    """Remove half-made and long-unused environments. Always return 0, because no rows change."""
    swept = environments.sweep()
    pruned = environments.prune(
        unused_seconds=settings.ADE_ENVIRONMENT_UNUSED_SECONDS, most_bytes=settings.ADE_ENVIRONMENTS_BYTES
    )
    if swept or pruned.removed:
        log.info("environments.tidied", swept=swept, pruned=[each.fingerprint[:12] for each in pruned.removed])
    return 0
