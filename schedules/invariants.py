"""Invariants of job runs: see `work/invariants.py`."""

from schedules.models import JobRun
from work.invariants import DEFECT, Dialect, Invariant, overlaps, words

# A free worker thread claims a due slot within a tick, but each of the jobs before it may take a while.
DUE_SECONDS = 300

_SLOTS = """
    SELECT 'job_run', MAX(id) FROM job_runs GROUP BY job_name, scheduled_for HAVING COUNT(*) > 1
    UNION ALL
    SELECT 'job_run', MAX(id) FROM job_runs WHERE status = 'running' GROUP BY job_name HAVING COUNT(*) > 1"""
_SLOT_LIVES = f"""
    SELECT 'job_run', subject_id FROM events
    WHERE subject_kind = 'job_run' AND to_status IN ({words(JobRun.TERMINAL)})
    GROUP BY subject_id HAVING COUNT(*) > 1"""
_SLOT_SUCCESSES = """
    SELECT 'job_run', MAX(r.id) FROM job_runs r
    JOIN events e ON e.subject_kind = 'job_run' AND e.subject_id = r.id AND e.to_status = 'success'
    GROUP BY r.job_name, r.scheduled_for HAVING COUNT(*) > 1"""


def _forgotten_slots(dialect: Dialect) -> str:
    """Find due slots that no worker has claimed for a long time. A slot is left out if its job is no longer declared or
    has run recently. All slots are left out while a long job keeps a thread busy.
    """
    since = dialect.ago(DUE_SECONDS)
    return f"""
        SELECT 'due_slot', d.id FROM due_slots d
        WHERE COALESCE(d.expires_at, d.due_at) < {since} AND {dialect.a_worker_was_there(DUE_SECONDS)}
            AND EXISTS (SELECT 1 FROM scheduled_jobs j WHERE j.name = d.job_name AND j.retired_at IS NULL)
            AND NOT EXISTS (SELECT 1 FROM job_runs o WHERE o.job_name = d.job_name
                AND (o.status = 'running' OR o.finished_at > {since}))
            AND NOT EXISTS (SELECT 1 FROM job_runs o WHERE o.status = 'running' AND o.started_at < {since})"""


INVARIANTS = (
    Invariant(
        "a_slot_is_claimed_once",
        "A job has one row per slot, and at most one running row.",
        lambda _: _SLOTS,
        "The constraints of job_runs are missing: compare the schema with the migrations.",
    ),
    Invariant(
        "a_slot_ends_once",
        "A job run ends at most once.",
        lambda _: _SLOT_LIVES,
        DEFECT,
    ),
    Invariant(
        "a_slot_succeeds_once",
        "According to its history, a slot of a job succeeds at most once.",
        lambda _: _SLOT_SUCCESSES,
        DEFECT,
    ),
    Invariant(
        "slots_of_a_job_never_overlap",
        "A slot of a job starts only when the one before it has ended.",
        lambda _: overlaps(JobRun, "job_run", "job_name"),
        DEFECT,
    ),
    Invariant(
        "no_due_slot_is_forgotten",
        f"While a worker is alive, a due slot starts or is dropped within {DUE_SECONDS} s after its deadline.",
        _forgotten_slots,
        "`manage.py job why NAME` shows what blocks it. Most likely no worker has a thread for job runs.",
    ),
)
