from api.models.answers import KeptAnswer
from api.models.audit import AuditEntry, AuditEntryQuerySet
from api.models.tokens import ApiToken, ApiTokenQuerySet, Scope
from api.models.webhooks import PING, Delivery, DeliveryQuerySet, Topic, Webhook, WebhookTail

__all__ = [
    "PING",
    "ApiToken",
    "ApiTokenQuerySet",
    "AuditEntry",
    "AuditEntryQuerySet",
    "Delivery",
    "DeliveryQuerySet",
    "KeptAnswer",
    "Scope",
    "Topic",
    "Webhook",
    "WebhookTail",
]
