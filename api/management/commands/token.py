from datetime import datetime
from typing import Any

from django.contrib.auth.models import User

from api import grants, operations
from api.grants import Refused
from api.models import ApiToken, Scope
from work.operations.commands import (
    AddVerb,
    Answer,
    Exit,
    Failure,
    NounCommand,
    Row,
    actor_of,
    add_actor,
    add_ids,
    add_limit,
    moment,
    not_found,
    of_each,
    table,
)
from work.operations.outcomes import Outcome
from workspaces.commands import find_workspace

COLUMNS = ("id", "name", "prefix", "state", "scopes", "user", "workspace", "expires_at", "last_used_at")


class Command(NounCommand):
    help = "Manage tokens, with which programs use the API."

    def add_verbs(self, add: AddVerb) -> None:
        create = add("create", self.create, "Create a token and print it, only once: it is not stored.")
        create.add_argument(
            "workspace", metavar="WORKSPACE", help="name or ID of the only workspace that the token gives access to"
        )
        create.add_argument("user", metavar="USER", help="owner, whose permissions limit the token")
        create.add_argument("name", metavar="NAME", help="what the token is for")
        others = [scope.value for scope in Scope if scope != Scope.READ]
        create.add_argument(
            "--scope", dest="scopes", choices=others, action="append", default=[], help="scope besides read; repeatable"
        )
        create.add_argument(
            "--expires", metavar="TIME", type=moment, help="expiry in UTC, for example 2027-01-31 (default: none)"
        )
        add_actor(create)
        listing = add("list", self.list_tokens, "List tokens, newest first.")
        listing.add_argument("--workspace", metavar="WORKSPACE", help="only this workspace (name or ID)")
        listing.add_argument("--user", metavar="USER", help="only tokens of this user")
        listing.add_argument("--usable", action="store_true", help="only tokens that are neither revoked nor expired")
        add_limit(listing)
        revoke = add(
            "revoke", self.revoke, "Revoke tokens, and the tokens created with them, from the next request on."
        )
        add_ids(revoke, many=True)
        add_actor(revoke)

    def create(
        self,
        *,
        workspace: str,
        user: str,
        name: str,
        scopes: list[str],
        expires: datetime | None,
        actor: str | None,
        **_: Any,
    ) -> Answer:
        row, owner = find_workspace(workspace), _find_user(user)
        try:
            token, secret = grants.make(row, owner, name, scopes, actor=actor_of(actor), expires_at=expires)
        except Refused as refused:
            raise Failure(str(refused), Exit.REFUSED, "token_refused", field=refused.field) from refused
        return Answer(_row(token) | {"token": secret}, secret)

    def list_tokens(
        self, *, workspace: str | None, user: str | None, usable: bool, limit: int, before: int | None, **_: Any
    ) -> Answer:
        query = ApiToken.objects.usable() if usable else ApiToken.objects.all()
        query = query.filter(workspace=find_workspace(workspace)) if workspace else query
        query = query.filter(user=_find_user(user)) if user else query
        query = query.filter(pk__lt=before) if before else query
        rows = [_row(token) for token in query.listed().order_by("-id")[:limit]]
        return Answer({"tokens": rows}, table(rows, *COLUMNS))

    def revoke(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        def revoke(token: ApiToken) -> tuple[Outcome, Row]:
            return operations.revoke(token, actor=actor_of(actor)), {}

        return of_each("token", ids, ApiToken.objects.in_bulk(ids), revoke)


def _find_user(name: str) -> User:
    person = User.objects.filter(username=name).first()
    if person is None:
        raise not_found("user", name, "create one with `manage.py createsuperuser` or in the admin")
    return person


def _row(token: ApiToken) -> dict[str, Any]:
    names = (
        *("id", "name", "prefix", "state", "scopes", "created_at", "created_by", "expires_at"),
        *("revoked_at", "revoked_by", "last_used_at", "last_used_from"),
    )
    row = {name: getattr(token, name) for name in names}
    return row | {"user": token.user.username, "workspace": token.workspace.name}
