from threading import Event as Flag

import pytest

from tests.factories import ErrandFactory, claim_of
from tests.stepping import until
from tests.testwork import lifecycle as errands
from work import lifecycle
from work.boots import register
from work.claims import Holdings
from work.leases import LeaseRenewer

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_claim_that_is_cancelled_before_it_is_among_those_that_are_held_hears_of_it_soon(settings):
    """The wakeup arrives before the claim is registered, and neither a tick nor a renewal is near."""
    settings.ADE_TICK_SECONDS = settings.ADE_LEASE_SECONDS = 600
    claim = claim_of(ErrandFactory(status="doing"))
    holdings, stopping, looked = Holdings(), Flag(), Flag()
    keeper = LeaseRenewer(register("w1", "boot1", {}), holdings, stopping)
    run_once = keeper.run_once

    def run_and_tell():
        run_once()
        looked.set()

    keeper.run_once = run_and_tell
    keeper.start()
    assert looked.wait(300)
    looked.clear()

    assert lifecycle.cancel(errands.ERRAND, claim.id, actor="olga") == "doing"
    keeper.woken.set()
    assert looked.wait(300)
    try:
        with holdings.holding(claim):
            assert until(claim.cancel_requested.is_set, seconds=10)
    finally:
        stopping.set()
        keeper.woken.set()
        keeper.join(10)
