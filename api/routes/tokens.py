from datetime import datetime
from typing import Annotated, Any, Literal

from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Query, Router
from pydantic import Field

from api import grants, tokens
from api.callers import OPERATE, caller_of, not_usable
from api.errors import Problem
from api.frame import In, Out, empty_to_null, responses
from api.grants import Refused
from api.idempotency import REPLAYED, create_once
from api.ids import Id
from api.models import ApiToken, Scope
from api.moments import Moment
from api.pages import Listing, Page, page
from workspaces.models import Workspace

routes = Router(tags=["tokens"])

State = Literal["usable", "expired", "revoked"]
ScopeName = Literal["read", "operate", "admin", "installation"]


class TokenOut(Out):
    id: int
    name: str
    prefix: Annotated[str, Field(description="beginning of the token; the rest is not stored")]
    state: State
    scopes: list[ScopeName]
    workspace_id: int
    user: str
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    last_used_at: datetime | None
    last_used_from: str | None


class NewTokenOut(TokenOut):
    token: Annotated[
        str | None,
        Field(description="the token, shown in this response only; null in a repeated response"),
    ]


class NewToken(In):
    workspace_id: Id
    name: Annotated[str, Field(min_length=1, max_length=grants.LONGEST_NAME)]
    scopes: Annotated[list[ScopeName], Field(max_length=len(Scope), description="read is always included")] = []
    expires_at: Annotated[Moment | None, Field(strict=False)] = None


class Tokens(Listing):
    workspace_id: Id | None = None


@routes.get("/tokens", response=responses({200: Page[TokenOut]}))
def list_tokens(request: HttpRequest, listing: Query[Tokens]) -> dict[str, Any]:
    """List your tokens and, if you are an admin of a workspace, all of its tokens."""
    caller = caller_of(request)
    if listing.workspace_id is not None:
        caller.find(Workspace, listing.workspace_id)
    rows: QuerySet[ApiToken] = ApiToken.objects.for_user(caller.user).listed()
    return page(rows.filter(**listing.filters()), listing, row_of)


@routes.get("/tokens/{id:id}", response=responses({200: TokenOut}))
def show_token(request: HttpRequest, id: int) -> dict[str, Any]:
    return row_of(caller_of(request).find(ApiToken, id))


@routes.post("/tokens", response=responses({201: NewTokenOut}, 409, 422), auth=OPERATE)
def create_token(request: HttpRequest, body: NewToken) -> HttpResponseBase:
    """Create a token with at most your permissions. A token created with another one is revoked with it."""
    caller = caller_of(request)
    workspace = caller.find(Workspace, body.workspace_id)

    secret = ""

    def make() -> dict[str, Any]:
        nonlocal secret
        try:
            token, secret = grants.make(
                workspace,
                caller.person,
                body.name,
                body.scopes,
                actor=caller.actor,
                expires_at=body.expires_at,
                made_with=caller.token,
            )
        except Refused as refused:
            codes = {"scopes": "forbidden", "name": "conflict" if refused.details else "invalid_request"}
            code = codes.get(refused.field, "invalid_request")
            details = {"field": refused.field, **refused.details}
            raise Problem(code, str(refused), details) from refused
        except grants.NotUsable as error:
            raise not_usable() from error
        return row_of(token) | {"token": None}

    answer = create_once(request, 201, make)
    if REPLAYED not in answer:
        # Put the secret into the response only after the response was stored for repeated requests, so that the secret
        # itself is never stored.
        answer.content = answer.content.replace(b'"token": null', f'"token": "{secret}"'.encode(), 1)
    return answer


@routes.post("/tokens/{id:id}/revoke", response=responses({200: TokenOut}, 409), auth=OPERATE)
def revoke_token(request: HttpRequest, id: int) -> dict[str, Any]:
    """Revoke a token. It is refused from the next request on."""
    caller = caller_of(request)
    token = caller.find(ApiToken, id)
    if not tokens.revoke(token, actor=caller.actor):
        raise Problem("conflict", f"Token {token.name} is already revoked.", {"state": ApiToken.State.REVOKED})
    token.refresh_from_db()
    return row_of(token)


def row_of(token: ApiToken) -> dict[str, Any]:
    return empty_to_null(TokenOut.of(token, user=token.user.username))
