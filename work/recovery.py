"""Recovers the rows that lost workers left, by the rule of each kind of work, and writes a receipt to their history.

Every worker does this when it starts and at every tick, so recovery needs no schedule, queue or other process.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog
from django.conf import settings
from django.db import connection, models, transaction

from work import clock, failpoints, lifecycle, outages
from work.changes import WARNING
from work.claims import Claim, LeaseHolder
from work.models import Worker
from work.processes.identity import ProcessId, end_recorded
from work.sql.contention import be_impatient
from work.state_machine import StateMachine

if TYPE_CHECKING:
    from work.work_types import WorkType

RECEIPT = "RECOVERED"
# The rules by which a lost claim is found. They appear in the messages of receipts.
EXPIRED = "the lease of its worker expired"
EARLIER_BOOT = "an earlier boot of its worker left it behind"
STOPPED = "its worker was stopped"
OVER_BUDGET = "it exceeded its time limit"
# Rows per query. Each query starts after the last row of the previous one, so rows that cannot be moved do not hide
# other rows.
PAGE = 100
# Recovery must not hang. A statement that takes longer is waiting for a lock, and the next tick tries again.
STATEMENT_TIMEOUT_MS = 5000
# How long a child process that has outlived its worker may take to end after SIGTERM.
GRACE_SECONDS = 1.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class LostClaim:
    """A claimed row whose worker is gone, as recovery found it."""

    states: StateMachine
    id: int
    holder: LeaseHolder
    lease_expires_at: datetime
    process: dict[str, Any] | None
    rule: str
    by: str

    @property
    def losses(self) -> int:
        """By how much to increase the row's count of lost workers, which exists because work may kill its worker."""
        return 0 if self.rule == STOPPED else 1

    @property
    def failure_type(self) -> str:
        return "TIMED_OUT" if self.rule == OVER_BUDGET else "PROCESS_TERMINATED"

    @property
    def fence(self) -> dict[str, Any]:
        """The conditions that the row must still meet."""
        # If the lease was renewed after we found it expired, the claim is not ours to end.
        unchanged = {"lease_expires_at": self.lease_expires_at} if self.rule == EXPIRED else {}
        return {**self.holder.fence, **unchanged}

    def is_unchanged(self) -> bool:
        return self.states.rows.filter(pk=self.id, **self.fence).exists()

    def move(self, verb: str, *, guards: lifecycle.Data | None = None, **options: Any) -> str | None:
        """Make the transition. Return the verb, or None if the row is no longer as it was found."""
        guards = {**self.fence, **(guards or {})}
        actor = self.by if self.rule == STOPPED else f"recovery by {self.by}"
        return verb if lifecycle.move(self.states, self.id, verb, actor=actor, guards=guards, **options) else None


def rescue_expired(kinds: Iterable["WorkType"], by: str) -> int:
    """Recover all rows whose lease has expired or that are over their time limit. Return how many were moved."""
    if clock.jumped_within(settings.ADE_LEASE_SECONDS):
        # A clock was set. Until live workers renew their leases, these may look expired.
        return 0
    moved = 0
    for kind in kinds:
        try:
            moved += _rescue_kind(kind, by)
        except Exception as error:
            if outages.is_outage(error) or (connection.connection is not None and not connection.is_usable()):
                raise
            # The database answers, so go on: the other kinds must not wait until this kind's defect is repaired.
            log.exception("recovery.kind_failed", kind=kind.name)
    return moved


def _rescue_kind(kind: "WorkType", by: str) -> int:
    moved = _rescue_rows(kind, models.Q(lease_expires_at__lte=clock.now()), EXPIRED, by)
    if kind.budget:
        # A working holder ends its own work in time. This is for a holder that does not.
        slack = settings.ADE_LEASE_SECONDS
        latest = clock.now() - timedelta(seconds=getattr(settings, kind.budget) + slack)
        moved += _rescue_rows(kind, models.Q(started_at__lt=latest), OVER_BUDGET, by)
    return moved


def rescue_owned_by(kinds: Iterable["WorkType"], owners: Iterable[str], rule: str, by: str) -> int:
    """Recover all rows of these owners at once: they are known to be gone, so their leases need not expire first."""
    held = models.Q(lease_owner__in=list(owners))
    return sum(_rescue_rows(kind, held, rule, by) for kind in kinds)


def release(kind: "WorkType", claim: Claim, by: str) -> bool:
    """Give up a claim of this worker itself. Return False if the row has changed or its kind cannot be recovered."""
    row = kind.states.rows.filter(pk=claim.id).values("lease_expires_at", "process").first()
    if row is None or kind.rescue is None:
        return False
    return _rescue_one(kind, LostClaim(kind.states, claim.id, claim.holder, **row, rule=STOPPED, by=by))


def is_held(kind: "WorkType", claim: Claim) -> bool:
    """Return whether the row is still under this claim."""
    return kind.states.rows.filter(pk=claim.id, **claim.guards).exists()


def _rescue_rows(kind: "WorkType", lost: models.Q, rule: str, by: str) -> int:
    if kind.states.claimed is None or kind.rescue is None:
        return 0
    moved = 0
    for claim in _lost_claims(kind.states, lost, rule, by):
        try:
            moved += _rescue_one(kind, claim)
        except Exception as error:
            # This row gets another try at the next tick. The other rows must not wait for it, whatever the error is.
            log.warning("recovery.failed", kind=kind.name, id=claim.id, error=repr(error).strip())
    return moved


def _lost_claims(states: StateMachine, lost: models.Q, rule: str, by: str) -> Iterator[LostClaim]:
    columns = ("lease_expires_at", "pk", "lease_owner", "claim_token", "process")
    rows = states.rows.filter(lost, status=states.claimed).order_by("lease_expires_at", "pk")
    after = models.Q()
    while page := list(rows.filter(after).values_list(*columns)[:PAGE]):
        failpoints.hit("recover.selected")
        for expires_at, id, owner, token, process in page:
            yield LostClaim(states, id, LeaseHolder(owner, token), expires_at, process, rule, by)
        after = models.Q(lease_expires_at__gt=page[-1][0]) | models.Q(lease_expires_at=page[-1][0], pk__gt=page[-1][1])


def _rescue_one(kind: "WorkType", claim: LostClaim) -> bool:
    assert kind.rescue is not None
    if not claim.is_unchanged():
        # Recovering earlier rows took a while, and the worker may have renewed its lease meanwhile.
        return False
    outcome = "none recorded"
    if claim.process is not None:
        # End the child process before the row can be claimed again: only a claim keeps other workers out, a running
        # process does not. A worker that gives work back has already ended its child and waited for it.
        grace = 0.0 if claim.rule == STOPPED else GRACE_SECONDS
        outcome = end_recorded(ProcessId.from_json(claim.process), grace)
    if connection.vendor == "microsoft":
        # There it holds for the whole connection, which needs no more patience for anything else.
        be_impatient(STATEMENT_TIMEOUT_MS)
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL statement_timeout = %s", [STATEMENT_TIMEOUT_MS])
        verb = kind.rescue(claim)
        if verb is None:
            return False
        owner, expired_at = claim.holder.owner, claim.lease_expires_at
        boots = Worker.objects.filter(boot_id=owner.rpartition(":")[2])
        heartbeat_at = boots.values_list("heartbeat_at", flat=True).first()
        receipt = {
            "owner": owner,
            "claim_token": claim.holder.token,
            "lease_expired_at": expired_at.isoformat() if expired_at else None,
            "last_heartbeat_at": heartbeat_at.isoformat() if heartbeat_at else None,
            "process": outcome,
            "rule": claim.rule,
            "verb": verb,
        }
        message = f"{verb}: {owner} is gone, {claim.rule}"
        lifecycle.record(claim.states, claim.id, RECEIPT, actor=claim.by, message=message, data=receipt, level=WARNING)
        failpoints.hit("recover.before_commit")
    log.warning("recovery.moved", kind=kind.name, id=claim.id, verb=verb, owner=owner, rule=claim.rule)
    return True
