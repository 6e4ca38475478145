"""Decides who may create which token: people create tokens only for themselves, in their own workspaces, and with at
most the permissions that they have there.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db import IntegrityError, transaction

from api import tokens
from api.models import ApiToken, Scope
from work import clock
from work.operations import encoding
from workspaces.models import Workspace

LONGEST_NAME = 100


class Refused(Exception):
    """The request for a token is refused. `field` names the part of the request that is wrong."""

    def __init__(self, message: str, field: str, **details: Any) -> None:
        super().__init__(message)
        self.field, self.details = field, details


class NotUsable(Exception):
    """The token used for creating another one has meanwhile been revoked or has expired."""


def scopes_of(person: AbstractUser, workspace: Workspace) -> frozenset[Scope]:
    """Return the scopes that a token of this person may have in the workspace; none for a non-member."""
    rows = Workspace.objects.filter(pk=workspace.pk)
    of_scope = {
        Scope.READ: rows.for_user(person),
        Scope.OPERATE: rows.operated_by(person),
        Scope.ADMIN: rows.administered_by(person),
    }
    scopes = {scope for scope, workspaces in of_scope.items() if workspaces.exists()}
    # Any permission is enough for the scope: each installation-wide action checks its own permission when the token is
    # used.
    return frozenset(scopes | ({Scope.INSTALLATION} if scopes and person.get_all_permissions() else set()))


def make(
    workspace: Workspace,
    person: AbstractUser,
    name: str,
    scopes: Iterable[str],
    *,
    actor: str,
    expires_at: datetime | None = None,
    made_with: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """Create a token and return it with its secret, which is not stored and so can be shown only once. Raises Refused
    and NotUsable.
    """
    all_scopes = {Scope.READ, *map(Scope, scopes)}
    if not 0 < len(name.strip()) <= LONGEST_NAME or not name.isprintable():
        raise Refused(f"The name must have 1 to {LONGEST_NAME} printable characters, not {name[:200]!r}.", "name")
    _check_time(expires_at, made_with)
    _check_scopes(all_scopes, workspace, person, made_with)
    name = name.strip()
    try:
        with transaction.atomic():
            if made_with and not tokens.hold(made_with):
                raise NotUsable(f"The token {made_with.name} has been revoked or has expired.")
            return tokens.issue(
                workspace, person, name, all_scopes, actor=actor, expires_at=expires_at, made_with=made_with
            )
    except IntegrityError as error:
        if not ApiToken.objects.not_revoked().filter(workspace=workspace, user_id=person.pk, name=name).exists():
            raise
        message = f"{person.username} already has a token named {name!r} in this workspace."
        raise Refused(message, "name", name=name) from error


def _check_time(expires_at: datetime | None, made_with: ApiToken | None) -> None:
    if expires_at is not None and expires_at <= clock.now():
        raise Refused(f"The expiry must be in the future, not {encoding.moment(expires_at)}.", "expires_at")
    latest = made_with.expires_at if made_with else None
    if latest and (expires_at is None or expires_at > latest):
        problem = f"The expiry {encoding.moment(expires_at)} is too late" if expires_at else "The expiry is missing"
        message = f"{problem}: the token that creates this one expires at {encoding.moment(latest)}."
        raise Refused(message, "expires_at", latest=encoding.moment(latest))


def _check_scopes(scopes: set[Scope], workspace: Workspace, person: AbstractUser, made_with: ApiToken | None) -> None:
    may = scopes_of(person, workspace)
    if made_with:
        may = frozenset(scope for scope in may if made_with.allows(scope))
    if beyond := sorted(scopes - may):
        whom = f"{person.username} in {workspace.name}" + (f" with the token {made_with.name}" if made_with else "")
        allowed = ", ".join(sorted(may)) or "none"
        message = f"Scopes not allowed for {whom}: {', '.join(beyond)}. Allowed scopes: {allowed}."
        raise Refused(message, "scopes", allowed=sorted(may), found=beyond)
