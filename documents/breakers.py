"""Circuit breakers: all workers stop calling an external service that does not answer.

The failure that reveals the outage counts as an attempt of its job. Afterwards, no stage that needs the service is
claimed, so no attempts are counted. From `next_try_at` on, one stage at a time tries the service again, and its failure
does not count as an attempt either. The first answer releases all waiting stages. The table `outside_services` holds
all state.
"""

from datetime import timedelta
from functools import cache

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q, QuerySet

from ade_services import DOCUMENT_INTELLIGENCE, OPENAI
from documents import backoff
from documents.models import OutsideService, Stage
from work import clock, wakeups
from work.changes import Claimable
from work.claims import Claim

# Which stages call which service. A service reads only PDFs and images.
NEEDS = {
    DOCUMENT_INTELLIGENCE.service: Q(name=Stage.Name.EXTRACT)
    & (Q(job__document__content_type="application/pdf") | Q(job__document__content_type__startswith="image/")),
    OPENAI.service: Q(name=Stage.Name.EMBED),
}

log = structlog.get_logger(__name__)


def away() -> dict[str, OutsideService]:
    """Return, by name, the services that are enabled in the settings and do not answer."""
    names = [DOCUMENT_INTELLIGENCE.service] if settings.ADE_EXTRACTOR == "azure" else []
    names += [OPENAI.service] if settings.ADE_EMBEDDER == "openai" else []
    if not names:
        return {}
    return {row.name: row for row in OutsideService.objects.filter(name__in=names, away_since__isnull=False)}


@cache
def claimable_without(services: frozenset[str]) -> Claimable:
    """Return a function that queries the claimable stages that need none of these services.

    The result is cached, because the compiled SQL is stored under the identity of the returned function.
    """
    if not services:
        return Stage.objects.claimable
    return lambda now: Stage.objects.claimable(now).exclude(_needs(services))


@cache
def claimable_with(service: str) -> Claimable:
    """Return a function that queries the claimable stages that need this service.

    Stages that have already called the service without success come last, because their document may be the cause.
    """
    order = ("postponements", "created_at", "id")
    return lambda now: Stage.objects.claimable(now).filter(NEEDS[service]).order_by(*order)


def waiting(services: frozenset[str]) -> "QuerySet[Stage]":
    """Return the stages that wait for any of these services to answer."""
    return Stage.objects.claimable(clock.now()).filter(_needs(services))


def lock_due(service: OutsideService) -> bool:
    """Return whether this transaction may probe the service.

    True means that a probe is due, that no other probe is running, and that the service's row is now locked.
    """
    rows = OutsideService.objects.filter(pk=service.pk, away_since__isnull=False, next_try_at__lte=clock.now())
    skip = connection.features.has_select_for_update_skip_locked
    row = rows.select_for_update(skip_locked=skip).first()
    return row is not None and not is_probed(row)


def is_probed(service: OutsideService) -> bool:
    """Return whether a stage is probing the service. If the worker dies, recovery of that stage ends the probe."""
    probe = {"pk": service.probe_id, "claim_token": service.probe_token, "status": Stage.Status.RUNNING}
    return service.probe_id is not None and Stage.objects.filter(**probe).exists()


def record_probe(service: OutsideService, claim: Claim) -> None:
    OutsideService.objects.filter(pk=service.pk).update(probe_id=claim.id, probe_token=claim.holder.token)


def record_failure(name: str, message: str, *, retry_after: float | None, opens: bool) -> bool:
    """Record a failed call. Return whether it counts as an attempt. It does not if the service was known to be away.

    With `opens`, the failure reveals an outage. Other failures, such as a wrong answer, may concern a single document.
    """
    if not opens and not OutsideService.objects.filter(name=name, away_since__isnull=False).exists():
        return True
    with transaction.atomic():
        OutsideService.objects.get_or_create(name=name)
        row = OutsideService.objects.select_for_update().get(name=name)
        now = clock.now()
        was_away = row.away_since is not None
        # A failure before `next_try_at` is from a request that started before the outage was known. Do not count it.
        if row.next_try_at is None or row.next_try_at <= now:
            row.failures += 1
            longest = settings.ADE_SERVICE_PROBE_SECONDS
            pause = backoff.seconds(row.failures, first=min(backoff.FIRST_SECONDS, longest), longest=longest)
            row.next_try_at = now + timedelta(seconds=pause)
        if retry_after is not None:
            row.asked_until = now + timedelta(seconds=backoff.seconds(1, retry_after))
            row.next_try_at = max(row.next_try_at, row.asked_until)
        row.away_since = row.away_since or now
        row.message = message
        row.save()
    if not was_away:
        log.warning("service.away", service=name, next_try_at=row.next_try_at.isoformat(), error=message)
    return not was_away


def record_answer(name: str) -> None:
    """Record an answer and release all waiting stages, unless the service asked for a pause that is not over."""
    rows = OutsideService.objects.filter(name=name, away_since__isnull=False)
    # Read first, because on SQLite even an update that changes no row waits for the write lock.
    if not rows.exists():
        return
    over = Q(asked_until__isnull=True) | Q(asked_until__lte=clock.now())
    closed = rows.filter(over).update(
        away_since=None, next_try_at=None, asked_until=None, failures=0, message="", probe_id=None, probe_token=None
    )
    if closed:
        log.warning("service.answers", service=name)
        wakeups.ring("stage")


def _needs(services: frozenset[str]) -> Q:
    return Q(*[NEEDS[name] for name in sorted(services)], _connector=Q.OR)
