"""The caller of the API: a signed-in user, or a program with a token. Permission checks are here and in the
querysets.
"""

from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.http import HttpRequest
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf

from api import audit, limits, tokens
from api.addresses import address_of, origin_of
from api.audit import Record
from api.errors import Problem, not_found
from api.limits import RateLimited
from api.models import ApiToken, Scope
from work.models import Event
from workspaces.models import LimitedUser, Membership, User, Workspace, visible_to

ROLES = {
    Scope.READ: Membership.Role.VIEWER,
    Scope.OPERATE: Membership.Role.OPERATOR,
    Scope.ADMIN: Membership.Role.ADMIN,
}


@dataclass(frozen=True)
class Caller:
    person: AbstractUser
    token: ApiToken | None = None
    # The audit record of the request.
    record: Record | None = field(default=None, compare=False, repr=False)

    @property
    def user(self) -> User:
        """Return the user whose permissions querysets apply."""
        return self._narrowed(self.token) if self.token else self.person

    @property
    def key(self) -> str:
        """Identify the caller in stored answers and rate limits."""
        return f"token {self.token.pk}" if self.token else f"user {self.person.pk}"

    @property
    def actor(self) -> str:
        """Return the name of the caller for histories."""
        return _actor(self.person, self.token)

    def see(self, rows: Any, id: int, what: str) -> Any:
        """Return one row of a queryset that has `for_user` and `listed`. Raises Problem (404) if it is missing or not
        visible.
        """
        row = rows.for_user(self.user).listed().filter(pk=id).first()
        if row is None:
            raise not_found(what, id)
        if self.record:
            self.record.saw(what, id, _workspace_of(row))
        return row

    def operate(self, workspace: Workspace) -> None:
        self._must_be(workspace, Membership.Role.OPERATOR, Membership.Role.ADMIN)

    def administer(self, workspace: Workspace) -> None:
        self._must_be(workspace, Membership.Role.ADMIN)

    def share(self) -> None:
        """Require membership of any workspace, which is enough to see what all workspaces share. Raises Problem."""
        # A token always belongs to a member.
        if self.token or self.person.is_superuser or Workspace.objects.for_user(self.person).exists():
            return
        message = f"{self.person.username} is not a member of any workspace. Ask an administrator for access."
        raise Problem("forbidden", message)

    def may(self, permission: str) -> None:
        """Require a permission for what all workspaces share. Raises Problem."""
        if self.token:
            _must_allow(self.token, Scope.INSTALLATION)
        if not self.person.has_perm(permission):
            message = f"{self.person.username} does not have the permission {permission}."
            raise Problem("forbidden", message, {"permission": permission})

    def _narrowed(self, token: ApiToken) -> LimitedUser:
        roles = frozenset(role.value for scope, role in ROLES.items() if token.allows(scope))
        return LimitedUser(self.person, token.workspace_id, roles)

    def _must_be(self, workspace: Workspace, *roles: str) -> None:
        if self.record:
            self.record.workspace_id = workspace.pk
        if not self._is(workspace, *roles):
            message = f"{self.actor} does not have the role {roles[0]} in workspace {workspace.name}."
            raise Problem("forbidden", message, {"role": roles[0], "workspace": workspace.pk})

    def _is(self, workspace: Workspace, *roles: str) -> bool:
        if self.token is None:
            return visible_to(Workspace.objects.filter(pk=workspace.pk), self.person, "pk", *roles).exists()
        # The role of the token's owner was loaded together with the token.
        is_there = workspace.pk == self.token.workspace_id and self.token.role_now in roles
        return is_there and bool(self._narrowed(self.token).roles.intersection(roles))


class ByToken(HttpBearer):
    openapi_description = "A token of one workspace: `Authorization: Bearer ade_…`"

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        super().__init__()

    def __call__(self, request: HttpRequest) -> Caller | None:
        """Do the same as ninja's method, which logs the header if it can't parse it and so could leak a token."""
        scheme, _, token = request.headers.get(self.header, "").partition(" ")
        return self.authenticate(request, token.strip()) if scheme.lower() == self.openapi_scheme else None

    def authenticate(self, request: HttpRequest, token: str) -> Caller | None:
        found = tokens.find(token)
        if found is None or found.state != "usable" or found.role_now is None:
            limits.check_stranger(origin_of(request))
            raise not_usable()
        record = audit.know(request, found.user, _actor(found.user, found), found)
        caller = _counted(request, Caller(found.user, found, record), record)
        _must_allow(found, self.scope)
        tokens.was_used(found, address_of(request))
        return caller


class BySession(APIKeyCookie):
    param_name = "sessionid"
    openapi_description = "The session of a signed-in user; changes also need X-CSRFToken."

    def __init__(self) -> None:
        super().__init__(csrf=False)

    def authenticate(self, request: HttpRequest, key: str | None) -> Caller | None:
        person = request.user
        if not isinstance(person, AbstractUser) or not person.is_active:
            return None
        record = audit.know(request, person, person.username)
        caller = _counted(request, Caller(person, record=record), record)
        if check_csrf(request):
            message = "The header X-CSRFToken is missing or does not match the cookie csrftoken."
            raise Problem("csrf_failed", message)
        return caller


def by(scope: Scope) -> list[Any]:
    """Return the two ways to authenticate: a token with this scope, or a session."""
    return [ByToken(scope), BySession()]


READ, OPERATE, ADMIN, INSTALLATION = (by(scope) for scope in Scope)


def _counted(request: HttpRequest, caller: Caller, record: Record) -> Caller:
    """Apply the rate limit before other checks, because each refusal writes an audit entry."""
    try:
        limits.check(request, caller.key)
    except RateLimited as refused:
        record.is_passed_over = not refused.is_first
        raise
    return caller


def _actor(person: AbstractUser, token: ApiToken | None) -> str:
    named = f"{person.username} (token {token.name})" if token else person.username
    # Truncate here, once: a user name of 150 characters plus a token name of 100 exceeds the `actor` columns, which
    # all have the same width.
    return named[: Event._meta.get_field("actor").max_length]


def _must_allow(token: ApiToken, scope: Scope) -> None:
    if not token.allows(scope):
        details = {"scope": scope.value, "found": token.scopes}
        raise Problem("forbidden", f"The token does not have the scope {scope.value}.", details)


def _workspace_of(row: Any) -> int | None:
    return row.pk if isinstance(row, Workspace) else getattr(row, "workspace_id", None)


def not_usable() -> Problem:
    return Problem(
        "not_authenticated",
        "This token is not valid. It is unknown, expired or revoked.",
        headers={"WWW-Authenticate": 'Bearer realm="ADE", error="invalid_token"'},
    )


def caller_of(request: HttpRequest) -> Caller:
    caller = getattr(request, "auth", None)
    assert isinstance(caller, Caller)
    return caller


def insider_of(request: HttpRequest) -> Caller:
    """Return the caller of a path about the whole installation. Raises Problem unless the caller is a member
    somewhere.
    """
    caller = caller_of(request)
    caller.share()
    return caller
