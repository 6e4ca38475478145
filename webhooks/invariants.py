"""Invariants of webhooks and their deliveries: see `work/invariants.py`."""

from work.invariants import DEFECT, RESCUE_SECONDS, Invariant

# Generous, because a due delivery may have to wait for slow receivers.
TURN_SECONDS = 900

INVARIANTS = (
    Invariant(
        "an_event_is_delivered_once",
        "A webhook has one delivery per event, apart from deliveries that were sent again.",
        lambda dialect: (
            """
        SELECT 'delivery', MAX(id) FROM webhook_deliveries
        WHERE resend_of IS NULL AND event_id IS NOT NULL GROUP BY webhook_id, event_id HAVING COUNT(*) > 1"""
        ),
        "The constraints of webhook_deliveries are missing: compare the schema with the migrations.",
    ),
    Invariant(
        "a_delivery_that_is_due_has_its_turn",
        f"While a worker is alive, an active webhook waits at most {TURN_SECONDS} s for its turn, and the waiting"
        " deliveries of a removed webhook are dropped within the same time.",
        lambda dialect: (
            f"""
        SELECT 'delivery', d.id FROM webhook_deliveries d JOIN webhooks h ON h.id = d.webhook_id
        WHERE d.status = 'queued' AND d.next_attempt_at < {dialect.ago(TURN_SECONDS)} AND h.paused_at IS NULL
            AND (h.removed_at IS NULL OR h.removed_at < {dialect.ago(TURN_SECONDS)})
            AND h.tried_at < {dialect.ago(TURN_SECONDS)} AND {dialect.a_worker_was_there(TURN_SECONDS)}
            AND NOT EXISTS (SELECT 1 FROM webhook_deliveries s WHERE s.webhook_id = h.id AND s.status = 'sending')"""
        ),
        "Look for `slot.failed` and `housekeeping.task_failed` in the logs of the workers. ADE_WEBHOOK_CONCURRENCY is"
        " the number of deliveries that a worker sends at once.",
    ),
    Invariant(
        "events_are_followed_for_webhooks",
        f"While a worker is alive, events are read for webhooks at least every {RESCUE_SECONDS} s.",
        lambda dialect: (
            f"""
        SELECT 'webhook', h.id FROM webhooks h
        WHERE h.removed_at IS NULL AND h.created_at < {dialect.ago(RESCUE_SECONDS)}
            AND {dialect.a_worker_was_there(RESCUE_SECONDS)}
            AND NOT EXISTS (SELECT 1 FROM webhook_tail t WHERE t.expires_at > {dialect.ago(RESCUE_SECONDS)})"""
        ),
        f"Look for `housekeeping.task_failed` in the logs of the workers. {DEFECT}",
    ),
)
