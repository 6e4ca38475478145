"""Every failpoint, and every way to fail there: the process dies, gets an error, or stands still for longer than its
lease and goes on. Then others recover, everything is brought to an end, and all invariants hold.

A new failpoint needs one line in `LIVES`: the life that passes it.
"""

import os
import signal

import pytest
from django.core.files.storage import default_storage
from django.db import connection

from builds import lifecycle as builds
from builds.models import Build
from documents import chores
from documents import lifecycle as documents
from documents.models import Document, DocumentProcessingJob, Stage
from runs.models import Artifact, JobRun, Run
from tests.factories import W2, events_of
from tests.races.invariants import assert_all_hold
from tests.stepping import until
from tests.sweep import world
from tests.sweep.lives import UPLOADED
from work import failpoints, recovery
from work.kinds import all_kinds
from work.models import Event

LIVES = {
    "run.create.counted": "run",
    "run.created": "run",
    "run.claim.selected": "run",
    "run.claimed": "run",
    "lease.before_renew": "run",
    "artifact.written": "run",
    "run.finish.before_commit": "run",
    "run.finish.after_commit": "run",
    "cancel.read": "cancel",
    "build.claim.selected": "build",
    "build.claimed": "build",
    "build.finish.before_commit": "build",
    "build.finish.after_commit": "build",
    "job.claim.selected": "document",
    "job.claimed": "document",
    "job.finish.before_commit": "document",
    "job.finish.after_commit": "document",
    "stage.claim.selected": "document",
    "stage.claimed": "document",
    "stage.finish.before_commit": "document",
    "stage.finish.after_commit": "document",
    "job.analysed": "processing",
    "job.embedded": "processing",
    "job_run.claim.selected": "slot",
    "slot.inserted": "slot",
    "job_run.finish.before_commit": "slot",
    "job_run.finish.after_commit": "slot",
    "recover.selected": "recovery",
    "recover.before_commit": "recovery",
    "engine.before_spawn": "engine",
    "engine.spawned": "engine",
    "engine.exited": "engine",
    "build.exited": "environment",
    "upload.blob_written": "upload",
    "upload.before_commit": "upload",
    "retention.selected": "retention",
    "retention.purged": "retention",
}
# These start programs, and are swept with a witness of what runs: see `test_engine_crash_points.py`.
WITH_ENGINES = {"engine", "environment"}
# Where the process has written and not committed: nobody else can write the row, on SQLite nothing at all.
INSIDE_A_TRANSACTION = ("run.create.counted", "claim.selected", "job.claimed", "before_commit", "retention.selected")
# These few run with every `make test`.
SMOKE = {
    ("run.claimed", "kill9"),
    ("run.finish.before_commit", "raise"),
    ("stage.claimed", "stop"),
    ("build.finish.after_commit", "kill9"),
    ("retention.selected", "kill9"),
    ("retention.purged", "kill9"),
}
SWEEP = [
    pytest.param(point, way, marks=() if (point, way) in SMOKE else pytest.mark.long)
    for point, life in LIVES.items()
    if life not in WITH_ENGINES
    for way in ("kill9", "raise", "stop")
]


def test_every_failpoint_has_a_life_that_passes_it():
    assert set(LIVES) == failpoints.NAMES


@pytest.mark.parametrize(("point", "way"), SWEEP)
def test_nothing_is_lost_doubled_or_stuck(programs, monkeypatch, point, way):
    world.create()
    # Reading a document takes a while, and this life has nobody who renews.
    limits = {"ADE_LEASE_SECONDS": 10 if LIVES[point] == "processing" else 1, "ADE_QUEUE_SIZE": 100}

    process = programs.main("tests.sweep.lives", LIVES[point], ADE_FAILPOINTS=f"{point}:{way}*1", **limits)
    {"kill9": it_is_killed, "raise": it_gets_an_error, "stop": it_stands_still}[way](process, point, monkeypatch)
    world.let_time_pass()
    recovery.rescue_expired(all_kinds(), W2)

    what_was_promised_is_so(process.said)
    assert_all_hold()
    world.finish_everything()
    what_was_promised_is_so(process.said)
    what_was_due_is_purged()
    assert_all_hold(quiet=True)


@pytest.mark.long
@pytest.mark.parametrize(("point", "life"), [("build.claimed", "build"), ("stage.claimed", "stage")])
def test_work_that_kills_every_worker_fails_after_so_many(programs, point, life):
    world.create()
    build, job = Build.objects.get(status="queued"), DocumentProcessingJob.objects.get()
    row, at_most = {"build": (build, builds.LOSSES), "stage": (job, job.max_attempts * documents.STAGE_LOSSES)}[life]
    deaths = 0

    while row.status not in row.TERMINAL:
        world.let_time_pass()
        world.advance_documents()
        it_is_killed(programs.main("tests.sweep.lives", life, ADE_FAILPOINTS=f"{point}:kill9"), point, None)
        deaths += 1
        world.let_time_pass()
        recovery.rescue_expired(all_kinds(), W2)
        world.settle_documents()
        row.refresh_from_db()

    assert (row.status.lower(), deaths) == ("failed", at_most)
    assert_all_hold()
    world.finish_everything()
    assert Run.objects.filter(build=build).get().status == ("failed" if life == "build" else "succeeded")
    assert_all_hold(quiet=True)


def it_is_killed(process, point, monkeypatch):
    assert process.code() == -signal.SIGKILL, process.logged()


def it_gets_an_error(process, point, monkeypatch):
    # Recovery takes an error for that of one row, or of one kind, and a slot for that of its work; both go on.
    goes_on = point.startswith("recover.") or LIVES[point] == "processing"
    assert process.code() == (0 if goes_on else 1), process.logged()
    assert f"failpoint {point}" in process.logged()


def it_stands_still(process, point, monkeypatch):
    until(process.is_stopped)
    taken = taken_by_others(point, monkeypatch)
    process.send(signal.SIGCONT)

    assert process.code() == 0, process.logged()
    refused = Event.objects.filter(kind="LATE_WRITE_REFUSED")
    assert {(e.subject_kind, e.subject_id) for e in refused} == taken


def taken_by_others(point, monkeypatch):
    """What another worker has recovered of this process when the lease was over."""
    held = {(k.name, pk) for k in all_kinds() if k.rescue for pk in held_by_the_process(k.moves)}
    until(lambda: not any(still_leased(kind) for kind in all_kinds() if kind.rescue))
    if not point.endswith(INSIDE_A_TRANSACTION):
        recovery.rescue_expired(all_kinds(), W2)
        assert not any(held_by_the_process(kind.moves) for kind in all_kinds() if kind.rescue)
        return held
    # It holds the lock: recovery does not wait for long, and leaves the row to a later tick.
    monkeypatch.setattr(recovery, "STATEMENT_TIMEOUT_MS", 200)
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 200")
    recovery.rescue_expired(all_kinds(), W2)
    connection.close()
    return set()


def held_by_the_process(moves):
    return moves.rows.filter(lease_owner__endswith=":bootsweep").values_list("pk", flat=True)


def still_leased(kind):
    return kind.moves.rows.filter(lease_owner__endswith=":bootsweep", lease_expires_at__gt=recovery.clock.now())


def what_was_promised_is_so(said):
    """An answer that somebody got is true, whatever came after."""
    said = [(what, answer) for what, answer in said if answer]
    for what, answer in said:
        if what == "submitted":
            assert Run.objects.filter(pk=answer).exists()
        elif what == "uploaded":
            with Document.objects.get(pk=answer).file.open() as file:
                assert file.read() == UPLOADED
        elif what == "purged":
            assert not Document.objects.filter(file=answer).exists()
            assert not default_storage.exists(answer)
        elif what == "published":
            assert Artifact.objects.filter(run_id=answer).count() == 1
        elif what == "cancelled" and answer[1] in ("cancelled", "running"):
            run = Run.objects.get(pk=answer[0])
            assert run.status == "cancelled" or run.cancel_requested_at
        elif what in PROMISES:
            model, status = PROMISES[what]
            assert model.objects.get(pk=answer).status == status


def what_was_due_is_purged():
    """Once, whoever died over it; its file is gone, or is one that no row names and that is swept."""
    for document in Document.objects.filter(name__in=["first", "second"]):
        assert (document.text, document.chunks.count(), bool(document.purged_at)) == ("", 0, True)
        (event,) = events_of(document).filter(kind="DOCUMENT_PURGED")
        key = event.data["file"]
        if default_storage.exists(key):
            os.utime(default_storage.path(key), (0, 0))
        chores.Sweeper(lambda key=key: iter([key]) if default_storage.exists(key) else iter(()), chores._named).sweep()
        assert not default_storage.exists(key)


PROMISES = {
    "succeeded": (Run, "succeeded"),
    "built": (Build, "ready"),
    "done": (Stage, "DONE"),
    "success": (JobRun, "success"),
}
