from api.audit_admin import AccessAttemptAdmin as AccessAttemptAdmin
from api.audit_admin import AuditEntryAdmin as AuditEntryAdmin
from api.audit_admin import KeptAnswerAdmin as KeptAnswerAdmin
from api.token_admin import ApiTokenAdmin as ApiTokenAdmin
from api.webhook_admin import DeliveryAdmin as DeliveryAdmin
from api.webhook_admin import WebhookAdmin as WebhookAdmin
