"""How far events have been read for webhooks."""

from api.models import Webhook, WebhookTail
from work.tail import Position


def begin() -> None:
    """In the transaction in which a webhook is made. As long as there was none nobody has read on: from here, then."""
    WebhookTail.objects.get_or_create(pk=WebhookTail.ONLY)
    # The lock under which the first one is the first.
    WebhookTail.objects.select_for_update().get(pk=WebhookTail.ONLY)
    if not Webhook.objects.there().exists():
        WebhookTail.objects.filter(pk=WebhookTail.ONLY).update(position=Position.now().to_text())
