import time
from datetime import timedelta

import pytest

from tests.factories import ErrandFactory, StageFactory, claim_of, columns_of, expire_lease, told
from tests.testwork import lifecycle as errands
from work import clock, lifecycle

pytestmark = pytest.mark.django_db


@pytest.fixture
def held(w1):
    return [ErrandFactory(status="doing", owner=w1) for _ in range(2)]


def test_all_leases_of_a_worker_are_extended_and_nothing_else(held, w1, settings):
    before = [columns_of(row) for row in held]
    earliest = clock.now()

    assert lifecycle.renew(w1, [claim_of(row) for row in held]) == []

    lease = timedelta(seconds=settings.ADE_LEASE_SECONDS)
    for row, was in zip(held, before, strict=True):
        now = columns_of(row)
        assert earliest + lease <= now["lease_expires_at"] <= clock.now() + lease
        assert {**now, "lease_expires_at": None} == {**was, "lease_expires_at": None}


def test_claims_of_several_kinds_are_renewed_together(w1):
    errand, stage = ErrandFactory(status="doing", owner=w1), StageFactory(status="RUNNING", owner=w1)
    expire_lease(errand)
    expire_lease(stage)

    assert lifecycle.renew(w1, [claim_of(errand), claim_of(stage)]) == []

    for row in (errand, stage):
        row.refresh_from_db()
        assert row.lease_expires_at > clock.now()


def test_nothing_held_is_nothing_renewed(w1):
    assert lifecycle.renew(w1, []) == []


def test_a_renewed_claim_is_trusted_from_the_start_of_the_attempt(held, w1, settings):
    claim = claim_of(held[0])
    claim.trusted_until = 0.0
    asked_at = time.monotonic()

    lifecycle.renew(w1, [claim])

    assert claim.is_trusted()
    assert asked_at < claim.trusted_until < time.monotonic() + settings.ADE_LEASE_SECONDS


def test_the_leases_of_others_are_not_touched(held, w1, w2):
    other = ErrandFactory(status="doing", owner=w2)
    before = columns_of(other)

    lifecycle.renew(w1, [claim_of(row) for row in held])

    assert columns_of(other) == before


def test_a_claim_that_somebody_else_has_is_reported(held, w1, w2):
    kept, taken = (claim_of(row) for row in held)
    lifecycle.move(errands.ERRAND, taken.id, "release")
    errands.claim_next(w2)
    before = columns_of(held[1])

    assert lifecycle.renew(w1, [kept, taken]) == [taken]

    assert (taken.lost.is_set(), taken.is_trusted(), taken.why_stop()) == (True, False, "lease_lost")
    assert (kept.lost.is_set(), kept.is_trusted()) == (False, True)
    assert columns_of(held[1])["lease_expires_at"] == before["lease_expires_at"]
    assert told(held[1])[-1] == "LATE_WRITE_REFUSED"


def test_a_claim_that_this_very_worker_made_again_is_another_one(held, w1):
    old = claim_of(held[0])
    lifecycle.move(errands.ERRAND, old.id, "release")
    new = errands.claim_next(w1)
    assert (new.id, new.holder.owner, new.holder.token) == (old.id, w1, 2)

    assert lifecycle.renew(w1, [old, new]) == [old]

    assert (old.lost.is_set(), new.lost.is_set()) == (True, False)


def test_a_row_that_is_gone_is_a_lost_claim(held, w1):
    claim = claim_of(held[0])
    held[0].delete()

    assert lifecycle.renew(w1, [claim]) == [claim]


def test_a_claim_that_its_own_worker_has_just_finished_is_no_late_write(held, w1):
    claim = claim_of(held[0])
    errands.succeed(claim, "done")

    lifecycle.renew(w1, [claim])

    assert "LATE_WRITE_REFUSED" not in told(held[0])


def test_an_expired_lease_that_nobody_has_taken_is_renewed(held, w1):
    claim = claim_of(expire_lease(held[0], 3600))

    assert lifecycle.renew(w1, [claim]) == []
