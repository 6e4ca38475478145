import pytest

from runs import lifecycle, queue
from runs.models import Queue, Run
from runs.why import explain
from tests.factories import RunFactory, events_of
from work import boots

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker():
    return boots.register("w1", "boot1", {"run": 2})


def test_a_paused_queue_claims_no_run_and_takes_what_is_submitted(configuration, build, document, w1):
    assert queue.pause(actor="olga", reason="a disk is full")

    run = lifecycle.submit(configuration, document, actor="ravi")

    assert lifecycle.claim_next_run(w1) is None
    assert queue.resume(actor="olga")
    assert lifecycle.claim_next_run(w1).id == run.pk


def test_what_is_running_goes_on(w1):
    RunFactory()
    claim = lifecycle.claim_next_run(w1)
    queue.pause(actor="olga")

    assert lifecycle.succeed(claim)


def test_a_pause_and_its_end_are_told():
    queue.pause(actor="olga", reason="a disk is full")
    queue.resume(actor="ravi")

    told = events_of(Queue.objects.get()).values_list("kind", "actor", "message")
    assert list(told) == [
        ("QUEUE_OPENED", "olga", ""),
        ("QUEUE_PAUSED", "olga", "a disk is full"),
        ("QUEUE_RESUMED", "ravi", ""),
    ]


def test_the_second_pause_and_the_second_end_change_nothing():
    assert not queue.resume(actor="olga")
    assert queue.pause(actor="olga", reason="first")
    assert not queue.pause(actor="ravi", reason="second")
    assert (queue.current_row().paused_by, queue.current_row().pause_reason) == ("olga", "first")
    assert queue.resume(actor="ravi")
    assert not queue.resume(actor="ravi")


def test_why_says_first_who_has_paused_it_and_for_what(worker):
    run = RunFactory()
    queue.pause(actor="olga", reason="a disk is full")

    explanation = explain(run)

    gate = explanation.gates[0]
    assert (gate.name, gate.holds, gate.holder) == ("paused", True, "olga")
    assert gate.since == queue.current_row().paused_at
    assert gate.message.startswith("The run queue was paused by olga at ")
    assert gate.message.endswith(": a disk is full")
    assert [each.name for each in explanation.holding] == ["paused"]


def test_a_pause_leaves_the_places_in_the_queue_as_they_are(worker):
    first, second = RunFactory(), RunFactory()
    queue.pause(actor="olga")

    ahead = [gate.data["ahead"] for run in (first, second) for gate in explain(run).gates if gate.name == "capacity"]
    assert ahead == [0, 1]


def test_the_state_tells_of_others_only_how_many(settings, workspace, olga, worker):
    settings.ADE_QUEUE_SIZE = 5
    mine = RunFactory(configuration__workspace=workspace)
    RunFactory(status="running")
    RunFactory()

    state = queue.state(olga)

    assert (state.total.queued, state.total.running) == (2, 1)
    assert {id: vars(depth) for id, depth in state.own.items()} == {mine.workspace_id: {"queued": 1, "running": 0}}
    assert (state.limit, state.free, state.slots) == (5, 2, 2)
    assert Run.objects.count() == 3
