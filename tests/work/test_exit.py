"""How soon a worker ends: ADE_EXIT_SECONDS after its drain or a second signal, whatever hangs."""

from threading import Event as Flag

import pytest

from config.environment import SETTINGS
from tests.factories import ErrandFactory, claim_of
from tests.processes import START_SECONDS
from work import worker
from work.claims import CANCEL_REQUESTED, WORKER_STOPPING

pytestmark = [pytest.mark.django_db, pytest.mark.once]


class FakeChild:
    def __init__(self):
        self.stopped = []

    def trust_until(self, moment):
        pass

    def stop(self, reason, grace_seconds):
        self.stopped.append((reason, grace_seconds))


@pytest.fixture
def forced(monkeypatch):
    ended = Flag()
    monkeypatch.setattr(worker.os, "_exit", lambda code: ended.set())
    return ended


def test_a_claim_whose_worker_ends_ends_its_child_once_and_soon():
    claim, first, second = claim_of(ErrandFactory(status="doing")), FakeChild(), FakeChild()
    claim.end(1.0)
    claim.take_charge_of(first)

    claim.end(1.0)
    claim.end(1.0)
    claim.take_charge_of(second)
    claim.end(1.0)

    assert claim.stopping.is_set()
    assert first.stopped == second.stopped == [(WORKER_STOPPING, 1.0)]


def test_a_child_whose_cancel_was_accepted_ends_for_that():
    claim, child = claim_of(ErrandFactory(status="doing")), FakeChild()
    claim.take_charge_of(child)
    claim.cancel_requested.set()

    claim.end(1.0)

    assert child.stopped == [(CANCEL_REQUESTED, 1.0)]


def test_a_process_ends_at_its_deadline_whatever_it_waits_for(forced):
    worker.Deadline(0.0)

    assert forced.wait(START_SECONDS)


def test_a_deadline_is_brought_forward_and_never_put_off(forced):
    deadline = worker.Deadline(600.0)

    deadline.bring_forward(0.0)
    deadline.bring_forward(600.0)

    assert forced.wait(START_SECONDS)


def test_children_are_killed_before_the_time_of_their_slots_is_over():
    (setting,) = [each for each in SETTINGS if each.name == "ADE_EXIT_SECONDS"]

    assert setting.default == "3"
    assert int(setting.default) * worker.SHARE_OF_THREADS > worker.GRACE_SECONDS
