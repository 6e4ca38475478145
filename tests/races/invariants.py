"""Invariants of the database that hold at all times: the checks of `manage.py doctor`, and stricter ones for tests."""

from django.db import connection

from builds import fingerprint
from builds.models import Build
from work.invariants import all_invariants
from work.models import Event

# The documents of most tests have no job, which the product would report as waiting for ever.
NOT_FOR_TESTS = {"a_document_stands_where_its_last_job_stands"}
# Stricter than in the product, which has to allow for work in progress and for unknown actors. Whether a run waited for
# its document is known only if the document's status did not change meanwhile: events are not in the order of commits.
FOR_TESTS = {
    "a document that has a job stands where its last one stands": """
        SELECT 'document', d.id FROM documents d JOIN document_processing_jobs j ON j.document_id = d.id
        WHERE j.id = (SELECT MAX(id) FROM document_processing_jobs WHERE document_id = d.id) AND d.status <>
            CASE j.status WHEN 'COMPLETED' THEN 'processed' WHEN 'FAILED' THEN 'failed' ELSE 'processing' END""",
    "only an oldest run of a document starts": """
        WITH e AS (SELECT subject_id AS run,
                          MIN(CASE WHEN kind = 'RUN_QUEUED' THEN id END) AS queued,
                          MIN(CASE WHEN kind = 'RUN_STARTED' THEN id END) AS started,
                          MIN(CASE WHEN to_status NOT IN ('queued', 'running', '') THEN id END) AS ended
                   FROM events WHERE subject_kind = 'run' GROUP BY subject_id),
             b AS (SELECT subject_id AS build, MAX(id) AS ready FROM events WHERE kind = 'BUILD_READY'
                   GROUP BY subject_id),
             r AS (SELECT runs.id, input_document_id AS document, created_at, build_id,
                          CAST(waits_for_processing AS INTEGER) AS waits, e.*
                   FROM runs JOIN e ON e.run = runs.id)
        SELECT 'run', older.id, younger.id FROM r older JOIN r younger ON older.document = younger.document
            AND (older.created_at < younger.created_at
                 OR (older.created_at = younger.created_at AND older.id < younger.id))
        JOIN b ON b.build = older.build_id AND b.ready < older.queued
        WHERE older.queued < younger.queued
        AND (older.waits = 0 OR NOT EXISTS (
            SELECT 1 FROM events d WHERE d.subject_kind = 'document' AND d.subject_id = older.document
            AND d.to_status <> '' AND d.id > (SELECT MIN(queued) FROM r first WHERE first.document = older.document)))
        AND COALESCE(older.started, older.ended, younger.started + 1) > younger.started""",
    "claim tokens never fall": """
        SELECT a.subject_kind, a.subject_id FROM events a JOIN events b ON a.subject_kind = b.subject_kind
            AND a.subject_id = b.subject_id AND b.sequence = a.sequence + 1 AND b.claim_token < a.claim_token""",
    "each recovery leaves a receipt": """
        SELECT subject_kind, subject_id FROM events e WHERE actor LIKE 'recovery by %' AND NOT EXISTS (
            SELECT 1 FROM events r WHERE r.subject_kind = e.subject_kind AND r.subject_id = e.subject_id
            AND r.sequence = e.sequence + 1 AND r.kind = 'RECOVERED')""",
    "each receipt is of a recovery": """
        SELECT subject_kind, subject_id FROM events r WHERE kind = 'RECOVERED' AND NOT EXISTS (
            SELECT 1 FROM events e WHERE e.subject_kind = r.subject_kind AND e.subject_id = r.subject_id
            AND e.sequence = r.sequence - 1 AND e.from_status <> '' AND e.to_status <> e.from_status)""",
    "a write is refused as late only if another claim has ended the work": """
        SELECT r.subject_kind, r.subject_id FROM events r JOIN events own ON own.subject_kind = r.subject_kind
            AND own.subject_id = r.subject_id AND own.sequence < r.sequence AND own.actor = r.actor
            AND own.from_status IN ('running', 'building', 'RUNNING', 'doing') AND own.to_status <> own.from_status
            AND own.claim_token = CAST({token} AS INTEGER)
        WHERE r.kind = 'LATE_WRITE_REFUSED'""",
}

# The JSON value `token` of an event.
TOKEN = dict.fromkeys(("postgresql", "sqlite"), "r.data ->> 'token'") | {"microsoft": "JSON_VALUE(r.data, '$.token')"}
AFTER_QUIESCENCE = {
    "nothing is under way": """
        SELECT 'run', id FROM runs WHERE status IN ('queued', 'running')
        UNION ALL SELECT 'build', id FROM builds WHERE status IN ('queued', 'building')
        UNION ALL SELECT 'job', id FROM document_processing_jobs WHERE status IN ('PENDING', 'PROCESSING')
        UNION ALL SELECT 'stage', id FROM stages WHERE status = 'RUNNING'
        UNION ALL SELECT 'job_run', id FROM job_runs WHERE status = 'running'
        UNION ALL SELECT 'errand', id FROM errands WHERE status IN ('queued', 'doing')""",
}


def assert_all_hold(*, quiet=False):
    invariants = [invariant for invariant in all_invariants() if invariant.name not in NOT_FOR_TESTS]
    broken = {invariant.promise: found for invariant in invariants if (found := invariant.breaches(5))}
    asked = FOR_TESTS | (AFTER_QUIESCENCE if quiet else {})
    broken |= {name: found for name, sql in asked.items() if (found := _rows(sql))}
    broken |= {"A build's snapshot is what its fingerprint says.": found} if (found := _strangers()) else {}
    assert not broken, _explained(broken)


def _strangers():
    snapshots = Build.objects.values_list("pk", "fingerprint", "snapshot")
    prints = ((pk, found, fingerprint.of_build(fingerprint.of_contents(of))) for pk, found, of in snapshots)
    return [("build", pk) for pk, found, expected in prints if found != expected]


def _rows(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql.replace("{token}", TOKEN[connection.vendor]))
        return cursor.fetchall()


def _explained(broken):
    lines = []
    for promise, found in broken.items():
        lines.append(f"Violated by {found}: {promise}")
        kind, id = found[0][:2]
        for e in Event.objects.filter(subject_kind=kind, subject_id=id).order_by("sequence")[:40]:
            lines.append(f"    {e} {e.from_status}->{e.to_status} token {e.claim_token} by {e.actor}: {e.message}")
    return "\n".join(lines)
