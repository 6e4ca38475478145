"""A purge that competes with other uses of the document, in both orders: the second sees what the first did."""

import pytest

from documents import corrections, lifecycle, purging, retention
from documents.models import Document, DocumentProcessingJob
from runs import lifecycle as runs
from runs.models import Run
from tests.factories import W1, W2, BuildFactory, ConfigurationFactory, DocumentFactory, age, told, write
from tests.races.invariants import assert_all_hold

DAYS = 30


@pytest.fixture
def configuration(transactional_db):
    configuration = ConfigurationFactory()
    BuildFactory(configuration=configuration, status="ready")
    return configuration


@pytest.fixture
def workspace(configuration):
    return write(configuration.workspace, document_retention_days=DAYS)


def old(workspace):
    return age(DocumentFactory(workspace=workspace, status="processed"), (DAYS + 1) * 24 * 3600)


@pytest.fixture
def document(workspace):
    return old(workspace)


def purge(document):
    return purging.purge(document.pk, days=DAYS, actor=W1)


# Uses of the document that compete with the purge.
WISHES = {
    "a run": lambda configuration, document: runs.submit(configuration, document, actor="olga"),
    "runs": lambda configuration, document: runs.submit_many(configuration, [document, document], actor="olga"),
    "reprocess": lambda configuration, document: lifecycle.reprocess(document, actor="olga"),
}


def is_refused(wished):
    error = wished.error()
    return isinstance(error, runs.Purged) if error else wished.answer() is None


@pytest.mark.parametrize("limit", [None, 100])
@pytest.mark.parametrize("wish", WISHES)
def test_who_comes_while_it_is_purged_waits_and_is_refused(
    threads, step_at, settings, configuration, document, wish, limit
):
    settings.ADE_QUEUE_SIZE = limit
    at = step_at("retention.selected")
    purging = threads.start(lambda: purge(document))
    at.until_reached()

    wished = threads.start(lambda: WISHES[wish](configuration, document))
    assert wished.waits()
    at.go_on()

    assert purging.answer()
    assert is_refused(wished)
    assert told(document)[-1] == "DOCUMENT_PURGED"
    assert not Run.objects.exists()
    assert not DocumentProcessingJob.objects.exists()
    assert_all_hold()


@pytest.mark.parametrize("limit", [None, 100])
@pytest.mark.parametrize("wish", WISHES)
def test_a_purge_passes_over_what_somebody_has_come_to_need(threads, settings, configuration, document, wish, limit):
    settings.ADE_QUEUE_SIZE = limit
    wished = threads.hold(lambda: WISHES[wish](configuration, document))

    purging = threads.start(lambda: purge(document))
    # On PostgreSQL the purge skips the locked row and does not wait.
    purging.waits()
    assert wished.commit()

    assert purging.answer() is None
    assert Document.objects.get(pk=document.pk).purged_at is None
    assert_all_hold()


def test_a_correction_waits_for_a_purge_and_is_refused(threads, step_at, document):
    at = step_at("retention.selected")
    purging = threads.start(lambda: purge(document))
    at.until_reached()

    correcting = threads.start(lambda: corrections.correct(document.pk, "total", "42", actor="olga"))
    assert correcting.waits()
    at.go_on()

    assert purging.answer()
    assert isinstance(correcting.error(), corrections.InvalidCorrection)
    assert not document.corrections.exists()
    assert_all_hold()


def test_a_purge_goes_on_when_the_other_one_takes_it_back(threads, configuration, document):
    wished = threads.hold(lambda: runs.submit(configuration, document, actor="olga"))
    wished.roll_back()

    assert purge(document)

    assert not Run.objects.exists()


def test_each_document_of_many_is_either_purged_or_has_its_run(threads, configuration, workspace):
    documents = [old(workspace) for _ in range(40)]

    def submit(some):
        refused = 0
        for document in some:
            try:
                runs.submit(configuration, document, actor="olga")
            except runs.Purged:
                refused += 1
        return refused

    def purge_all():
        return sum(there is not None for there in retention.purge(workspace, actor=W1))

    # From both ends of the list.
    purged_1, purged_2, refused_1, refused_2 = threads.together(
        [purge_all, purge_all, lambda: submit(documents[20:][::-1]), lambda: submit(documents[:20])]
    )

    purged = set(Document.objects.filter(purged_at__isnull=False).values_list("pk", flat=True))
    with_runs = set(Run.objects.values_list("input_document_id", flat=True))
    assert purged | with_runs == {document.pk for document in documents}
    assert purged & with_runs == set()
    assert (len(purged), len(with_runs)) == (purged_1 + purged_2, 40 - refused_1 - refused_2)
    assert_all_hold()


def test_several_workers_purge_a_document_once(threads, workspace):
    documents = [old(workspace) for _ in range(20)]

    answers = threads.together([lambda: list(retention.purge(workspace, actor=W2))] * 4)

    assert sum(there is not None for each in answers for there in each) == 20
    assert [told(document).count("DOCUMENT_PURGED") for document in documents] == [1] * 20
    assert_all_hold()
