"""The history of deliveries, for the people who look after webhooks."""

from typing import Any

from webhooks.models import Delivery
from work.models import Event

# The latest events of a delivery that are shown.
MOST_EVENTS = 100


def attempts_of(delivery: Delivery) -> list[dict[str, Any]]:
    """Return the history of a delivery, oldest first."""
    events = Event.objects.about("delivery", delivery.pk).order_by("-sequence")[:MOST_EVENTS]
    return [_attempt(event) for event in reversed(events)]


def _attempt(event: Event) -> dict[str, Any]:
    told = event.data or {}
    said = {name: told.get(name) for name in ("status", "seconds", "answer")}
    return {"at": event.at, "event": event.kind, "message": event.message, **said}
