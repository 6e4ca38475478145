"""The position up to which events have been read for webhooks."""

from webhooks.models import Webhook, WebhookTail
from work.tail import Position


def begin() -> None:
    """Move the position to now if there is no webhook yet: without webhooks, events are not followed. Call it in the
    transaction that creates the webhook.
    """
    WebhookTail.objects.get_or_create(pk=WebhookTail.ONLY)
    # The lock makes concurrent first webhooks wait for each other.
    WebhookTail.objects.select_for_update().get(pk=WebhookTail.ONLY)
    if not Webhook.objects.there().exists():
        WebhookTail.objects.filter(pk=WebhookTail.ONLY).update(position=Position.now().to_text())
