import pytest

from builds import lifecycle
from runs import lifecycle as runs
from tests.factories import BuildFactory, RunFactory, claim_of, columns_of, events_of, expire_lease, told
from work import recovery
from work.work_types import work_type_named

pytestmark = pytest.mark.django_db


def test_a_queued_build_is_cancelled_at_once():
    build = BuildFactory()

    assert lifecycle.cancel(build, actor="olga", reason="wrong package") == "cancelled"

    build.refresh_from_db()
    assert (build.status, build.started_at) == ("cancelled", None)
    event = events_of(build).last()
    assert (event.kind, event.from_status, event.to_status) == ("BUILD_CANCELLED", "queued", "cancelled")
    assert (event.actor, event.message) == ("olga", "wrong package")


def test_the_holder_of_a_build_is_asked():
    build = BuildFactory(status="building")

    assert lifecycle.cancel(build, actor="olga") == "building"

    build.refresh_from_db()
    assert (build.status, build.cancel_requested_by) == ("building", "olga")
    assert told(build)[-1] == "BUILD_CANCEL_REQUESTED"


def test_the_second_request_changes_nothing():
    build = BuildFactory(status="building")
    lifecycle.cancel(build, actor="olga")
    before = columns_of(build)

    assert lifecycle.cancel(build, actor="ravi") == "building"

    assert columns_of(build) == before


@pytest.mark.parametrize("status", ["ready", "failed", "cancelled"])
def test_an_ended_build_answers_its_status_and_stays_as_it_is(status):
    build = BuildFactory(status=status)
    before = columns_of(build)

    assert lifecycle.cancel(build, actor="olga") == status

    assert columns_of(build) == before


@pytest.mark.parametrize(
    "finish", [lifecycle.succeed, lambda claim: lifecycle.fail(claim, "BUILD_FAILED", "no")], ids=["succeed", "fail"]
)
def test_a_finish_after_an_accepted_cancel_ends_cancelled(finish):
    build = BuildFactory(status="building")
    claim = claim_of(build)
    lifecycle.cancel(build, actor="olga")

    assert not finish(claim)

    build.refresh_from_db()
    assert (build.status, build.failure_type, build.error_message) == ("cancelled", "", "")
    assert told(build)[-2:] == ["BUILD_CANCEL_REQUESTED", "BUILD_CANCELLED"]


def test_an_accepted_cancel_binds_when_the_worker_is_lost(w2):
    build = expire_lease(BuildFactory(status="building"))
    lifecycle.cancel(build, actor="olga")

    recovery.rescue_expired([work_type_named("build")], w2)

    build.refresh_from_db()
    assert (build.status, build.losses) == ("cancelled", 0)


def test_the_runs_of_a_cancelled_build_fail_and_say_why(w1):
    build = BuildFactory()
    run = RunFactory(configuration=build.configuration, build=build)

    lifecycle.cancel(build, actor="olga")
    runs.apply_build_results(w1)

    run.refresh_from_db()
    assert (run.status, run.failure_type) == ("failed", "BUILD_FAILED")
    assert run.error_message == f"Build {build.pk} was cancelled."
