"""Creates deliveries from events. One worker follows the table of events. It inserts the deliveries and saves its
position in the same transaction, so a crash loses and repeats nothing.
"""

import structlog
from django.db import transaction

from schedules import lease
from webhooks import lifecycle, payloads
from webhooks.models import Delivery, Webhook, WebhookTail
from work import failpoints
from work.tail import EventRow, Position, Tail

# Most reads per call; the next tick continues.
MOST_READS = 20

log = structlog.get_logger(__name__)


class Follower:
    """Keeps its tail between calls, because it takes two reads to see that a gap in the IDs will never be filled."""

    def __init__(self) -> None:
        self._tail: Tail | None = None
        self._written = ""

    def follow(self, owner: str) -> int:
        """Read new events and return how many deliveries were created."""
        if not Webhook.objects.there().exists() or not lease.take(owner, WebhookTail):
            self._tail = None
            return 0
        created = 0
        for _ in range(MOST_READS):
            if self._tail is None:
                self._written = WebhookTail.objects.get(pk=WebhookTail.ONLY).position
                self._tail = Tail(Position.from_text(self._written) if self._written else Position.now())
            events = self._tail.read()
            try:
                created += self._write(self._tail, events, owner)
            except BaseException:
                # Discard the tail, so that these events are read again.
                self._tail = None
                raise
            if not events:
                break
        return created

    def _write(self, tail: Tail, events: list[EventRow], owner: str) -> int:
        position = tail.position.to_text()
        # If there are more gaps than the text can hold, the position stays the same even though events were read.
        if position == self._written and not events:
            return 0
        with transaction.atomic():
            # Update only from the position that we started at: another worker may follow the events by now, or the
            # position may have been reset.
            mine = WebhookTail.objects.filter(pk=WebhookTail.ONLY, owner=owner, position=self._written)
            if not mine.update(position=position):
                log.info("webhooks.follower_replaced", owner=owner)
                self._tail = None
                return 0
            created = _deliver([event for event in events if (event.subject_kind, event.kind) in payloads.TOPICS])
            failpoints.hit("delivery.written")
        self._written = position
        return created


def _deliver(events: list[EventRow]) -> int:
    if not events:
        return 0
    webhooks = list(Webhook.objects.there().only("workspace_id", "topics", "created_at"))
    # Some events may be read twice, so existing deliveries are skipped. `webhook_id__in` is needed for the index, which
    # starts with that column.
    existing = Delivery.objects.filter(
        webhook_id__in=[webhook.pk for webhook in webhooks], event_id__in=[event.id for event in events], resend_of=None
    )
    pairs = set(existing.values_list("event_id", "webhook_id"))
    created = 0
    for event, workspace_id, payload in payloads.payloads_of(events):
        webhook_ids = [
            webhook.pk
            for webhook in webhooks
            if webhook.workspace_id == workspace_id
            and payload["topic"] in webhook.topics
            and event.at >= webhook.created_at
            and (event.id, webhook.pk) not in pairs
        ]
        created += len(lifecycle.deliver(event.id, payload["topic"], payload, webhook_ids))
    return created
