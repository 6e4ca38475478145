"""Actor commands that create, count and delete the database rows that measurements need. The commands themselves are
not measured.
"""

import time
from datetime import timedelta
from typing import Any

from django.db import connection, models

from benchmarks import processes
from builds import lifecycle as builds
from builds.models import Build, Configuration
from documents.lifecycle import create_workspace
from documents.models import Document
from runs import lifecycle as runs
from runs.models import Run
from work import clock
from work.models import Event, Worker
from work.sql import guards

ACTOR = "benchmark"
# Columns of documents that runs need not wait for.
PROCESSED: dict[str, Any] = {"status": "processed", "content_type": "text/plain", "size_bytes": 1}
# Rows per call of submit_many, if submission is not what is measured.
TOGETHER = 5000
# History is copied in pieces of this many runs. All runs of a piece have the same time.
PIECE = 2000

RAW_TABLES = {
    "postgresql": """
        CREATE TABLE bench_raw (id bigserial PRIMARY KEY, state smallint NOT NULL DEFAULT 0, worker text,
                                lease timestamptz, done timestamptz, payload text) WITH (fillfactor = 70);
        CREATE INDEX bench_raw_ready ON bench_raw (id) WHERE state = 0;
        """,
    "sqlite": """
        CREATE TABLE bench_raw (id INTEGER PRIMARY KEY, state INTEGER NOT NULL DEFAULT 0, worker TEXT, lease REAL,
                                done REAL, payload TEXT);
        CREATE INDEX bench_raw_ready ON bench_raw (id) WHERE state = 0;
        """,
}


def seed(documents: int) -> None:
    """Create a workspace, documents, a configuration whose build is ready, and one whose build never will be."""
    for statement in RAW_TABLES[connection.vendor].split(";"):
        execute(statement)
    workspace = create_workspace("benchmark")
    Document.objects.bulk_create(
        [Document(workspace=workspace, name=f"{n}.txt", sha256=f"{n:064x}", **PROCESSED) for n in range(documents)],
        batch_size=TOGETHER,
    )
    for name in ("ready", "unready"):
        Configuration.objects.create(workspace=workspace, name=name, files={"main.py": f"# {name}"})
    builds.get_or_create_build(configuration("ready"), actor=ACTOR)
    claim = builds.claim_next_build(ACTOR)
    assert claim is not None
    assert builds.succeed(claim)
    connection.close()


def configuration(name: str) -> Configuration:
    return Configuration.objects.get(name=name)


def documents(number: int, offset: int = 0) -> list[Document]:
    found = list(Document.objects.order_by("pk").defer("text")[offset : offset + number])
    assert len(found) == number, f"the benchmark was seeded with too few documents: {len(found)} of {number}"
    return found


def fill(number: int, *, name: str = "ready", offset: int = 0) -> float:
    """Queue a run for each of this many documents. Return the seconds that this took."""
    chosen, of = documents(number, offset), configuration(name)
    began = time.monotonic()
    for start in range(0, number, TOGETHER):
        runs.submit_many(of, chosen[start : start + TOGETHER], actor=ACTOR)
    return round(time.monotonic() - began, 3)


def fill_raw(number: int) -> None:
    execute("DELETE FROM bench_raw")
    execute(f"INSERT INTO bench_raw (payload) {_numbers(number)} SELECT 'x' FROM numbers")  # noqa: S608  # no user input


def busy(number: int) -> None:
    """Create a running run of one document, and queue this many further runs of the same document."""
    of, (document,) = configuration("ready"), documents(1)
    runs.submit(of, document, actor=ACTOR)
    claim = runs.claim_next_run(ACTOR)
    assert claim is not None
    # Extend the lease, because no worker renews it and recovery would end the run.
    execute("UPDATE runs SET lease_expires_at = %s WHERE id = %s", [clock.now() + timedelta(days=1), claim.id])
    for start in range(0, number, TOGETHER):
        runs.submit_many(of, [document] * min(TOGETHER, number - start), actor=ACTOR)
    assert not Run.objects.filter(status="queued", gate="").exists()


def unready(number: int) -> None:
    """Queue this many runs, of many documents, whose build is not ready."""
    each = min(number, 1000)
    for _ in range(0, number, each):
        fill(each, name="unready", offset=1)
    assert not Run.objects.filter(status="queued", gate="").exists()


def open_all_gates() -> int:
    """Open the gates of all queued runs, so that the claim itself has to check the conditions. Submissions never leave
    this state.
    """
    return execute("UPDATE runs SET gate = '' WHERE status = 'queued'")


def history(number: int) -> None:
    """Create this many finished runs with their events, as copies of one run that ADE itself has executed."""
    fill(1)
    claim = runs.claim_next_run(ACTOR)
    assert claim is not None
    assert runs.succeed(claim)
    _without_foreign_keys(lambda: _copy(claim.id, number))


def clear(behind: int) -> None:
    """Delete all runs after the one with this ID, and their events."""
    with guards.retention():
        execute("DELETE FROM events WHERE subject_kind = 'run' AND subject_id > %s", [behind])
    execute("DELETE FROM runs WHERE id > %s", [behind])


def last_run() -> int:
    return int(Run.objects.aggregate(last=models.Max("pk"))["last"] or 0)


def ready_build() -> int:
    return Build.objects.get(status="ready").pk


def settle() -> None:
    """Vacuum and write a checkpoint, so that every measurement starts from the same point."""
    if connection.vendor == "postgresql":
        execute("VACUUM ANALYZE")
        execute("CHECKPOINT")
    else:
        execute("PRAGMA wal_checkpoint(TRUNCATE)")


def close() -> None:
    """Close the connection, so that the database can be copied."""
    connection.close()


def sizes() -> dict[str, int]:
    """Return the sizes, in bytes, of the tables of runs and events and of their indexes."""
    if connection.vendor != "postgresql":
        return {}
    found = {}
    for table in ("runs", "events"):
        for what in ("pg_table_size", "pg_indexes_size"):
            found[f"{table} {what[3:-5]}"] = fetch(f"SELECT {what}('{table}')")[0][0]
    return found


def server_process() -> int:
    """Return the PID of the PostgreSQL server process that is the parent of all backends."""
    return processes.parent(fetch("SELECT pg_backend_pid()")[0][0])


def workers_ready() -> int:
    return Worker.objects.filter(stopped_at__isnull=True).count()


def left() -> int:
    """Return how many runs can be claimed or are running."""
    return Run.objects.filter(status="queued", gate="").count() + Run.objects.filter(status="running").count()


def drained(behind: int) -> dict[str, Any]:
    """Return the workers' speed, by the times in the rows, and the number of events per run."""
    done = Run.objects.filter(pk__gt=behind, status="succeeded")
    span = done.aggregate(first=models.Min("started_at"), last=models.Max("finished_at"), number=models.Count("pk"))
    events = Event.objects.filter(subject_kind="run", subject_id__gt=behind).count()
    return {
        "number": span["number"],
        "seconds": (span["last"] - span["first"]).total_seconds() if span["number"] else 0.0,
        "events_each": events / span["number"] if span["number"] else 0.0,
        "contentions": Event.objects.filter(kind="SCHEDULER_CONTENTION", at__gte=span["first"]).count()
        if span["number"]
        else 0,
    }


def explain(sql: str, params: list[Any] | None = None) -> str:
    return "\n".join(row[0] for row in fetch(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", params))


def execute(sql: str, params: list[Any] | None = None) -> int:
    if not sql.strip():
        return 0
    with connection.cursor() as cursor:
        cursor.execute(sql, params or None)
        return int(cursor.rowcount)


def fetch(sql: str, params: list[Any] | None = None) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params or None)
        return list(cursor.fetchall())


def _numbers(upto: int) -> str:
    if connection.vendor == "postgresql":
        return f"WITH numbers (n) AS (SELECT generate_series(1, {upto}))"
    return f"WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {upto})"  # noqa: S608  # no user input


def _copy(run_id: int, number: int) -> None:
    document_ids = list(Document.objects.order_by("pk").values_list("pk", flat=True))
    any_document = f"{document_ids[0]} + (n * 7919) %% {len(document_ids)}"
    changed = {"created_at": "%s", "started_at": "%s", "finished_at": "%s", "input_document_id": any_document}
    of_run, of_event = _columns(Run), _columns(Event)
    from_run = ", ".join(changed.get(name, name) for name in of_run)
    from_event = ", ".join({"subject_id": "r.id", "at": "r.created_at"}.get(name, f"e.{name}") for name in of_event)
    insert_runs = (
        f"INSERT INTO runs ({', '.join(of_run)}) {_numbers(PIECE)}"  # noqa: S608  # no user input
        f" SELECT {from_run} FROM runs, numbers WHERE id = %s AND n <= %s"
    )
    insert_events = (
        f"INSERT INTO events ({', '.join(of_event)}) SELECT {from_event} FROM runs r, events e"  # noqa: S608  # no user input
        " WHERE e.subject_kind = 'run' AND e.subject_id = %s AND r.id > %s ORDER BY r.id, e.sequence"
    )
    moment = clock.now() - timedelta(days=30)
    for start in range(0, number, PIECE):
        before = last_run()
        moment += timedelta(seconds=2)
        at = connection.ops.adapt_datetimefield_value(moment)
        execute(insert_runs, [at, at, at, run_id, number - start])
        execute(insert_events, [run_id, before])


def _columns(model: type[models.Model]) -> list[str]:
    return [str(field.column) for field in model._meta.concrete_fields if not field.primary_key]


def _without_foreign_keys(do: Any) -> None:
    """Call `do` without foreign key checks. They would only cost time, because every new row copies a checked one."""
    off, on = {
        "postgresql": ("SET session_replication_role = replica", "SET session_replication_role = origin"),
        "sqlite": ("PRAGMA foreign_keys = OFF", "PRAGMA foreign_keys = ON"),
    }[connection.vendor]
    execute(off)
    try:
        do()
    finally:
        execute(on)
