from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from api.callers import ADMIN, Caller, caller_of
from api.errors import Problem
from api.frame import In, Out, responses
from api.pages import Listing, Page, page
from builds.models import Configuration
from documents import retention
from documents.models import MOST_DAYS, Document
from workspaces.models import Membership, Workspace

routes = Router(tags=["workspaces"])

Role = Literal["viewer", "operator", "admin"]
Days = Annotated[int, Field(ge=1, le=MOST_DAYS)]


class WorkspaceOut(Out):
    id: int
    name: str
    created_at: datetime
    document_retention_days: Annotated[int | None, Field(description="how long documents are kept; null: no limit")]
    role: Annotated[Role, Field(description="role of the caller")]


class WorkspaceDetail(WorkspaceOut):
    documents: int
    configurations: int


class MemberOut(Out):
    user: str
    role: Role


class Policy(In):
    document_retention_days: Annotated[Days | None, Field(description="null: no limit")]
    purge: Annotated[bool, Field(description="apply a shorter retention even if documents become due at once")] = False


class RetentionPreview(Schema):
    days: Annotated[Days | None, Field(description="retention to preview (default: the current one)")] = None


class SampleOut(Out):
    id: int
    name: str
    size_bytes: int
    created_at: datetime


class RehearsalOut(Out):
    days: int | None
    documents: Annotated[int, Field(description="documents that would be purged")]
    size_bytes: int
    oldest: datetime | None
    kept: Annotated[int, Field(description="documents of the same age that are kept because work needs them")]
    sample: list[SampleOut]


@routes.get("/workspaces", response=responses({200: Page[WorkspaceOut]}))
def list_workspaces(request: HttpRequest, listing: Query[Listing]) -> dict[str, Any]:
    caller = caller_of(request)
    return page(Workspace.objects.for_user(caller.user), listing, _rows_of(caller))


@routes.get("/workspaces/{id:id}", response=responses({200: WorkspaceDetail}))
def show_workspace(request: HttpRequest, id: int) -> dict[str, Any]:
    caller = caller_of(request)
    return _detail(caller, caller.find(Workspace, id))


@routes.patch(
    "/workspaces/{id:id}", response=responses({200: WorkspaceDetail}, 409), auth=ADMIN, summary="Set retention policy"
)
def set_policy(request: HttpRequest, id: int, body: Policy) -> dict[str, Any]:
    """Set for how many days a workspace keeps the content of its documents."""
    caller, workspace = _find_as_admin(request, id)
    days = body.document_retention_days
    if not body.purge and retention.is_shorter(days, workspace.document_retention_days):
        due = retention.preview(workspace, days)
        if due.documents:
            message = (
                f"{due.documents} documents are older than {days} days and would be purged at once."
                " Set purge to confirm."
            )
            raise Problem("conflict", message, {"documents": due.documents, "size_bytes": due.size_bytes})
    retention.set_policy(workspace, days, actor=caller.actor)
    return _detail(caller, workspace)


@routes.get(
    "/workspaces/{id:id}/retention", response=responses({200: RehearsalOut}), auth=ADMIN, summary="Preview retention"
)
def rehearse(request: HttpRequest, id: int, preview: Query[RetentionPreview]) -> dict[str, Any]:
    """Preview what a retention policy would purge now, without purging."""
    _, workspace = _find_as_admin(request, id)
    days = preview.days if preview.days is not None else workspace.document_retention_days
    return RehearsalOut.of(retention.preview(workspace, days), days=days)


@routes.get("/workspaces/{id:id}/members", response=responses({200: Page[MemberOut]}), auth=ADMIN)
def list_members(request: HttpRequest, id: int, listing: Query[Listing]) -> dict[str, Any]:
    """List the members of a workspace. Only its admins can."""
    _, workspace = _find_as_admin(request, id)
    rows = Membership.objects.filter(workspace=workspace).select_related("user")
    return page(rows, listing, lambda member: {"user": member.user.get_username(), "role": member.role})


def _find_as_admin(request: HttpRequest, id: int) -> tuple[Caller, Workspace]:
    caller = caller_of(request)
    workspace = caller.find(Workspace, id)
    caller.require_admin(workspace)
    return caller, workspace


def _rows_of(caller: Caller) -> Any:
    operated = set(Workspace.objects.operated_by(caller.user).values_list("pk", flat=True))
    administered = set(Workspace.objects.administered_by(caller.user).values_list("pk", flat=True))

    def row_of(workspace: Workspace) -> dict[str, Any]:
        role = Membership.Role.OPERATOR if workspace.pk in operated else Membership.Role.VIEWER
        role = Membership.Role.ADMIN if workspace.pk in administered else role
        return WorkspaceOut.of(workspace, role=role.value)

    return row_of


def _detail(caller: Caller, workspace: Workspace) -> dict[str, Any]:
    counts = {
        "documents": Document.objects.filter(workspace=workspace).count(),
        "configurations": Configuration.objects.filter(workspace=workspace).count(),
    }
    row: dict[str, Any] = _rows_of(caller)(workspace)
    return row | counts
