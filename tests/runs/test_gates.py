from datetime import timedelta

import pytest

from builds import lifecycle as builds
from builds.models import Build
from runs import gates, lifecycle
from runs.models import Run
from tests.factories import BuildFactory, DocumentFactory, RunFactory, bring_to, claim_of, columns_of, told, write

pytestmark = pytest.mark.django_db


@pytest.fixture
def on_document(configuration, build, document):
    """Return a function that creates a run on the document, with the gate that a submission would set."""
    return lambda **values: RunFactory(configuration=configuration, input_document=document, **values)


def gate_of(run):
    return Run.objects.get(pk=run.pk).gate


@pytest.mark.parametrize(
    "leave",
    [
        lambda run: lifecycle.succeed(claim_of(run)),
        lambda run: lifecycle.fail(claim_of(run), "ENGINE_FAILED", "exit code 1"),
        lambda run: [lifecycle.cancel(run, actor="olga"), lifecycle.stop(claim_of(run))],
        lambda run: [lifecycle.cancel(run, actor="olga"), lifecycle.succeed(claim_of(run))],
    ],
    ids=["succeed", "fail", "stop", "succeed after a cancel"],
)
def test_when_a_run_leaves_the_next_of_its_document_comes_forward_and_no_other(on_document, leave):
    ahead, second, third = on_document(status="running"), on_document(), on_document()
    assert (second.gate, third.gate) == ("document", "document")

    leave(ahead)

    assert (gate_of(second), gate_of(third)) == ("", "document")


def test_a_document_that_is_busy_stays_shut(on_document):
    on_document(status="running")
    waiting = on_document()

    assert not gates.open_document(waiting.input_document_id)

    assert gate_of(waiting) == "document"


def test_a_run_behind_its_build_is_no_business_of_its_document(document):
    waiting = RunFactory(input_document=document, build=BuildFactory())

    assert not gates.open_document(document.pk)

    assert gate_of(waiting) == "build"


def test_a_gate_that_was_left_shut_is_found(on_document):
    forgotten, next_one = write(on_document(), gate="document"), write(on_document(), gate="document")

    assert gates.open_forgotten() == 1

    assert (gate_of(forgotten), gate_of(next_one)) == ("", "document")


def test_gates_that_are_rightly_shut_stay_shut(on_document):
    on_document(status="running")
    waiting = on_document(), RunFactory(build=BuildFactory(status="building"))

    assert gates.open_forgotten() == 0

    assert [gate_of(run) for run in waiting] == ["document", "build"]


def test_the_forgotten_gates_of_many_documents_open_at_once():
    runs = [write(RunFactory(), gate="document") for _ in range(3)]

    assert gates.open_forgotten("w1") == 3

    assert {gate_of(run) for run in runs} == {""}


def test_a_new_run_does_not_pass_one_whose_gate_was_left_shut(on_document, configuration, document, w1):
    forgotten = write(on_document(), gate="document")

    new = lifecycle.submit(configuration, document, actor="olga")

    claim = lifecycle.claim_next_run(w1)
    assert claim is None or claim.id == forgotten.pk
    assert new.status == "queued"


def test_a_ready_build_brings_its_runs_to_their_documents(document, configuration, w1):
    build = BuildFactory(configuration=configuration)
    same = [RunFactory(configuration=configuration, build=build, input_document=document) for _ in range(2)]
    other = RunFactory(configuration=configuration, build=build)
    assert {run.gate for run in (*same, other)} == {"build"}
    bring_to(build, "ready")

    assert lifecycle.apply_build_results(w1) == 3

    assert [gate_of(run) for run in (*same, other)] == ["", "document", ""]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_build_that_came_to_nothing_fails_its_runs_at_once(configuration, status, w1):
    build = BuildFactory(configuration=configuration)
    run = RunFactory(configuration=configuration, build=build)
    bring_to(build, status)

    assert lifecycle.apply_build_results(w1) == 1

    run.refresh_from_db()
    assert (run.status, run.failure_type) == ("failed", "BUILD_FAILED")
    ended = f"failed: {build.error_message}" if status == "failed" else "was cancelled."
    assert run.error_message == f"Build {build.pk} {ended}"
    assert run.started_at is None
    assert run.finished_at is not None
    assert told(run) == ["RUN_QUEUED", "RUN_FAILED"]


@pytest.mark.parametrize("status", ["queued", "building"])
def test_a_build_under_way_keeps_its_runs_waiting(configuration, status, w1):
    run = RunFactory(build=BuildFactory(status=status))
    before = columns_of(run)

    assert lifecycle.apply_build_results(w1) == 0

    assert columns_of(run) == before


@pytest.mark.parametrize("status", ["running", "succeeded", "cancelled"])
def test_a_build_that_failed_later_does_not_touch_runs_that_were_not_waiting(status, w1):
    run = RunFactory(status=status)
    before = columns_of(run)
    write(run.build, status="failed", failure_type="BUILD_FAILED")

    assert lifecycle.apply_build_results(w1) == 0

    assert columns_of(run) == before


def test_more_runs_than_one_look_takes_are_all_brought_on(configuration, monkeypatch, w1):
    monkeypatch.setattr(gates, "BATCH", 2)
    build = BuildFactory(configuration=configuration)
    runs = [RunFactory(configuration=configuration, build=build) for _ in range(5)]
    bring_to(build, "ready")

    heeded = [lifecycle.apply_build_results(w1) for _ in range(4)]
    while gates.open_forgotten():
        pass

    assert heeded == [2, 2, 1, 0]
    assert {gate_of(run) for run in runs} == {""}


def test_a_run_that_was_submitted_earlier_comes_forward_first_when_its_build_is_ready(document, w1):
    late = BuildFactory()
    older = RunFactory(build=late, input_document=document)
    younger = RunFactory(input_document=document)
    write(older, created_at=younger.created_at - timedelta(seconds=1))
    bring_to(late, "ready")

    lifecycle.apply_build_results(w1)

    assert lifecycle.claim_next_run(w1).id == older.pk


def test_the_gates_of_new_runs_on_many_documents_are_told_in_their_order():
    free, busy, waited_for = DocumentFactory.create_batch(3, status="processed")
    RunFactory(input_document=busy, status="running")
    RunFactory(input_document=waited_for)

    assert gates.for_new_runs([free.pk, busy.pk, waited_for.pk, free.pk]) == ["", "document", "document", "document"]


def is_awaited(build):
    return Build.objects.get(pk=build.pk).awaited


def test_a_build_is_awaited_until_it_has_ended_and_nobody_waits_for_it(document, w1):
    run = RunFactory(input_document=document, build=BuildFactory(status="building"))
    lifecycle.apply_build_results(w1)
    assert is_awaited(run.build)

    bring_to(run.build, "ready")
    assert gates.stop_awaiting() == 0

    assert lifecycle.apply_build_results(w1) == 1
    assert not is_awaited(run.build)


def test_a_build_that_is_made_again_is_awaited(w1):
    build = BuildFactory(status="failed")
    assert gates.stop_awaiting() == 1

    builds.again(build.pk, actor="olga")

    assert is_awaited(build)


def test_a_submission_that_finds_its_build_unready_says_that_it_is_awaited(configuration, document, monkeypatch, w1):
    """The build ends, and its waiting runs are released, right after the submission has read its status."""
    lifecycle.submit(configuration, document, actor="olga")
    build = bring_to(Build.objects.get(), "ready")
    lifecycle.apply_build_results(w1)
    lifecycle.succeed(lifecycle.claim_next_run(w1))
    monkeypatch.setattr(lifecycle, "get_or_create_build", lambda *_, **__: builds.BuildChoice(build.pk, "building"))

    older = lifecycle.submit(configuration, document, actor="olga")

    assert is_awaited(build)
    younger = RunFactory(configuration=configuration, input_document=document)
    assert (older.gate, younger.gate) == ("build", "")
    assert lifecycle.claim_next_run(w1) is None
    lifecycle.apply_build_results(w1)
    assert lifecycle.claim_next_run(w1).id == older.pk
