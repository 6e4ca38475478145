from api.models.answers import KeptAnswer
from api.models.audit import AuditEntry, AuditEntryQuerySet
from api.models.tokens import ApiToken, ApiTokenQuerySet, Scope

__all__ = [
    "ApiToken",
    "ApiTokenQuerySet",
    "AuditEntry",
    "AuditEntryQuerySet",
    "KeptAnswer",
    "Scope",
]
