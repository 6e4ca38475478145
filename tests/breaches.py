"""A database with a long history, and functions that corrupt it in ways that ADE itself prevents."""

from datetime import timedelta

from django.db import connection
from django.db.models import Q

from builds import lifecycle as builds
from builds.models import Build
from documents import lifecycle as documents
from documents import purging
from documents.models import Document, DocumentProcessingJob
from runs import lifecycle
from schedules import job_runs
from tests.factories import (
    W1,
    W2,
    ConfigurationFactory,
    DeliveryFactory,
    DocumentFactory,
    ErrandFactory,
    JobRunFactory,
    RunFactory,
    WorkspaceFactory,
    age,
    expire_lease,
    write,
)
from work import boots, clock, recovery
from work.invariants import all_invariants
from work.lifecycle import refuse_late
from work.work_types import all_work_types


def much_has_happened():
    """Create rows of each kind in each outcome through the verbs, and a worker that has long been alive."""
    worker = boots.register("w1", "boot-1", {})
    write(worker, started_at=clock.now() - timedelta(days=1))
    workspace = WorkspaceFactory(name="Busy")
    _documents_were_processed(workspace)
    _runs_have_run(workspace)
    _slots_have_passed()
    for status in (None, "sending", "delivered", "failed"):
        DeliveryFactory(status=status)
    for status in (None, "doing", "done", "failed", "cancelled"):
        ErrandFactory(status=status)


def breaches(name):
    """Return the breaches that an invariant finds, without its context."""
    (found,) = (invariant for invariant in all_invariants() if invariant.name == name)
    return found.breaches(10)


def assert_all_hold():
    found = {invariant.name: invariant.breaches(10) for invariant in all_invariants()}
    assert not {name: rows for name, rows in found.items() if rows}


def unguard(*models):
    """Replace the tables with copies without constraints, until the transaction of the test is rolled back."""
    connection.check_constraints()
    for table in (model._meta.db_table for model in models):
        execute(f"ALTER TABLE {table} RENAME TO {table}_guarded")
        execute(f"CREATE TABLE {table} AS SELECT * FROM {table}_guarded")  # noqa: S608  # no user input


def plant(row, **columns):
    """Write columns of a row in SQL, past all checks."""
    names = ", ".join(f"{name} = %s" for name in columns)
    sql = f"UPDATE {row._meta.db_table} SET {names} WHERE id = %s"  # noqa: S608  # no user input
    execute(sql, *_adapted(row, columns), row.pk)


def plant_copy(row, **columns):
    """Insert a copy of this row with these columns changed."""
    names = [f.column for f in row._meta.concrete_fields if f.column not in columns]
    kept, given = ", ".join(names), ", ".join(columns)
    marks = ", ".join(["%s"] * len(columns))
    table = row._meta.db_table
    sql = f"INSERT INTO {table} ({kept}, {given}) SELECT {kept}, {marks} FROM {table} WHERE id = %s"  # noqa: S608  # no user input
    execute(sql, *_adapted(row, columns), row.pk)


def execute(sql, *params):
    with connection.cursor() as cursor:
        cursor.execute(sql, params or None)


def _adapted(row, columns):
    fields = {f.column: f for f in row._meta.concrete_fields}
    return [fields[name].get_db_prep_save(value, connection) for name, value in columns.items()]


def _documents_were_processed(workspace):
    for n, wish in enumerate(("leave", "begin", "complete", "complete", "fail")):
        values = {"name": f"{n}.pdf", "content_type": "application/pdf", "size_bytes": n, "sha256": f"{n:064}"}
        document = documents.add_document(workspace, values, actor="olga")
        if wish == "fail":
            DocumentProcessingJob.objects.filter(document=document).update(max_attempts=2)
        while wish != "leave" and (claim := documents.begin_next_job(W1)):
            documents.plan(claim.id, 2, actor=W1)
            if wish == "begin":
                documents.advance(claim.id, actor=W1)
                documents.claim_stage(W1)
                break
            _stages_are_done(claim.id, fails=wish == "fail")
            DocumentProcessingJob.objects.filter(pk=claim.id).update(next_attempt_at=clock.now())
        document.refresh_from_db()
    documents.reprocess(document, actor="olga")
    _one_was_purged(Document.objects.filter(status="processed").last())


def _one_was_purged(document):
    write(document.workspace, document_retention_days=30)
    age(document, 31 * 24 * 3600)
    assert purging.purge(document.pk, days=30, actor="w1")


def _stages_are_done(job_id, *, fails):
    job = DocumentProcessingJob.objects.get(pk=job_id)
    while documents.advance(job_id, actor=W1):
        while stage := documents.claim_stage(W1):
            if fails:
                documents.fail_stage(stage, "EXTRACTION_FAILED", "no text", retry_after=0)
            else:
                documents.finish_stage(stage)
        if fails:
            break
    documents.settle(job, actor=W1)


def _runs_have_run(workspace):
    configuration = ConfigurationFactory(workspace=workspace)
    ids = [DocumentFactory(workspace=workspace, status="processed", **_file(n)) for n in range(3)]
    lifecycle.submit_many(configuration, [*ids, ids[0], ids[0]], actor="olga")
    # Its first worker is lost, its second worker finishes it.
    build = Build.objects.get(pk=builds.claim_next_build(W1).id)
    expire_lease(build)
    recovery.rescue_expired(all_work_types(), "w2")
    assert builds.succeed(builds.claim_next_build(W2))
    lifecycle.apply_build_results("w2")
    claim = lifecycle.claim_next_run(W1)
    assert lifecycle.succeed(claim)
    refuse_late(claim, "succeed")
    claim = lifecycle.claim_next_run(W1)
    lifecycle.cancel(claim.states.model.objects.get(pk=claim.id), actor="olga")
    assert not lifecycle.succeed(claim)
    lost = lifecycle.claim_next_run(W1)
    expire_lease(lost.states.model.objects.get(pk=lost.id))
    recovery.rescue_expired(all_work_types(), "w2")
    assert lifecycle.fail(lifecycle.claim_next_run(W2), "TIMED_OUT", "after 120 s")
    lifecycle.prune([claim.id, lost.id], Q(finished_at__isnull=False), actor="w1")
    for status in ("running", "queued"):
        RunFactory(configuration=configuration, input_document=ids[2], status=status)
    _builds_fail(workspace, ids[1])


def _builds_fail(workspace, document):
    failing, cancelled = (ConfigurationFactory(workspace=workspace) for _ in range(2))
    for configuration in (failing, cancelled):
        lifecycle.submit(configuration, document, actor="olga")
    assert builds.fail(builds.claim_next_build(W1), "BUILD_FAILED", "no such package")
    builds.cancel(Build.objects.get(configuration=cancelled), actor="olga")
    lifecycle.apply_build_results("w1")
    assert builds.again(Build.objects.get(configuration=cancelled).pk, actor="olga")
    assert builds.claim_next_build(W1)
    lifecycle.submit(ConfigurationFactory(workspace=workspace), document, actor="olga")


def _slots_have_passed():
    for status in (None, "success", "failed", "skipped_timeout"):
        JobRunFactory(status=status)
    assert job_runs.claim_slot("feeds", clock.now(), W1)
    age(JobRunFactory(job_name="old", status="success"), 86400)


def _file(n):
    return {"name": f"run {n}.pdf", "content_type": "application/pdf", "size_bytes": n, "sha256": f"{n:064}"}
