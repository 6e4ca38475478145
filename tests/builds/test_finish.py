import pytest

from builds import lifecycle
from tests.factories import BuildFactory, and_told, claim_of, columns_of, events_of, told

pytestmark = pytest.mark.django_db


@pytest.fixture
def building():
    return BuildFactory(status="building")


FINISHES = {
    "succeed": lambda claim: lifecycle.succeed(claim),
    "fail": lambda claim: lifecycle.fail(claim, "BUILD_FAILED", "no such package"),
    "stop": lambda claim: lifecycle.stop(claim),
}


def test_a_build_becomes_ready_with_its_lock_and_size(building):
    assert lifecycle.succeed(claim_of(building), lock="pypdf==5.0 --hash=sha256:0", size_bytes=12)

    building.refresh_from_db()
    assert (building.status, building.lock, building.size_bytes) == ("ready", "pypdf==5.0 --hash=sha256:0", 12)
    assert building.lease_owner is None
    event = events_of(building).last()
    assert (event.kind, event.from_status, event.to_status) == ("BUILD_READY", "building", "ready")


def test_a_build_fails_with_its_reason(building):
    assert lifecycle.fail(claim_of(building), "BUILD_FAILED", "no such package")

    building.refresh_from_db()
    assert (building.status, building.failure_type) == ("failed", "BUILD_FAILED")
    assert building.error_message == "no such package"
    event = events_of(building).last()
    assert (event.kind, event.to_status, event.message) == ("BUILD_FAILED", "failed", "no such package")


def test_a_build_that_was_asked_to_end_is_stopped(building):
    lifecycle.cancel(building, actor="olga")

    assert lifecycle.stop(claim_of(building))

    building.refresh_from_db()
    assert building.status == "cancelled"
    event = events_of(building).last()
    assert (event.kind, event.from_status, event.to_status) == ("BUILD_CANCELLED", "building", "cancelled")


def test_a_build_that_nobody_asked_to_end_is_not_stopped(building):
    before = columns_of(building)

    assert not lifecycle.stop(claim_of(building))

    assert columns_of(building) == before


@pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES)
@pytest.mark.parametrize("status", ["queued", "ready", "failed", "cancelled"])
def test_a_build_that_is_not_being_made_cannot_be_finished(finish, status):
    build = BuildFactory(status=status)
    before = columns_of(build)

    assert not finish(claim_of(build, owner="w9"))

    assert columns_of(build) == and_told(before, build, None)
    assert "LATE_WRITE_REFUSED" in told(build)


@pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES)
@pytest.mark.parametrize("stale", [{"owner": "w2@here:102:boot2"}, {"token": 2}])
def test_nobody_but_its_holder_finishes_a_build(building, finish, stale):
    before = columns_of(building)

    assert not finish(claim_of(building, **stale))

    assert columns_of(building) == and_told(before, building, None)
    assert told(building)[-1] == "LATE_WRITE_REFUSED"
