import pytest
from django.db import IntegrityError, transaction

from builds.models import Build
from documents.models import Document
from runs import lifecycle
from runs.lifecycle import OtherWorkspace, QueueFull
from runs.models import Admission, Run
from tests.factories import (
    BuildFactory,
    DocumentFactory,
    RunFactory,
    age,
    bring_to,
    events_of,
    told,
)
from work.models import Event

pytestmark = pytest.mark.django_db


@pytest.fixture
def documents(workspace):
    return DocumentFactory.create_batch(3, workspace=workspace, status="processed")


@pytest.fixture
def limit(settings):
    settings.ADE_QUEUE_SIZE = 3
    return settings


def test_a_run_is_queued_with_a_build_of_its_own(configuration, document):
    run = lifecycle.submit(configuration, document, actor="olga")

    assert run.status == "queued"
    assert run.workspace == configuration.workspace
    assert run.configuration == configuration
    assert run.input_document == document
    assert run.build == Build.objects.get()
    assert (run.build.status, run.gate) == ("queued", "build")
    assert (run.started_at, run.finished_at, run.lease_owner, run.claim_token) == (None, None, None, 0)


def test_what_submit_answers_is_what_the_database_has(configuration, document):
    run = lifecycle.submit(configuration, document, actor="olga")

    stored = Run.objects.get()
    assert {f.attname: getattr(run, f.attname) for f in Run._meta.concrete_fields} == {
        f.attname: getattr(stored, f.attname) for f in Run._meta.concrete_fields
    }


def test_a_submission_is_told_with_who_made_it(configuration, document):
    run = lifecycle.submit(configuration, document, actor="olga")

    event = events_of(run).get()
    assert (event.kind, event.sequence, event.from_status, event.to_status) == ("RUN_QUEUED", 1, "", "queued")
    assert event.actor == "olga"
    assert event.at == run.created_at


def test_a_run_of_a_ready_build_on_a_free_document_is_open_to_be_claimed(configuration, document, build):
    assert lifecycle.submit(configuration, document, actor="olga").gate == ""


@pytest.mark.parametrize("status", ["queued", "running"])
def test_a_run_on_a_busy_document_waits_behind_it(configuration, document, build, status):
    RunFactory(configuration=configuration, input_document=document, status=status)

    assert lifecycle.submit(configuration, document, actor="olga").gate == "document"


def test_all_submissions_of_a_configuration_share_its_build(configuration, documents):
    lifecycle.submit(configuration, documents[0], actor="olga")
    lifecycle.submit_many(configuration, documents, actor="olga")

    assert Run.objects.values_list("build_id", flat=True).distinct().get() == Build.objects.get().pk
    assert told(Build.objects.get()) == ["BUILD_QUEUED"]


def test_many_runs_are_made_in_the_order_of_their_documents(configuration, documents, build):
    ids = lifecycle.submit_many(configuration, documents, actor="olga")

    runs = [Run.objects.get(pk=id) for id in ids]
    assert [run.input_document for run in runs] == documents
    assert ids == sorted(ids)
    assert [told(run) for run in runs] == [["RUN_QUEUED"]] * 3
    assert {run.gate for run in runs} == {""}


def test_of_many_runs_over_one_document_the_first_is_open(configuration, documents, build):
    again = documents[0]

    ids = lifecycle.submit_many(configuration, [again, documents[1], again, again], actor="olga")

    assert [Run.objects.get(pk=id).gate for id in ids] == ["", "", "document", "document"]


def test_many_runs_over_no_document_are_none(configuration):
    assert lifecycle.submit_many(configuration, [], actor="olga") == []

    assert not Build.objects.exists()


@pytest.mark.parametrize("others", [0, 2])
def test_a_document_of_another_workspace_is_refused_with_all_the_rest(configuration, documents, others):
    stranger = DocumentFactory(status="processed")

    with pytest.raises(OtherWorkspace):
        lifecycle.submit_many(configuration, [*documents[:others], stranger], actor="olga")
    with pytest.raises(OtherWorkspace):
        lifecycle.submit(configuration, stranger, actor="olga")

    assert not Run.objects.exists()
    assert not Build.objects.exists()


def test_many_runs_are_all_made_or_none(configuration, documents, build):
    nowhere = Document(workspace=configuration.workspace)

    with pytest.raises(IntegrityError), transaction.atomic():
        lifecycle.submit_many(configuration, [*documents, nowhere], actor="olga")

    assert not Run.objects.exists()
    assert not Event.objects.filter(subject_kind="run").exists()


def test_the_last_place_of_the_queue_is_given(configuration, document, limit):
    RunFactory.create_batch(2, status="queued")
    RunFactory.create_batch(2, status="succeeded")

    assert lifecycle.submit(configuration, document, actor="olga").status == "queued"


@pytest.mark.parametrize("live", [["queued", "queued", "queued"], ["queued", "running", "running"]])
def test_a_full_queue_refuses_and_keeps_nothing(configuration, document, limit, live):
    for status in live:
        RunFactory(status=status)
    runs, builds, events = Run.objects.count(), Build.objects.count(), Event.objects.count()

    with pytest.raises(QueueFull) as refused:
        lifecycle.submit(configuration, document, actor="olga")

    assert refused.value.code == "run_queue_full"
    assert (refused.value.limit, refused.value.live, refused.value.asked) == (3, 3, 1)
    assert "3 runs" in str(refused.value)
    assert (Run.objects.count(), Build.objects.count(), Event.objects.count()) == (runs, builds, events)


def test_a_full_queue_refuses_all_of_many(configuration, documents, limit):
    RunFactory()

    with pytest.raises(QueueFull):
        lifecycle.submit_many(configuration, documents, actor="olga")

    assert Run.objects.count() == 1
    assert not Build.objects.filter(configuration=configuration).exists()


def test_a_full_queue_does_not_queue_a_failed_build_again(configuration, document, limit):
    build = age(BuildFactory(configuration=configuration, status="failed"), 3600)
    RunFactory.create_batch(3)

    with pytest.raises(QueueFull):
        lifecycle.submit(configuration, document, actor="olga")

    assert Build.objects.get(pk=build.pk).status == "failed"


def test_a_cancelled_run_frees_its_place_at_once(configuration, document, limit):
    runs = RunFactory.create_batch(3)

    lifecycle.cancel(runs[0], actor="olga")

    assert lifecycle.submit(configuration, document, actor="olga")


def test_an_ended_run_frees_its_place_at_once(configuration, document, limit):
    runs = RunFactory.create_batch(3, status="running")

    bring_to(runs[0], "failed")

    assert lifecycle.submit(configuration, document, actor="olga")


def test_the_places_are_counted_under_one_guard_row(configuration, documents, limit):
    for document in documents:
        lifecycle.submit(configuration, document, actor="olga")

    assert list(Admission.objects.values_list("pk", flat=True)) == [1]
