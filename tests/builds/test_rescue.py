import pytest

from builds import lifecycle
from builds.lifecycle import LOSSES
from builds.models import Build
from tests.factories import BuildFactory, age, claim_of, columns_of, expire_lease, told, write
from work import clock, recovery
from work.work_types import work_type_named

pytestmark = pytest.mark.django_db


@pytest.fixture
def kind():
    return work_type_named("build")


def test_a_build_whose_worker_is_lost_goes_back_to_the_queue(kind, w2):
    build = expire_lease(BuildFactory(status="building"))

    assert recovery.rescue_expired([kind], w2) == 1

    build.refresh_from_db()
    assert (build.status, build.losses, build.failure_type) == ("queued", 1, "")
    assert (build.lease_owner, build.lease_expires_at, build.started_at) == (None, None, None)
    assert told(build)[-2:] == ["BUILD_RELEASED", "RECOVERED"]


def test_a_build_that_went_back_is_claimed_again_and_its_first_worker_refused(kind, w1, w2):
    build = expire_lease(BuildFactory(status="building", owner=w1))
    first = claim_of(build)
    recovery.rescue_expired([kind], w2)

    second = lifecycle.claim_next_build(w1)

    assert not lifecycle.succeed(first)
    assert lifecycle.succeed(second)
    assert told(build).count("LATE_WRITE_REFUSED") == 1


def test_a_build_that_costs_too_many_workers_fails(kind, w1, w2):
    BuildFactory()

    for _ in range(LOSSES):
        assert lifecycle.claim_next_build(w1)
        expire_lease(Build.objects.get())
        recovery.rescue_expired([kind], w2)

    build = Build.objects.get()
    assert (build.status, build.failure_type) == ("failed", "PROCESS_TERMINATED")
    assert build.error_message == f"{recovery.EXPIRED}; {LOSSES} workers were lost while building it"
    assert build.claim_token == LOSSES
    assert told(build)[-2:] == ["BUILD_FAILED", "RECOVERED"]


def test_a_build_over_its_budget_has_timed_out(kind, settings, w2):
    build = age(BuildFactory(status="building"), settings.ADE_BUILD_TIMEOUT + settings.ADE_LEASE_SECONDS + 1)
    write(build, lease_expires_at=clock.now().replace(year=2100))

    assert recovery.rescue_expired([kind], w2) == 1

    build.refresh_from_db()
    assert (build.status, build.failure_type, build.losses) == ("failed", "TIMED_OUT", 0)


def test_a_build_within_its_budget_goes_on(kind, settings, w2):
    build = age(BuildFactory(status="building"), settings.ADE_BUILD_TIMEOUT)
    write(build, lease_expires_at=clock.now().replace(year=2100))

    assert recovery.rescue_expired([kind], w2) == 0


def test_an_accepted_cancel_is_honoured(kind, w2):
    build = expire_lease(BuildFactory(status="building"))
    lifecycle.cancel(build, actor="olga")

    recovery.rescue_expired([kind], w2)

    build.refresh_from_db()
    assert (build.status, build.failure_type) == ("cancelled", "")
    assert told(build)[-2:] == ["BUILD_CANCELLED", "RECOVERED"]


@pytest.mark.parametrize("status", ["queued", "ready", "failed", "cancelled"])
def test_a_build_that_nobody_holds_is_left_alone(kind, status, w2):
    build = age(BuildFactory(status=status), 86400)
    before = columns_of(build)

    assert recovery.rescue_expired([kind], w2) == 0

    assert columns_of(build) == before


def test_a_worker_that_is_told_to_stop_is_no_loss(kind, w1):
    build = write(BuildFactory(status="building"), losses=LOSSES - 1)

    assert recovery.release(kind, claim_of(build), w1)

    build.refresh_from_db()
    assert (build.status, build.losses) == ("queued", LOSSES - 1)
