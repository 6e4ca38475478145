"""The caller of the API."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from api.callers import caller_of
from api.frame import Out, responses
from workspaces.models import Membership, Workspace

routes = Router(tags=["me"])

# List at most this many workspaces: superusers see all.
MOST_NAMED = 200


class MyTokenOut(Out):
    name: str
    prefix: str
    scopes: list[str]
    expires_at: datetime | None


class MyWorkspaceOut(Out):
    id: int
    name: str
    role: Literal["viewer", "operator", "admin"]


class MeOut(Out):
    user: str
    is_superuser: bool
    token: Annotated[MyTokenOut | None, Field(description="null if the caller uses a session")]
    workspaces: Annotated[
        list[MyWorkspaceOut], Field(description=f"the first {MOST_NAMED} by ID; /workspaces lists all")
    ]


@routes.get("/me", response=responses({200: MeOut}), summary="Show caller")
def show(request: HttpRequest) -> dict[str, Any]:
    """Show the caller, with the scopes of the token and the roles in workspaces."""
    caller = caller_of(request)
    person = caller.person
    workspaces = list(Workspace.objects.for_user(caller.user).order_by("pk")[:MOST_NAMED])
    ids = [workspace.pk for workspace in workspaces]
    operated, administered = (
        set(rows.filter(pk__in=ids).values_list("pk", flat=True))
        for rows in (Workspace.objects.operated_by(caller.user), Workspace.objects.administered_by(caller.user))
    )
    # With a token, `caller.user` has no higher role than the token's scopes allow.
    roles = dict.fromkeys(ids, Membership.Role.VIEWER)
    roles |= dict.fromkeys(operated, Membership.Role.OPERATOR) | dict.fromkeys(administered, Membership.Role.ADMIN)
    return {
        "user": person.get_username(),
        "is_superuser": person.is_superuser,
        "token": MyTokenOut.of(caller.token) if caller.token else None,
        "workspaces": [MyWorkspaceOut.of(workspace, role=roles[workspace.pk].value) for workspace in workspaces],
    }
