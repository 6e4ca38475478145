"""Buttons pressed at the moment when a worker claims or finishes a run: the page must report the real outcome."""

import pytest

from runs import gates, lifecycle
from runs.models import Run
from tests.admin.conftest import confirm, press, rehearse  # noqa: F401 - fixtures
from tests.factories import W1, DocumentFactory, RunFactory, claim_of, told
from tests.races.invariants import assert_all_hold
from work.models import Event

# The number of repetitions of each race.
ROUNDS = [pytest.param(10, marks=pytest.mark.long), pytest.param(100, marks=pytest.mark.soak)]

CANCELLED, ASKED = "Cancelled 1 run.", "Asked 1 that is running to stop."
TOO_LATE = "Skipped 1 that had already finished."
WAYS = ["action of the admin", "button of the admin", "page of the run"]


@pytest.fixture
def pressing(client, olga, rehearse, confirm, press):  # noqa: F811 - fixtures
    """Return a function that prepares a button press; the prepared function presses it and returns the messages."""

    def pressing(way, verb, run):
        client.force_login(olga)
        rehearsal = rehearse(olga, verb, run) if way == "action of the admin" else None

        def act():
            if rehearsal:
                page = confirm(rehearsal)
            elif way == "button of the admin":
                page = press(olga, verb, run, follow=True)
            else:
                page = client.post(f"/runs/{run.pk}/{verb}/", follow=True)
            assert page.status_code == 200
            return [str(message) for message in page.context["messages"]]

        return act

    return pressing


@pytest.fixture
def run_of(configuration, build, workspace):
    def run_of(status):
        document = DocumentFactory(workspace=workspace, status="processed")
        return RunFactory(configuration=configuration, build=build, input_document=document, status=status, owner=W1)

    return run_of


def claim(run):
    return lifecycle.claim_next_run(W1)


def succeed(run):
    return lifecycle.succeed(claim_of(run))


def fail(run):
    return lifecycle.fail(claim_of(run), "ENGINE_FAILED", "exit code 1")


def claim_and_succeed(run):
    claim = lifecycle.claim_next_run(W1)
    return claim is not None and lifecycle.succeed(claim)


def assert_cancel_was_told_as_it_is(said, run):
    """Check the messages of a cancel against the final status and the events of the run."""
    status, events = Run.objects.get(pk=run.pk).status, told(run)
    by_olga = set(
        Event.objects.filter(subject_kind="run", subject_id=run.pk, actor="olga").values_list("kind", flat=True)
    )
    if said == [CANCELLED]:
        # The events are by Olga, or by a worker that obeyed before the page was rendered.
        assert (status, events[-1]) == ("cancelled", "RUN_CANCELLED")
        assert by_olga in ({"RUN_CANCELLED"}, {"RUN_CANCEL_REQUESTED"})
    elif said == [ASKED]:
        assert (status, by_olga) == ("cancelled", {"RUN_CANCEL_REQUESTED"})
        assert events[-2:] == ["RUN_CANCEL_REQUESTED", "RUN_CANCELLED"]
    else:
        assert said == [TOO_LATE]
        assert status in ("succeeded", "failed")
        assert not by_olga


def see_through(run):
    """Finish the run as its worker would, if it is running."""
    if Run.objects.get(pk=run.pk).status == "running":
        lifecycle.succeed(claim_of(Run.objects.get(pk=run.pk)))


# The status before, the action of the worker, and the message if the button is first and if the worker is first.
CASES = [
    ("queued", claim, CANCELLED, ASKED),
    ("queued", claim_and_succeed, CANCELLED, TOO_LATE),
    ("running", succeed, ASKED, TOO_LATE),
    ("running", fail, ASKED, TOO_LATE),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("status", "work", "said", "_"), CASES)
def test_a_cancel_that_is_first_binds_the_worker(threads, pressing, run_of, way, status, work, said, _):
    run = run_of(status)
    cancel = pressing(way, "cancel", run)

    one = threads.hold(cancel)
    two = threads.start(lambda: work(run))
    two.waits()

    assert one.commit() == [said]
    # A cancelled run cannot be claimed, and one that was asked to stop cannot succeed.
    assert not two.answer()
    see_through(run)
    assert_cancel_was_told_as_it_is([said], run)
    assert_all_hold()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("status", "work", "_", "said"), CASES)
def test_a_worker_that_is_first_is_told_of(threads, pressing, run_of, way, status, work, _, said):
    run = run_of(status)
    cancel = pressing(way, "cancel", run)

    one = threads.hold(lambda: work(run))
    two = threads.start(cancel)
    assert two.waits()

    assert one.commit()
    assert two.answer() == [said]
    see_through(run)
    assert_cancel_was_told_as_it_is([said], run)
    assert_all_hold()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("status", "work", "_", "said"), CASES)
def test_what_happens_after_a_row_was_read_is_told(threads, step_at, pressing, run_of, way, status, work, _, said):
    """A page that trusted its earlier read would report something else."""
    run = run_of(status)
    read = step_at("cancel.read")

    two = threads.start(pressing(way, "cancel", run))
    read.until_reached()
    assert work(run)
    read.go_on()

    assert two.answer() == [said]
    see_through(run)
    assert_cancel_was_told_as_it_is([said], run)
    assert_all_hold()


@pytest.mark.parametrize("way", WAYS)
def test_what_was_claimed_between_two_updates_is_asked_to_stop(threads, step_at, pressing, run_of, way):
    """The worker has claimed the row but not committed; afterwards it finishes what it was asked to stop."""
    run = run_of("queued")
    cancel, held = pressing(way, "cancel", run), step_at("run.claim.selected")

    one = threads.start(lambda: claim_and_succeed(run))
    held.until_reached()
    two = threads.start(cancel)
    two.waits()
    held.go_on()

    said, _ = two.answer(), one.answer()
    # Cancelled if the worker obeyed before the page was rendered.
    assert said in ([CANCELLED], [ASKED], [TOO_LATE])
    assert "RUN_STARTED" in told(run)
    see_through(run)
    assert_cancel_was_told_as_it_is(said, run)
    assert_all_hold()


# Run again


def said_of_again(way, run, new):
    if way == "page of the run":
        return [f"Started run {new.pk}, a repeat of run {run.pk}."]
    return ["Queued 1 run again.", f'New: <a href="/admin/runs/run/{new.pk}/change/">run {new.pk}</a>.']


def assert_again_was_told_as_it_is(said, way, run):
    """Check that there is one new run, and that it can be claimed after the old one has ended."""
    new = Run.objects.exclude(pk=run.pk).get(input_document=run.input_document_id)
    assert said == said_of_again(way, run, new)
    assert told(new)[0] == "RUN_QUEUED"
    gates.open_forgotten()
    assert lifecycle.claim_next_run(W1).id == new.pk
    assert lifecycle.succeed(claim_of(Run.objects.get(pk=new.pk)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(("status", "work"), [("queued", claim_and_succeed), ("running", fail), ("running", succeed)])
def test_run_again_while_the_old_one_ends(threads, pressing, run_of, way, is_first, status, work):
    run = run_of(status)
    acts = [pressing(way, "again", run), lambda: work(run)]

    one = threads.hold(acts[not is_first])
    two = threads.start(acts[is_first])
    two.waits()
    answers = [one.commit(), two.answer()]

    said, done = answers if is_first else answers[::-1]
    assert done is True
    assert_again_was_told_as_it_is(said, way, run)
    assert_all_hold()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_first", [True, False])
def test_run_again_while_the_queue_gets_a_place(threads, pressing, run_of, settings, way, is_first):
    settings.ADE_QUEUE_SIZE = 1
    run = run_of("running")
    acts = [pressing(way, "again", run), lambda: succeed(run)]

    one = threads.hold(acts[not is_first])
    two = threads.start(acts[is_first])
    two.waits()
    answers = [one.commit(), two.answer()]

    assert_place_was_told_as_it_is(answers[not is_first], way, run)


def assert_place_was_told_as_it_is(said, way, run):
    new = Run.objects.exclude(pk=run.pk).filter(input_document=run.input_document_id).first()
    if new:
        assert said == said_of_again(way, run, new)
    elif way == "page of the run":
        assert said == ["The queue is full: it has 1 of 1 runs and no room for 1 more. Submit again later."]
    else:
        assert said == ["Skipped 1 because the queue is full."]
    return new


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("status", "work"), [("queued", claim), ("queued", claim_and_succeed), ("running", fail), ("running", succeed)]
)
def test_many_cancels_at_the_same_moment(threads, pressing, run_of, way, status, work, rounds):
    seen = set()
    for _ in range(rounds):
        run = run_of(status)
        said, _ = threads.together([pressing(way, "cancel", run), lambda run=run: work(run)])
        see_through(run)
        assert_cancel_was_told_as_it_is(said, run)
        seen.add(said[0])
    assert seen <= {CANCELLED, ASKED, TOO_LATE}
    assert_all_hold()


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("status", "work"), [("queued", claim_and_succeed), ("running", fail), ("running", succeed)])
def test_many_times_run_again_at_the_same_moment(threads, pressing, run_of, way, status, work, rounds):
    for _ in range(rounds):
        run = run_of(status)
        said, done = threads.together([pressing(way, "again", run), lambda run=run: work(run)])
        assert done is True
        assert_again_was_told_as_it_is(said, way, run)
    assert_all_hold()


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("way", WAYS)
def test_many_times_run_again_for_the_last_place(threads, pressing, run_of, settings, way, rounds):
    settings.ADE_QUEUE_SIZE = 1
    for _ in range(rounds):
        run = run_of("running")
        said, done = threads.together([pressing(way, "again", run), lambda run=run: succeed(run)])
        assert done is True
        if new := assert_place_was_told_as_it_is(said, way, run):
            lifecycle.cancel(new, actor="test")
    assert_all_hold()
