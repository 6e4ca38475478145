"""The answer to why a document is not processed yet."""

import pytest

from documents import why
from tests.factories import DocumentFactory, JobFactory, StageFactory, force_status, write
from work import boots

pytestmark = pytest.mark.django_db


def gates_of(document):
    return {gate.name: gate for gate in why.explain(document).gates}


def test_what_is_due_and_first_is_held_by_nothing_but_a_missing_worker():
    job = JobFactory()

    told = why.explain(job.document)

    assert [gate.name for gate in told.holding] == ["worker"]
    assert told.message == f"Document {job.document_id} is being processed; blocked by: worker."


def test_an_attempt_that_is_not_due_is_told_with_its_time():
    job = write(JobFactory(), next_attempt_at="2100-01-01T00:00Z", attempts=1)

    gate = gates_of(job.document)["time"]

    assert gate.message == "Attempt 2 of 3 is due at 2100-01-01 00:00:00. The previous attempt failed; see its job."


def test_one_of_many_goes_behind_all_that_are_wanted_singly():
    bulk = write(JobFactory(), priority=1)
    JobFactory()

    gate = gates_of(bulk.document)["turn"]

    assert (gate.holds, gate.data) == (True, {"ahead": 1, "ready": 0, "most_ready": 4})
    assert gate.message.startswith("1 document processing job is ahead of it. It is part of a bulk")


def test_stages_that_are_done_wait_for_nothing():
    stage = StageFactory(status="RUNNING")

    gate = gates_of(stage.job.document)["stages"]

    assert (gate.holds, gate.message) == (False, "Running: extract 0.")


def test_between_two_stages_workers_bring_it_on():
    stage = StageFactory(status="DONE")

    assert gates_of(stage.job.document)["stages"].message == "A worker advances it within a tick."


@pytest.mark.parametrize(("slots", "holds"), [(1, True), (2, False)])
def test_stages_that_are_ready_wait_for_a_slot(slots, holds):
    worker = boots.register("w1", "boot1", {"stage": slots})
    StageFactory(status="RUNNING", owner=worker.owner)
    stage = StageFactory(status="READY")

    gate = gates_of(stage.job.document)["stages"]

    said = {
        True: "Its stages wait for a free worker thread; no stage is ahead of it.",
        False: "Its stages are ready. 1 of 2 threads is free; no stage is ahead of it.",
    }
    assert (gate.holds, gate.message) == (holds, said[holds])


def test_what_has_ended_does_not_wait():
    document = DocumentFactory()
    force_status(document, "processed")

    told = why.explain(document)

    assert (told.message, told.gates) == (f"Document {document.pk} is processed.", ())
