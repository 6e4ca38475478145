"""Invariants of builds; see `work/invariants.py`."""

from work.invariants import DEFECT, Invariant

INVARIANTS = (
    Invariant(
        "a_fingerprint_has_one_build",
        "A configuration has one build per fingerprint.",
        lambda dialect: (
            """
            SELECT 'build', MAX(id) FROM builds GROUP BY configuration_id, fingerprint HAVING COUNT(*) > 1
            UNION ALL
            SELECT 'build', id FROM builds WHERE fingerprint = ''"""
        ),
        "The constraints of builds are missing: compare the schema with the migrations.",
    ),
    Invariant(
        "a_build_is_made_once_for_each_time_it_was_queued",
        "A build is started once per claim, and at most once each time it was queued.",
        lambda dialect: (
            """
            SELECT 'build', b.id FROM builds b LEFT JOIN (
                SELECT subject_id,
                    SUM(CASE WHEN kind = 'BUILD_STARTED' THEN 1 ELSE 0 END) AS starts,
                    COUNT(DISTINCT CASE WHEN kind = 'BUILD_STARTED' THEN claim_token END) AS tokens,
                    SUM(CASE WHEN to_status = 'queued' THEN 1 ELSE 0 END) AS queued
                FROM events WHERE subject_kind = 'build' AND to_status <> '' GROUP BY subject_id
            ) e ON e.subject_id = b.id
            WHERE COALESCE(e.starts, 0) <> b.claim_token OR e.tokens <> e.starts OR e.starts > e.queued"""
        ),
        DEFECT,
    ),
    Invariant(
        "a_ready_build_stays_ready",
        "Nothing happens to a build after it has become ready.",
        lambda dialect: (
            """
            SELECT 'build', subject_id FROM events WHERE subject_kind = 'build' AND to_status <> '' GROUP BY subject_id
            HAVING MAX(sequence) > MIN(CASE WHEN to_status = 'ready' THEN sequence END)"""
        ),
        DEFECT,
    ),
    Invariant(
        "an_accepted_cancel_of_a_build_binds",
        "A build whose cancellation was accepted ends as cancelled.",
        lambda dialect: (
            "SELECT 'build', id FROM builds WHERE cancel_requested_at IS NOT NULL AND status IN ('ready', 'failed')"
        ),
        DEFECT,
    ),
)
