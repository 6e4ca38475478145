"""Creates deliveries from events. One worker follows the table of events. It inserts the deliveries and saves its
position in the same transaction, so a crash loses and repeats nothing.
"""

from collections.abc import Iterable

import structlog
from django.db import transaction

from schedules import lease
from webhooks import lifecycle, payloads
from webhooks.models import Delivery, Webhook, WebhookTail
from webhooks.payloads import TOPICS, Ended
from work import failpoints
from work.tail import Position, Seen, Tail

# Reads per call; the next tick continues.
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
        made = 0
        for _ in range(MOST_READS):
            self._tail = self._tail or self._begun()
            seen = self._tail.read()
            try:
                made += self._write(seen, owner)
            except BaseException:
                # Discard the tail, so that these events are read again.
                self._tail = None
                raise
            if not seen:
                break
        return made

    def _begun(self) -> Tail:
        self._written = WebhookTail.objects.get(pk=WebhookTail.ONLY).position
        return Tail(Position.from_text(self._written) if self._written else Position.now())

    def _write(self, seen: list[Seen], owner: str) -> int:
        assert self._tail is not None
        reached = self._tail.position.to_text()
        # If there are more gaps than the text can hold, the text stays the same, whatever was read.
        if reached == self._written and not seen:
            return 0
        with transaction.atomic():
            # Guarded by the position that we started from: another worker may follow by now, or the position may have
            # been reset.
            mine = WebhookTail.objects.filter(pk=WebhookTail.ONLY, owner=owner, position=self._written)
            if not mine.update(position=reached):
                log.info("webhooks.follower_replaced", owner=owner)
                self._tail = None
                return 0
            made = _deliver(_ended(seen))
            failpoints.hit("delivery.written")
        self._written = reached
        return made


def _ended(seen: Iterable[Seen]) -> list[Ended]:
    return [
        Ended(event.id, event.at, event.subject_kind, event.subject_id, event.to_status, topic.value)
        for event in seen
        if (topic := TOPICS.get((event.subject_kind, event.kind)))
    ]


def _deliver(ended: list[Ended]) -> int:
    if not ended:
        return 0
    webhooks = list(Webhook.objects.there().only("workspace_id", "topics", "created_at"))
    # Some events may be read twice, so existing deliveries are skipped. `webhook_id__in` is there for the index, which
    # starts with that column.
    mine = {"webhook_id__in": [webhook.pk for webhook in webhooks], "event_id__in": [each.id for each in ended]}
    there = set(Delivery.objects.filter(**mine, resend_of=None).values_list("event_id", "webhook_id"))
    made = 0
    for each, (workspace_id, payload) in payloads.workspaces_of(ended).items():
        wanted = [
            webhook.pk
            for webhook in webhooks
            if webhook.workspace_id == workspace_id
            and each.topic in webhook.topics
            and each.at >= webhook.created_at
            and (each.id, webhook.pk) not in there
        ]
        made += len(lifecycle.deliver(each.id, each.topic, payload, wanted))
    return made
