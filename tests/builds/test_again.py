import pytest

from builds import lifecycle
from tests.factories import BuildFactory, age, claim_of, columns_of, events_of, write
from work import clock

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_build_that_came_to_nothing_is_queued_again(status):
    build = age(BuildFactory(status=status), 3600)
    asked_at = clock.now()

    assert lifecycle.again(build.pk, actor="olga")

    build.refresh_from_db()
    assert (build.status, build.failure_type, build.error_message) == ("queued", "", "")
    assert (build.started_at, build.finished_at) == (None, None)
    assert build.queued_at >= asked_at
    event = events_of(build).last()
    assert (event.kind, event.from_status, event.to_status) == ("BUILD_QUEUED_AGAIN", status, "queued")
    assert event.actor == "olga"


def test_a_build_begins_with_a_clean_sheet(w1):
    build = BuildFactory(status="building")
    lifecycle.cancel(build, actor="olga")
    write(build, losses=2)
    lifecycle.stop(claim_of(build))

    lifecycle.again(build.pk, actor="olga")

    build.refresh_from_db()
    assert (build.losses, build.cancel_requested_at, build.cancel_requested_by) == (0, None, "")
    assert lifecycle.succeed(lifecycle.claim_next_build(w1))


@pytest.mark.parametrize("status", ["queued", "building", "ready"])
def test_any_other_build_stays_as_it_is(status):
    build = BuildFactory(status=status)
    before = columns_of(build)

    assert not lifecycle.again(build.pk, actor="olga")

    assert columns_of(build) == before


def test_a_build_that_is_gone_is_not_built_again():
    assert not lifecycle.again(2**40, actor="olga")
