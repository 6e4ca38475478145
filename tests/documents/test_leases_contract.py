"""The contract of stages and leases, sentence by sentence: permissions, claims, completion, recovery, outputs."""

import json
import os
import socket
from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection

from documents import extraction, lifecycle, orchestrator, outputs, stages
from documents.models import DocumentChunk, DocumentProcessingJob, Stage
from tests.breaches import assert_all_hold
from tests.documents.processing import TXT, add, pdf, process, store_output
from tests.factories import W1, W2, StageFactory, claim_of, columns_of, events_of, expire_lease, told
from tests.writers import WRITERS
from work import boots, clock, recovery
from work import lifecycle as kernel
from work.state_machine import By
from work.work_types import work_type_named

LETTER = b"Dear Ms Example,\n\nthe delivery of apples arrived on time.\n"
MOVES = lifecycle.STAGE_STATES


@pytest.fixture
def running(db):
    return StageFactory(status="RUNNING")


def stage_of(document, name, segment=0):
    return Stage.objects.get(job__document=document, name=name, segment=segment)


# Stage statuses


def test_the_same_statuses_for_every_stage():
    assert set(Stage.Status.values) == {"NEW", "READY", "RUNNING", "DONE", "ERROR"}


def test_new_exists_but_cannot_be_claimed(db):
    StageFactory(status="NEW")

    assert lifecycle.claim_stage(W1) is None


def test_ready_can_be_claimed(db):
    stage = StageFactory(status="READY")

    assert lifecycle.claim_stage(W1).id == stage.pk


def test_running_is_claimed_and_holds_a_lease(db):
    StageFactory(status="READY")

    lifecycle.claim_stage(W1)

    stage = Stage.objects.get()
    assert (stage.status, stage.lease_owner) == ("RUNNING", W1)
    assert stage.lease_expires_at > clock.now()


def test_done_is_completed(running):
    assert lifecycle.finish_stage(claim_of(running))

    running.refresh_from_db()
    assert (running.status, running.lease_owner, running.lease_expires_at) == ("DONE", None, None)


def test_error_has_failed_and_may_be_tried_again(running):
    lifecycle.fail_stage(claim_of(running), "EXTRACTION_FAILED", "no text")
    lifecycle.settle(DocumentProcessingJob.objects.get(), actor=W1)
    DocumentProcessingJob.objects.update(next_attempt_at=clock.now())

    lifecycle.begin_next_job(W1)

    running.refresh_from_db()
    assert running.status == "NEW"


# Who is allowed to change what


def test_the_orchestrator_advances_from_new_to_ready_when_what_comes_before_is_done(slot):
    document = add(LETTER, TXT, "letter.txt")

    orchestrator.orchestrate(W1)

    assert [stage_of(document, name).status for name in lifecycle.ORDER] == ["READY", "NEW", "NEW"]
    slot.run_once()
    orchestrator.orchestrate(W1)
    assert [stage_of(document, name).status for name in lifecycle.ORDER] == ["DONE", "READY", "NEW"]


def test_the_orchestrator_never_marks_work_done():
    by_orchestrator = {(move.origins, move.target) for move in MOVES.table.values() if move.by is By.ORCHESTRATOR}

    assert by_orchestrator == {(("NEW",), "READY")}


def test_the_orchestrator_does_no_heavy_work(slot, azure):
    add(pdf("one"))

    for _ in range(5):
        orchestrator.orchestrate(W1)

    assert set(Stage.objects.values_list("status", flat=True)) == {"NEW", "READY"}
    assert not default_storage.exists(outputs.ROOT)
    assert azure.asked == []


def test_workers_claim_and_complete_and_nothing_else():
    by_workers = {(move.origins, move.target) for move in MOVES.table.values() if move.by in (By.WORKER, By.HOLDER)}

    # While an external service is away, the stage goes back to READY without using up an attempt.
    postponed = (("RUNNING",), "READY")
    assert by_workers == {(("READY",), "RUNNING"), (("RUNNING",), "DONE"), (("RUNNING",), "ERROR"), postponed}


def test_workers_never_advance_what_comes_after(slot):
    document = add(LETTER, TXT, "letter.txt")
    orchestrator.orchestrate(W1)

    assert slot.run_once()

    assert [stage_of(document, name).status for name in lifecycle.ORDER] == ["DONE", "NEW", "NEW"]
    assert not slot.run_once()


# Concurrency-safe claiming


@pytest.mark.only_on("postgresql")
@pytest.mark.parametrize("writer", WRITERS)
def test_claims_skip_what_others_have_locked(transactional_db, threads, monkeypatch, writer):
    monkeypatch.setattr(kernel, "_writer", lambda: writer)
    older, younger = (StageFactory(status="READY") for _ in range(2))

    held = threads.hold(lambda: lifecycle.claim_stage(W1))
    other = threads.start(lambda: lifecycle.claim_stage(W2)).answer()
    held.commit()

    assert (held.answer().id, other.id) == (older.pk, younger.pk)


def test_a_claim_is_running_with_its_lease_and_committed_before_the_work_begins(slot, monkeypatch):
    add(LETTER, TXT, "letter.txt")
    orchestrator.orchestrate(W1)
    seen = []
    extract = extraction.extract

    def look(*args, **options):
        seen.append((Stage.objects.get(name="extract").status, connection.in_atomic_block))
        return extract(*args, **options)

    monkeypatch.setattr(extraction, "extract", look)

    slot.run_once()

    assert seen == [("RUNNING", False)]


# Per-stage leases


def test_the_owner_of_a_lease_is_one_claimant_of_one_boot_on_one_machine(db):
    owners = [boots.register("w1", boot, {"stage": 1}).owner for boot in ("boot1", "boot2")]

    assert owners == [f"w1@{socket.gethostname()}:{os.getpid()}:{boot}" for boot in ("boot1", "boot2")]


def test_a_lease_that_is_over_is_work_that_is_abandoned(running, settings):
    assert running.lease_expires_at - clock.now() <= timedelta(seconds=settings.ADE_LEASE_SECONDS)
    expire_lease(running)

    assert recovery.rescue_expired([work_type_named("stage")], W2) == 1


def test_completion_is_accepted_only_while_it_runs(running):
    claim = claim_of(running)
    expire_lease(running)
    recovery.rescue_expired([work_type_named("stage")], W2)

    assert not lifecycle.finish_stage(claim)

    running.refresh_from_db()
    assert (running.status, told(running)[-1]) == ("READY", "LATE_WRITE_REFUSED")


def test_completion_is_accepted_only_from_the_owner_of_the_lease(running):
    assert not lifecycle.finish_stage(claim_of(running, owner=W2))

    running.refresh_from_db()
    assert running.status == "RUNNING"
    assert told(running)[-1] == "LATE_WRITE_REFUSED"


def test_a_stale_worker_does_not_overwrite_what_came_after_recovery(slot):
    document = add(LETTER, TXT, "letter.txt")
    orchestrator.orchestrate(W1)
    stale = lifecycle.claim_stage(W2)
    made = stages.do(stale)
    expire_lease(stage_of(document, "extract"))
    recovery.rescue_expired([work_type_named("stage")], W1)
    process(slot)
    document.refresh_from_db()
    before = columns_of(document)

    assert not stages.succeed(stale, made | {"pages_total": 99})

    document.refresh_from_db()
    assert columns_of(document) == before
    assert document.status == "processed"


# Recovery loop


def test_recovery_finds_what_runs_with_a_lease_that_is_over_resets_it_clears_it_and_says_so(running):
    alive = StageFactory(status="RUNNING")
    before = columns_of(alive)
    expire_lease(running)

    assert recovery.rescue_expired([work_type_named("stage")], W2) == 1

    running.refresh_from_db()
    assert (running.status, running.lease_owner, running.lease_expires_at) == ("READY", None, None)
    assert running.error_message == recovery.EXPIRED
    receipt = events_of(running).last()
    assert (receipt.kind, receipt.actor) == ("RECOVERED", W2)
    assert columns_of(alive) == before


# Idempotency


def test_outputs_lie_at_places_that_follow_from_job_stage_version_and_segment():
    assert outputs.path_of(7, "extract", 3) == f"processing/7/extract-v{outputs.VERSION}-00003.json"
    assert outputs.path_of(7, "extract", 3) == outputs.path_of(7, "extract", 3)
    places = {outputs.path_of(job, name, n) for job in (7, 8) for name in ("extract", "embed") for n in (0, 1)}
    assert len(places) == 8


def test_an_output_that_is_there_and_whole_completes_its_stage_without_work(slot, azure):
    document = add(pdf("one"))
    job_id = document.jobs.get().pk
    page = {"number": 1, "text": "read before", "width": None, "words": [], "tables": []}
    kept = {"pages_total": 1, "pages": [page]}
    store_output(outputs.path_of(job_id, "extract"), kept)

    process(slot)

    document.refresh_from_db()
    assert document.text == "read before"
    assert azure.asked == []


def test_an_output_that_does_not_agree_with_its_checksum_is_made_again(places):
    path = outputs.path_of(1, "extract")
    store_output(path, {"pages": []})
    with default_storage.open(path) as file:
        told_checksum, _, body = file.read().partition(b"\n")
    assert json.loads(body) == {"pages": []}
    assert len(told_checksum) == 64
    default_storage.delete(path)
    default_storage.save(path, ContentFile(told_checksum + b'\n{"pages": [1]}'))

    assert outputs.load(path) is None


def test_what_others_see_is_published_last_and_all_at_once(slot):
    document = add(LETTER, TXT, "letter.txt")
    for name in lifecycle.ORDER:
        document.refresh_from_db()
        assert (document.text, DocumentChunk.objects.count()) == ("", 0)
        orchestrator.orchestrate(W1)
        assert stage_of(document, name).status == "READY"
        slot.run_once()

    document.refresh_from_db()
    assert "apples" in document.text
    assert DocumentChunk.objects.count() == 1


# Segments


def test_only_the_segment_that_failed_is_done_again(slot, azure):
    document = add(pdf(*[f"Page {n}." for n in range(1, 61)]))
    orchestrator.orchestrate(W1)
    slot.run_once()
    orchestrator.orchestrate(W1)
    lost = lifecycle.claim_stage(W2)
    expire_lease(Stage.objects.get(pk=lost.id))
    recovery.rescue_expired([work_type_named("stage")], W1)

    process(slot)

    assert document.jobs.get().status == "COMPLETED"
    assert sorted(asked.query["pages"] for asked in azure.asked if asked.what == "analyze") == [
        "1-25",
        "26-50",
        "51-60",
    ]
    starts = {
        stage.segment: events_of(stage).filter(kind="STAGE_STARTED").count()
        for stage in Stage.objects.filter(name="extract")
    }
    assert starts == {0: 1, 1: 2, 2: 1}
    assert_all_hold()
