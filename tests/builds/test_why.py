import random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from builds import lifecycle
from builds.models import Build
from builds.why import explain
from tests.factories import BuildFactory, age, force_status, write
from work import boots, clock

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker():
    return boots.register("w1", "boot1", {"build": 1})


def gate(build, name):
    (found,) = (gate for gate in explain(build).gates if gate.name == name)
    return found


def held_by(build):
    return [gate.name for gate in explain(build).holding]


def test_what_nothing_holds_is_claimed_at_once(worker):
    explanation = explain(build := BuildFactory())

    assert [gate.name for gate in explanation.gates] == ["worker", "capacity"]
    assert explanation.holding == []
    assert explanation.message.endswith("nothing blocks it: a worker will claim it shortly.")
    assert lifecycle.claim_next_build(worker.owner).id == build.pk


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("building", "is building, claimed by w1@here:101:boot1 at "),
        ("ready", "ended at "),
        ("failed", "ended at "),
        ("cancelled", "ended at "),
    ],
)
def test_a_build_that_is_not_queued_does_not_wait(status, said):
    build = BuildFactory(status=status)

    explanation = explain(build)

    assert (explanation.status, explanation.outcome, explanation.gates) == (status, status, ())
    assert explanation.message.startswith(f"build {build.pk} {said}")


def test_a_build_that_is_gone(worker):
    with pytest.raises(Build.DoesNotExist):
        explain(Build(pk=999_999))


def test_a_worker_without_a_slot_for_builds_is_none():
    boots.register("w1", "boot1", {"run": 2})

    assert held_by(build := BuildFactory()) == ["worker"]
    assert gate(build, "worker").message == "1 worker is alive, but none takes builds."


def test_the_only_slot_is_busy(worker):
    building = BuildFactory(status="building", owner=worker.owner)
    first, second = BuildFactory(), BuildFactory()

    found = gate(second, "capacity")

    assert held_by(first) == held_by(second) == ["capacity"]
    assert (found.holder, found.since) == (f"build {building.pk}", building.started_at)
    assert found.message.startswith(f"The only thread is busy: build {building.pk} claimed by {worker.owner} at ")
    assert found.message.endswith("; 1 build is ahead of it.")


def test_of_many_that_are_at_work_some_are_named():
    owners = [boots.register("w", f"boot{n}", {"build": 1}).owner for n in range(7)]
    for owner in owners:
        BuildFactory(status="building", owner=owner)

    message = gate(BuildFactory(), "capacity").message

    assert message.startswith("All 7 threads are busy: ")
    assert message.count(" by w@") == 5
    assert ", and 2 more; no build is ahead of it." in message


def test_what_was_queued_again_stands_where_it_stands_for_a_claim(worker):
    again = age(BuildFactory(status="failed"), 60)
    first = BuildFactory()
    assert lifecycle.again(again.pk, actor="olga")

    assert [gate(build, "capacity").data["ahead"] for build in (first, again)] == [0, 1]
    assert lifecycle.claim_next_build(worker.owner).id == first.pk


def test_of_the_same_moment_the_first_is_ahead(worker):
    now = clock.now()
    builds = [write(BuildFactory(), queued_at=now) for _ in range(3)]

    assert [gate(build, "capacity").data["ahead"] for build in builds] == [0, 1, 2]


def test_there_are_gates_exactly_for_what_a_claim_would_take():
    builds, chance = [BuildFactory() for _ in range(5)], random.Random(1)

    for _ in range(10):
        for build in builds:
            force_status(build, chance.choice(Build.Status.values), queued_at=clock.now())
        claimable = list(Build.objects.claimable(clock.now()).values_list("pk", flat=True))

        explained = [explain(build) for build in builds]
        waiting = {each.id: each.gates[1].data["ahead"] for each in explained if each.gates}
        assert waiting == {id: place for place, id in enumerate(claimable)}


def test_it_asks_as_often_whatever_waits(worker):
    BuildFactory(status="building", owner=worker.owner)
    explain(build := BuildFactory())
    with CaptureQueriesContext(connection) as few:
        explain(build)
    for _ in range(5):
        build = BuildFactory()

    with CaptureQueriesContext(connection) as many:
        explain(build)

    assert len(many) == len(few) <= 7


def test_as_json_it_has_what_is_documented(worker):
    build = BuildFactory()

    told = explain(build).to_json()

    assert {key: told[key] for key in ("kind", "id", "status", "outcome", "held_by")} == {
        "kind": "build",
        "id": build.pk,
        "status": "queued",
        "outcome": "queued",
        "held_by": [],
    }
    assert [list(gate) for gate in told["gates"]] == [["name", "holds", "message", "holder", "since", "data"]] * 2
    assert told["gates"][1]["data"] == {"slots": 1, "free": 1, "ahead": 0, "at_work": [], "at_work_of_others": 0}
