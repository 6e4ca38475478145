import pytest

from documents import lifecycle as documents
from documents.models import Document
from runs import gates, lifecycle, processing_gates
from runs.models import Run
from tests.factories import (
    BuildFactory,
    DocumentFactory,
    JobFactory,
    RunFactory,
    bring_to,
    claim_of,
    columns_of,
    end_processing,
    events_of,
    told,
    write,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def document(workspace):
    """A document that is being processed."""
    return JobFactory(document=DocumentFactory(workspace=workspace, name="invoice.pdf")).document


@pytest.fixture
def submit(configuration, build, document):
    """Return a function that submits a run for the document."""

    def submit(**options):
        return lifecycle.submit(configuration, Document.objects.get(pk=document.pk), actor="olga", **options)

    return submit


def gate_of(run):
    return Run.objects.get(pk=run.pk).gate


def claimed(owner="w1"):
    claim = lifecycle.claim_next_run(owner)
    return claim and claim.id


def test_a_run_waits_until_its_document_is_processed(submit, document):
    run = submit()
    assert (run.gate, run.waits_for_processing, claimed()) == ("process", True, None)

    end_processing(document)

    assert gate_of(run) == ""
    assert claimed() == run.pk


def test_a_run_that_does_not_wait_starts_at_once(submit):
    run = submit(wait_for_processing=False)

    assert (run.gate, run.waits_for_processing, claimed()) == ("", False, run.pk)


def test_a_run_is_not_claimed_before_its_document_is_processed_whatever_its_gate_says(submit):
    write(submit(), gate="")

    assert claimed() is None


def test_the_runs_of_a_document_take_turns_once_it_is_processed(submit, document):
    first, second, third = submit(), submit(), submit()

    end_processing(document)

    assert [gate_of(run) for run in (first, second, third)] == ["", "document", "document"]


def test_a_run_that_does_not_wait_passes_those_that_do(submit, document):
    older, younger = submit(), submit(wait_for_processing=False)
    assert claimed() == younger.pk

    end_processing(document)

    assert (gate_of(older), claimed()) == ("document", None)
    lifecycle.succeed(claim_of(Run.objects.get(pk=younger.pk)))
    assert claimed() == older.pk


@pytest.mark.parametrize("same_moment", [False, True])
def test_a_younger_run_does_not_pass_one_whose_gate_does_not_say_yet_that_its_document_is_processed(
    submit, document, same_moment
):
    older, younger = submit(), submit(wait_for_processing=False)
    if same_moment:
        write(older, created_at=younger.created_at)
    bring_to(document, "processed")

    assert claimed() is None

    assert processing_gates.mend() == 1
    assert claimed() == older.pk


def test_a_run_waits_for_its_build_first(configuration, document):
    waiting = lifecycle.submit(configuration, document, actor="olga")
    at_once = lifecycle.submit(configuration, document, actor="olga", wait_for_processing=False)
    assert (waiting.gate, at_once.gate) == ("build", "build")
    bring_to(waiting.build, "ready")

    assert lifecycle.apply_build_results("w1") == 2

    assert (gate_of(waiting), gate_of(at_once)) == ("process", "")


def test_a_document_may_be_processed_before_the_build_is_ready(configuration, document):
    run = lifecycle.submit(configuration, document, actor="olga")

    end_processing(document)
    assert gate_of(run) == "build"
    bring_to(run.build, "ready")
    lifecycle.apply_build_results("w1")

    assert claimed() == run.pk


def test_a_document_that_is_processed_again_makes_its_runs_wait(submit, document):
    end_processing(document)
    first, second, at_once = submit(), submit(), submit(wait_for_processing=False)

    documents.reprocess(document, actor="olga")

    assert [gate_of(run) for run in (first, second, at_once)] == ["process", "process", ""]
    assert claimed() == at_once.pk
    lifecycle.succeed(claim_of(Run.objects.get(pk=at_once.pk)))
    end_processing(Document.objects.get(pk=document.pk))
    assert claimed() == first.pk


def test_a_run_that_has_started_is_not_held_up(submit, document):
    end_processing(document)
    run = submit()
    assert claimed() == run.pk
    before = columns_of(run)

    documents.reprocess(document, actor="olga")

    assert columns_of(run) == before


def fail(document):
    return end_processing(Document.objects.get(pk=document.pk), "failed")


def test_a_document_that_cannot_be_processed_fails_its_runs(submit, document, workspace):
    other = RunFactory(input_document=DocumentFactory(workspace=workspace))
    runs = [submit(), submit()]
    fail(document)
    assert {gate_of(run) for run in runs} == {"failed"}

    assert lifecycle.apply_processing_failures("w1") == 2

    for run in runs:
        run.refresh_from_db()
        assert (run.status, run.failure_type, run.started_at) == ("failed", "DOCUMENT_FAILED", None)
        assert run.error_message == f"Document {document.pk} (invoice.pdf) could not be processed: no text"
        assert told(run) == ["RUN_QUEUED", "RUN_FAILED"]
        assert events_of(run).last().data == {"document": document.pk}
    assert (gate_of(other), lifecycle.apply_processing_failures("w1")) == ("process", 0)


def test_a_run_that_waits_for_its_build_fails_with_its_document_too(configuration, document):
    run = lifecycle.submit(configuration, document, actor="olga")
    at_once = lifecycle.submit(configuration, document, actor="olga", wait_for_processing=False)

    fail(document)
    lifecycle.apply_processing_failures("w1")

    assert (Run.objects.get(pk=run.pk).failure_type, gate_of(at_once)) == ("DOCUMENT_FAILED", "build")


def test_processing_again_does_not_revive_a_run(submit, document):
    run = submit()
    fail(document)
    documents.reprocess(document, actor="olga")
    end_processing(Document.objects.get(pk=document.pk))

    assert claimed() is None
    lifecycle.apply_processing_failures("w1")

    run.refresh_from_db()
    assert run.error_message == f"Document {document.pk} (invoice.pdf) could not be processed: no text"
    assert claimed() is None


def test_the_next_run_that_does_not_wait_goes_on_when_a_document_fails_again(submit, document):
    end_processing(document)
    submit()
    at_once = submit(wait_for_processing=False)
    assert at_once.gate == "document"
    documents.reprocess(document, actor="olga")

    fail(document)

    assert claimed() == at_once.pk


def test_more_runs_than_one_call_refuses_all_fail(submit, document, monkeypatch):
    monkeypatch.setattr(lifecycle, "REFUSALS", 2)
    runs = [submit() for _ in range(5)]
    fail(document)

    assert [lifecycle.apply_processing_failures("w1") for _ in range(4)] == [2, 2, 1, 0]

    assert {Run.objects.get(pk=run.pk).failure_type for run in runs} == {"DOCUMENT_FAILED"}


def test_more_runs_than_one_change_reaches_are_found(submit, document, monkeypatch):
    monkeypatch.setattr(processing_gates, "BATCH", 2)
    runs = [submit() for _ in range(5)]
    end_processing(document)
    assert [gate_of(run) for run in runs] == ["", "document", "process", "process", "process"]

    assert [processing_gates.mend() for _ in range(3)] == [2, 1, 0]

    assert [gate_of(run) for run in runs] == ["", *["document"] * 4]


@pytest.mark.parametrize(
    ("status", "gate", "then"),
    [("processed", "process", ""), ("failed", "process", "failed"), ("failed", "", "failed")],
)
def test_a_gate_that_was_missed_is_found(submit, document, status, gate, then):
    run = write(submit(), gate=gate)
    bring_to(document, status)

    assert processing_gates.mend() == 1

    assert gate_of(run) == then
    assert processing_gates.mend() == 0


def test_a_gate_that_is_open_too_early_is_found(submit):
    run = write(submit(), gate="")

    assert processing_gates.mend() == 1

    assert gate_of(run) == "process"


def test_gates_that_are_right_stay(submit, configuration, workspace):
    processed = DocumentFactory(workspace=workspace, status="processed")
    runs = [submit(), submit(wait_for_processing=False)]
    runs += [RunFactory(configuration=configuration, input_document=processed) for _ in range(2)]
    runs.append(RunFactory(build=BuildFactory(), input_document=processed))
    before = [columns_of(run) for run in runs]

    assert processing_gates.mend() == gates.open_forgotten() == 0

    assert [columns_of(run) for run in runs] == before


def test_a_run_for_a_document_that_failed_is_refused(submit, document):
    fail(document)
    message = f"Document {document.pk} (invoice.pdf) could not be processed: no text. Process it again, or submit the"

    with pytest.raises(lifecycle.DocumentFailed) as refusal:
        submit()

    assert str(refusal.value) == f"{message} run so that it does not wait for that."
    assert not Run.objects.exists()
    assert claimed() is None
    assert submit(wait_for_processing=False).pk == claimed()


def test_of_many_runs_none_is_made_if_one_document_failed(configuration, workspace, document):
    failed = DocumentFactory(workspace=workspace, status="failed")

    with pytest.raises(lifecycle.DocumentFailed, match=f"^Document {failed.pk} "):
        lifecycle.submit_many(configuration, [document, failed], actor="olga")

    assert not Run.objects.exists()
    assert not configuration.builds.exists()
    both = lifecycle.submit_many(configuration, [document, failed], actor="olga", wait_for_processing=False)
    assert Run.objects.filter(pk__in=both, waits_for_processing=False).count() == 2


def test_many_runs_on_documents_in_every_state_get_their_gates(configuration, build, workspace, document):
    processed = DocumentFactory(workspace=workspace, status="processed")

    ids = lifecycle.submit_many(configuration, [document, processed, document, processed], actor="olga")

    assert [Run.objects.get(pk=id).gate for id in ids] == ["process", "", "process", "document"]


@pytest.mark.parametrize("waits", [True, False])
def test_run_again_waits_as_the_first_run_did(submit, waits):
    run = submit(wait_for_processing=waits)

    assert lifecycle.run_again(run, actor="olga").waits_for_processing is waits


@pytest.mark.parametrize("gate", ["process", "failed"])
def test_a_document_that_a_run_waits_for_is_not_purged(document, submit, gate):
    write(submit(), gate=gate)
    end_processing(document)
    write(Run.objects.get(), gate=gate)

    assert not Document.objects.idle().exists()
