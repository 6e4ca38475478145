from datetime import datetime
from typing import Annotated, Any

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from api.callers import ADMIN, caller_of
from api.errors import Problem
from api.frame import Out, responses
from api.ids import Id
from api.models import ApiToken, AuditEntry
from api.moments import Moment
from api.pages import Listing, Page, page
from workspaces.models import Membership, Workspace

routes = Router(tags=["audit"])


# Databases do not accept NUL in text.
Word = Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")]


class AuditEntryOut(Out):
    id: int
    at: datetime
    actor: str
    token_id: int | None
    workspace_id: int | None
    address: str
    request_id: str
    method: str
    path: str
    operation: str
    subject_kind: str | None
    subject_id: int | None
    answered: Annotated[
        int | None, Field(description="status of the response; null if the process died before answering")
    ]


class Audit(Listing):
    workspace_id: Id | None = None
    token_id: Id | None = None
    actor: Word | None = None
    operation: Word | None = None
    since: Moment | None = None
    until: Moment | None = None

    def filters(self) -> dict[str, Any]:
        columns = {"since": "at__gte", "until": "at__lt"}
        return {columns.get(name, name): value for name, value in super().filters().items()}


@routes.get("/audit", response=responses({200: Page[AuditEntryOut]}), auth=ADMIN, summary="List audit entries")
def list_audit(request: HttpRequest, listing: Query[Audit]) -> dict[str, Any]:
    """List the requested changes in the workspaces that you administer, and how they were answered."""
    caller = caller_of(request)
    # Superusers see all entries, including those without a workspace, and even before any workspace exists.
    sees_all = caller.token is None and caller.person.is_superuser
    if not (sees_all or Workspace.objects.administered_by(caller.user).exists()):
        message = f"{caller.actor} is not an admin of any workspace."
        raise Problem("forbidden", message, {"role": Membership.Role.ADMIN})
    if listing.workspace_id is not None:
        caller.require_admin(caller.find(Workspace, listing.workspace_id))
    if listing.token_id is not None:
        caller.find(ApiToken, listing.token_id)
    rows: QuerySet[AuditEntry] = AuditEntry.objects.for_user(caller.user)
    return page(rows.filter(**listing.filters()), listing, row_of)


def row_of(entry: AuditEntry) -> dict[str, Any]:
    return AuditEntryOut.of(entry, subject_kind=entry.subject_kind or None)
