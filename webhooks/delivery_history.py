"""Reads the history of deliveries, for the people who look after webhooks."""

from typing import Any

from webhooks.models import Delivery
from work.models import Event

# How many of the latest events of a delivery are shown.
MOST_EVENTS = 100


def attempts_of(delivery: Delivery) -> list[dict[str, Any]]:
    """Return the history of a delivery, oldest first."""
    events = Event.objects.about("delivery", delivery.pk).order_by("-sequence")[:MOST_EVENTS]
    return [
        {"at": event.at, "event": event.kind, "message": event.message}
        | {name: (event.data or {}).get(name) for name in ("status", "seconds", "answer")}
        for event in reversed(events)
    ]
