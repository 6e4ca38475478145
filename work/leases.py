"""The thread of a worker that renews its leases and heartbeat and looks for cancel and drain requests."""

import time
from collections.abc import Iterable
from threading import Event as Flag

import structlog
from django.conf import settings

from work import clock, lifecycle, outages
from work.claims import Claim, Holdings, by_kind
from work.models import Worker
from work.sql.contention import be_impatient
from work.threads import SteadyThread

# With three renewals per lease, two in a row may fail.
RENEWALS_PER_LEASE = 3
# How soon to look a second time after a wake-up. When the cancel was requested, the worker may have had the claim but
# not yet listed it in its holdings.
AGAIN_SECONDS = 1.0

log = structlog.get_logger(__name__)


class LeaseRenewer(SteadyThread):
    def __init__(self, worker: Worker, holdings: Holdings, stopping: Flag) -> None:
        super().__init__("leases", stopping)
        self.worker, self.holdings = worker, holdings
        self.woken = Flag()
        # Set when a person has asked this worker to drain.
        self.drain_requested = Flag()
        self.was_woken = False
        self.renew_at = 0.0

    def do_round(self) -> None:
        self.run_once()
        usual = min(settings.ADE_TICK_SECONDS, self._interval())
        self.was_woken = self.woken.wait(min(AGAIN_SECONDS, usual) if self.was_woken else usual)
        self.woken.clear()

    def run_once(self) -> None:
        held = list(self.holdings)
        row = Worker.objects.filter(pk=self.worker.pk)
        if time.monotonic() >= self.renew_at:
            began_at = time.monotonic()
            be_impatient()
            lifecycle.renew(self.worker.owner, held)
            # While the worker is signing off, a heartbeat would make it look alive again.
            if not self.stopping.is_set():
                off = clock.measure()
                if abs(off) > clock.JUMP_SECONDS:
                    log.warning("leases.clock_jumped", seconds=off)
                row.update(heartbeat_at=clock.now(), doing=[str(claim) for claim in held], stopped_at=None)
            self.renew_at = began_at + self._interval()
        check_claims(held)
        has_request = row.filter(drain_requested_at__isnull=False)
        if not self.drain_requested.is_set() and has_request.exists():
            self.drain_requested.set()
        outages.record_answer()

    def _interval(self) -> float:
        return settings.ADE_LEASE_SECONDS / RENEWALS_PER_LEASE


def check_claims(claims: Iterable[Claim]) -> None:
    """Set `cancel_requested` on claims with a cancel request, and `lost` on claims that no longer hold their row."""
    for held in by_kind(claims):
        states = held[0].states
        columns = ["pk", "lease_owner", "claim_token"]
        if any(field.name == "cancel_requested_at" for field in states.model._meta.fields):
            columns.append("cancel_requested_at")
        rows = states.rows.filter(pk__in=[claim.id for claim in held])
        values = {id: row for id, *row in rows.values_list(*columns)}
        # Compare each claim by itself. This worker may hold two claims on one row: a new claim, and a lost claim that a
        # thread is still working on.
        for claim in held:
            owner, token, *requests = values.get(claim.id, (None, None))
            if any(requests):
                claim.cancel_requested.set()
            if (owner, token) != (claim.holder.owner, claim.holder.token):
                claim.lost.set()
