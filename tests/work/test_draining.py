from datetime import timedelta

import pytest

from tests.factories import write
from work import boots, clock, draining, health
from work.claims import Holdings
from work.leases import LeaseRenewer
from work.models import Event, Worker
from work.operations.outcomes import Outcome

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker(db):
    return boots.register("w1", "boot1", {"errand": 2})


def silent(worker, settings):
    return write(worker, heartbeat_at=clock.now() - timedelta(seconds=2 * settings.ADE_LEASE_SECONDS))


def told_of(worker):
    rows = Event.objects.filter(subject_kind="worker", subject_id=worker.pk).order_by("sequence")
    return list(rows.values_list("kind", "actor", "message"))[1:]


def keeper_of(worker):
    return LeaseRenewer(worker, Holdings(), None)


def test_the_request_is_in_the_row_and_in_the_history(worker):
    assert draining.drain(worker, actor="olga", reason="a new version") == Outcome.DRAINING

    assert (worker.drain_requested_by, worker.drain_reason) == ("olga", "a new version")
    assert (worker.state, worker.is_draining) == ("alive", True)
    assert told_of(worker) == [("WORKER_DRAIN_REQUESTED", "olga", "a new version")]
    assert draining.describe_outcome(worker, Outcome.DRAINING).startswith(
        f"{worker.owner} is draining: it claims nothing more"
    )


def test_who_asks_second_is_told_who_was_first(worker):
    draining.drain(worker, actor="ada", reason="first")
    since = worker.drain_requested_at

    assert draining.drain(Worker.objects.get(), actor="olga", reason="second") == Outcome.WAS_DRAINING

    worker.refresh_from_db()
    assert (worker.drain_requested_at, worker.drain_reason) == (since, "first")
    assert len(told_of(worker)) == 1
    said = f"{worker.owner} is already draining: ada requested it at {since:%Y-%m-%d %H:%M:%S} UTC."
    assert draining.describe_outcome(worker, Outcome.WAS_DRAINING) == said


def test_a_worker_that_has_stopped_cannot_drain(worker):
    stale = Worker.objects.get()
    boots.sign_off(worker)

    assert draining.drain(stale, actor="olga") == Outcome.NOT_ALIVE

    assert stale.drain_requested_at is None
    assert "cannot drain: it stopped at" in draining.describe_outcome(stale, Outcome.NOT_ALIVE)
    assert [kind for kind, *_ in told_of(worker)] == ["WORKER_STOPPED"]


def test_a_worker_that_is_silent_cannot_drain(worker, settings):
    silent(worker, settings)

    assert draining.drain(worker, actor="olga") == Outcome.NOT_ALIVE

    assert "cannot drain: it has sent no heartbeat since" in draining.describe_outcome(worker, Outcome.NOT_ALIVE)
    assert told_of(worker) == []


def test_one_that_drained_and_is_gone_cannot_drain_again(worker):
    draining.drain(worker, actor="ada")
    boots.sign_off(worker)

    assert draining.drain(Worker.objects.get(), actor="olga") == Outcome.NOT_ALIVE
    assert not Worker.objects.get().is_draining


def test_the_next_boot_takes_up_work(worker):
    draining.drain(worker, actor="olga")
    boots.sign_off(worker)

    again = boots.register("w1", "boot2", {"errand": 2})

    assert list(Worker.objects.available()) == [again]


def test_whoever_drains_is_alive_and_has_no_slots(worker):
    other = boots.register("w2", "boot2", {"errand": 1})
    draining.drain(worker, actor="olga")

    assert list(Worker.objects.alive().order_by("pk")) == [worker, other]
    assert list(Worker.objects.available()) == [other]
    assert (health.concurrency().workers, health.concurrency().of_kinds) == (2, {"errand": 1})


def test_a_long_name_is_cut_to_what_its_column_has_room_for(worker):
    draining.drain(worker, actor="o" * 300)

    assert worker.drain_requested_by == "o" * 200


def test_its_keeper_of_leases_finds_the_request_and_no_other(worker):
    other = boots.register("w2", "boot2", {})
    draining.drain(other, actor="olga")
    keeper, keeper_of_other = keeper_of(worker), keeper_of(other)

    for each in (keeper, keeper_of_other):
        each.renew_at = float("inf")
        each.run_once()

    assert not keeper.drain_requested.is_set()
    assert keeper_of_other.drain_requested.is_set()


@pytest.mark.parametrize(
    ("make", "outcome"),
    [
        (lambda worker, settings: worker, Outcome.DRAINING),
        (lambda worker, settings: draining.drain(worker, actor="ada"), Outcome.WAS_DRAINING),
        (silent, Outcome.NOT_ALIVE),
        (lambda worker, settings: boots.sign_off(worker), Outcome.NOT_ALIVE),
    ],
)
def test_what_is_foreseen_is_what_becomes_of_it(worker, settings, make, outcome):
    make(worker, settings)
    worker.refresh_from_db()

    assert draining.DRAIN.predict(worker) == outcome
    assert draining.drain(worker, actor="olga") == outcome
