import pytest

from builds.models import Build
from tests.breaches import breaches, much_has_happened, plant, plant_copy, unguard
from tests.factories import BuildFactory
from work import clock
from work.models import Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("history_is_open")]


@pytest.fixture(autouse=True)
def world(db):
    much_has_happened()


def event_of(build, kind):
    return Event.objects.get(subject_kind="build", subject_id=build.pk, kind=kind)


def test_two_builds_of_one_fingerprint(build):
    unguard(Build)
    plant_copy(build, id=999_999)

    assert breaches("a_fingerprint_has_one_build") == [("build", 999_999)]


def test_a_build_without_a_fingerprint(build):
    unguard(Build)
    plant(build, fingerprint="")

    assert breaches("a_fingerprint_has_one_build") == [("build", build.pk)]


def test_a_build_that_was_started_twice_under_one_claim(build):
    plant_copy(event_of(build, "BUILD_STARTED"), id=999_999, sequence=9)

    assert breaches("a_build_is_made_once_for_each_time_it_was_queued") == [("build", build.pk)]


def test_a_build_that_was_started_again_without_being_queued(build):
    plant_copy(event_of(build, "BUILD_STARTED"), id=999_999, sequence=9, claim_token=2)
    plant(build, claim_token=2)

    assert breaches("a_build_is_made_once_for_each_time_it_was_queued") == [("build", build.pk)]


def test_a_claim_without_a_start(build):
    event_of(build, "BUILD_STARTED").delete()

    assert breaches("a_build_is_made_once_for_each_time_it_was_queued") == [("build", build.pk)]


def test_something_after_ready(build):
    plant_copy(event_of(build, "BUILD_QUEUED"), id=999_999, sequence=9, from_status="ready")

    assert breaches("a_ready_build_stays_ready") == [("build", build.pk)]


@pytest.mark.parametrize("status", ["ready", "failed"])
def test_a_cancel_that_was_accepted_and_forgotten(status):
    build = BuildFactory(status=status)
    plant(build, cancel_requested_at=clock.now())

    assert breaches("an_accepted_cancel_of_a_build_binds") == [("build", build.pk)]
