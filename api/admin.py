from api.audit_admin import AccessAttemptAdmin as AccessAttemptAdmin
from api.audit_admin import AuditEntryAdmin as AuditEntryAdmin
from api.audit_admin import KeptAnswerAdmin as KeptAnswerAdmin
from api.token_admin import ApiTokenAdmin as ApiTokenAdmin
