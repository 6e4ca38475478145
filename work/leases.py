"""Renews a worker's leases and heartbeat, and looks for cancel and drain requests."""

import time
from collections.abc import Iterable
from threading import Event as Flag

import structlog
from django.conf import settings

from work import clock, lifecycle, outages
from work.claims import Claim, Holdings, by_kind
from work.models import Worker
from work.sql.contention import be_impatient
from work.steady import Steady

# Three renewals per lease: two may fail.
RENEWALS_PER_LEASE = 3
# After a wake-up, look again this soon: the claim may not have been listed yet when its cancel was requested.
AGAIN_SECONDS = 1.0

log = structlog.get_logger(__name__)


class LeaseRenewer(Steady):
    def __init__(self, worker: Worker, holdings: Holdings, stopping: Flag) -> None:
        super().__init__("leases", stopping)
        self.worker, self.holdings = worker, holdings
        self.woken = Flag()
        # Set when a person has asked this worker to drain.
        self.drain_requested = Flag()
        self.was_woken = False
        self.renew_at = 0.0

    def go_on(self) -> None:
        self.run_once()
        usual = min(settings.ADE_TICK_SECONDS, self._interval())
        self.was_woken = self.woken.wait(min(AGAIN_SECONDS, usual) if self.was_woken else usual)
        self.woken.clear()

    def run_once(self) -> None:
        held = list(self.holdings)
        if time.monotonic() >= self.renew_at:
            started = time.monotonic()
            be_impatient()
            lifecycle.renew(self.worker.owner, held)
            self._heartbeat(held)
            self.renew_at = started + self._interval()
        look(held)
        self._look_at_itself()
        outages.over()

    def _look_at_itself(self) -> None:
        asked = Worker.objects.filter(pk=self.worker.pk, drain_requested_at__isnull=False)
        if not self.drain_requested.is_set() and asked.exists():
            self.drain_requested.set()

    def _heartbeat(self, held: Iterable[Claim]) -> None:
        if self.stopping.is_set():
            # The worker is signing off, and a heartbeat would report it as alive.
            return
        off = clock.measure()
        if abs(off) > clock.JUMP_SECONDS:
            log.warning("leases.clock_jumped", seconds=off)
        doing = [str(claim) for claim in held]
        Worker.objects.filter(pk=self.worker.pk).update(heartbeat_at=clock.now(), doing=doing, stopped_at=None)

    def _interval(self) -> float:
        return settings.ADE_LEASE_SECONDS / RENEWALS_PER_LEASE


def look(held: Iterable[Claim]) -> None:
    """Find out which claims have a cancel request, and which now belong to another claim."""
    for ours in by_kind(held):
        states = ours[0].states
        columns = ["pk", "lease_owner", "claim_token"]
        cancels = any(field.name == "cancel_requested_at" for field in states.model._meta.fields)
        rows = states.rows.filter(pk__in=[claim.id for claim in ours])
        found = {id: row for id, *row in rows.values_list(*columns, *(["cancel_requested_at"] if cancels else []))}
        # Compare claim by claim: this worker may have claimed a row again while a thread still works on the lost claim.
        for claim in ours:
            owner, token, *asked = found.get(claim.id, (None, None))
            if any(asked):
                claim.cancel_requested.set()
            if (owner, token) != (claim.holder.owner, claim.holder.token):
                claim.lost.set()
