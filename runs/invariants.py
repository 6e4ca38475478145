"""Invariants of runs: see `work/invariants.py`."""

from builds.models import Build
from runs.models import Run
from work.invariants import DEFECT, Dialect, Invariant, overlaps, words

# A run becomes visible a moment after its creation time, when its submission commits.
SUBMISSION_SECONDS = 1
# A write becomes visible to other workers a moment after the time that it records.
COMMIT_SECONDS = 1
# Workers open gates every few ticks, `gates.BATCH` at a time. In this time they open the gates of a hundred thousand
# runs of one build.
GATE_SECONDS = 300

_ENDED = words(Run.TERMINAL)

_ONE_RUNNING = """
    SELECT 'document', input_document_id FROM runs
    WHERE status = 'running' GROUP BY input_document_id HAVING COUNT(*) > 1"""
_LIVES = f"""
    SELECT 'run', subject_id FROM events WHERE subject_kind = 'run' AND to_status <> '' GROUP BY subject_id
    HAVING SUM(CASE WHEN from_status = 'queued' AND to_status = 'running' THEN 1 ELSE 0 END) > 1
        OR SUM(CASE WHEN to_status IN ({_ENDED}) THEN 1 ELSE 0 END) > 1
        OR MAX(CASE WHEN to_status NOT IN ({_ENDED}) THEN sequence END)
            > MIN(CASE WHEN to_status IN ({_ENDED}) THEN sequence END)"""
_UNREADY_BUILDS = """
    SELECT 'run', r.id FROM runs r JOIN builds b ON b.id = r.build_id
    WHERE r.status IN ('running', 'succeeded') AND b.status <> 'ready'"""
_BROKEN_CANCELS = (
    "SELECT 'run', id FROM runs WHERE cancel_requested_at IS NOT NULL AND status IN ('succeeded', 'failed')"
)


def _overtaken(dialect: Dialect) -> str:
    """Find runs that a younger run of the same document overtook, although their own build had ended and they did not
    wait until the document is processed.
    """
    # Whether the document's last change of status before the younger run started was that it was processed.
    processed = f"""EXISTS (
                SELECT 1 FROM events e WHERE e.subject_kind = 'document' AND e.subject_id = older.input_document_id
                    AND e.to_status = 'processed' AND {dialect.later("e.at", COMMIT_SECONDS)} < younger.started_at
                    AND NOT EXISTS (SELECT 1 FROM events n WHERE n.subject_kind = 'document'
                        AND n.subject_id = e.subject_id AND n.sequence > e.sequence
                        AND n.to_status IN ('processing', 'failed') AND n.at <= younger.started_at))"""
    left = f"COALESCE({{0}}.started_at, {{0}}.finished_at, {dialect.never()})"
    # The inner query is an optimisation: it finds the few runs that started before an older one had left the queue.
    return f"""
        SELECT DISTINCT 'run', older.id FROM (
            SELECT r.input_document_id, r.created_at, r.started_at,
                MAX({left.format("r")}) OVER (PARTITION BY r.input_document_id ORDER BY r.created_at, r.id
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS older_left_at
            FROM runs r
        ) younger
        JOIN runs older ON older.input_document_id = younger.input_document_id
        JOIN builds b ON b.id = older.build_id
        WHERE younger.started_at < younger.older_left_at
            AND younger.started_at < {left.format("older")}
            AND {dialect.later("older.created_at", SUBMISSION_SECONDS)} < younger.created_at
            AND b.status IN ({words(Build.TERMINAL)})
            AND {dialect.later("b.finished_at", COMMIT_SECONDS)} < younger.started_at
            AND (older.waits_for_processing = {_false(dialect)} OR {processed})"""


def _forgotten_gates(dialect: Dialect) -> str:
    since = dialect.ago(GATE_SECONDS)
    return f"""
        SELECT 'run', r.id FROM runs r
        WHERE r.status = 'queued' AND r.gate = 'document' AND r.created_at < {since}
            AND {dialect.a_worker_was_there(GATE_SECONDS)}
            AND NOT EXISTS (SELECT 1 FROM runs o WHERE o.input_document_id = r.input_document_id
                AND (o.status = 'running' OR o.finished_at > {since}))
            AND NOT EXISTS (SELECT 1 FROM runs o WHERE o.input_document_id = r.input_document_id
                AND o.status = 'queued' AND o.gate IN ('', 'document')
                AND (o.created_at < r.created_at OR (o.created_at = r.created_at AND o.id < r.id)))
            AND EXISTS (SELECT 1 FROM builds b WHERE b.id = r.build_id AND b.finished_at < {since})
        UNION ALL
        SELECT 'run', r.id FROM runs r JOIN builds b ON b.id = r.build_id
        WHERE r.status = 'queued' AND r.gate = 'build' AND r.created_at < {since}
            AND b.finished_at < {since} AND {dialect.a_worker_was_there(GATE_SECONDS)}
        UNION ALL
        SELECT 'run', r.id FROM runs r JOIN documents d ON d.id = r.input_document_id
        WHERE r.status = 'queued' AND r.gate IN ('process', 'failed') AND r.created_at < {since}
            AND (r.gate = 'failed' OR d.status <> 'processing')
            AND d.last_event_at < {since} AND {dialect.a_worker_was_there(GATE_SECONDS)}"""


def _unknown_waits(dialect: Dialect) -> str:
    return f"""
        SELECT 'build', b.id FROM builds b WHERE b.awaited = {_false(dialect)} AND EXISTS (
            SELECT 1 FROM runs r WHERE r.build_id = b.id AND r.status = 'queued' AND r.gate = 'build')"""


def _false(dialect: Dialect) -> str:
    return "FALSE" if dialect.vendor == "postgresql" else "0"


_LEFT_OF_PRUNED = """
    SELECT DISTINCT 'run', r.id FROM runs r JOIN artifacts a ON a.run_id = r.id WHERE r.pruned_at IS NOT NULL"""
INVARIANTS = (
    Invariant(
        "one_run_at_a_time_is_running_on_a_document",
        "A document has at most one running run.",
        lambda _: _ONE_RUNNING,
        "The constraint run_one_running_per_document is missing: compare the schema with the migrations.",
    ),
    Invariant(
        "runs_of_a_document_never_overlap",
        "A run of a document starts only when the one before it has ended.",
        lambda _: overlaps(Run, "run", "input_document_id"),
        DEFECT,
    ),
    Invariant(
        "a_run_starts_once_and_ends_once",
        "A run is claimed at most once and ends at most once, and nothing comes after its end.",
        lambda _: _LIVES,
        DEFECT,
    ),
    Invariant(
        "a_run_runs_only_with_a_ready_build",
        "The build of every running or succeeded run is ready.",
        lambda _: _UNREADY_BUILDS,
        DEFECT,
    ),
    Invariant(
        "an_accepted_cancel_of_a_run_binds",
        "A run whose cancellation was accepted ends as cancelled.",
        lambda _: _BROKEN_CANCELS,
        DEFECT,
    ),
    Invariant(
        "no_run_overtakes_an_older_one_of_its_document",
        "A run starts before an older one of its document only while the build of the older one is unfinished, or"
        " while the older one waits until the document is processed.",
        _overtaken,
        "Nothing needs to be done for these runs. Some may be older than the upgrade to first in, first out within a"
        " document (migration runs.0008); report later ones with their events.",
    ),
    Invariant(
        "no_gate_stays_shut",
        f"While a worker is alive, no queued run is still blocked {GATE_SECONDS} s after its reason to wait has ended.",
        _forgotten_gates,
        "`manage.py rescue` opens gates now. If there are many and their number falls, wait; otherwise read the logs.",
    ),
    Invariant(
        "a_build_knows_that_runs_wait_for_it",
        "A build that a queued run waits for is marked as awaited, because only such builds are checked.",
        _unknown_waits,
        DEFECT,
    ),
    Invariant(
        "a_pruned_run_has_made_nothing",
        "A pruned run has no artifacts.",
        lambda _: _LEFT_OF_PRUNED,
        DEFECT,
    ),
)
