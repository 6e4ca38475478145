"""The caller of the API: a signed-in user, or a program with a token. Permissions are checked here and in the
querysets.
"""

from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.contrib.auth.models import AbstractUser
from django.db.models import Model
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

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Caller:
    person: AbstractUser
    token: ApiToken | None = None
    record: Record | None = field(default=None, compare=False, repr=False)

    @property
    def user(self) -> User:
        """Return the user for querysets: the person, limited to the workspace and scopes of the token, if any."""
        return self._limit_to(self.token) if self.token else self.person

    @property
    def key(self) -> str:
        """Identify the caller in stored answers and rate limits."""
        return f"token {self.token.pk}" if self.token else f"user {self.person.pk}"

    @property
    def actor(self) -> str:
        """Return the name of the caller for histories."""
        return _actor(self.person, self.token)

    def find(self, model: type[M], id: int) -> M:
        """Return one row. The model's querysets must have `for_user` and `listed`. Raises Problem (404) with the
        model's verbose name if the row does not exist or the caller may not see it.
        """
        rows: Any = model._default_manager
        row: M | None = rows.for_user(self.user).listed().filter(pk=id).first()
        what = str(model._meta.verbose_name)
        if row is None:
            raise not_found(what, id)
        if self.record:
            workspace_id = row.pk if isinstance(row, Workspace) else getattr(row, "workspace_id", None)
            self.record.saw(what, id, workspace_id)
        return row

    def require_operator(self, workspace: Workspace) -> None:
        self._require_role(workspace, Membership.Role.OPERATOR, Membership.Role.ADMIN)

    def require_admin(self, workspace: Workspace) -> None:
        self._require_role(workspace, Membership.Role.ADMIN)

    def require_permission(self, permission: str) -> None:
        """Raise Problem unless the caller has this permission, which applies to the whole installation."""
        if self.token:
            _require_scope(self.token, Scope.INSTALLATION)
        if not self.person.has_perm(permission):
            message = f"{self.person.username} does not have the permission {permission}."
            raise Problem("forbidden", message, {"permission": permission})

    def _limit_to(self, token: ApiToken) -> LimitedUser:
        roles = frozenset(role.value for scope, role in ROLES.items() if token.allows(scope))
        return LimitedUser(self.person, token.workspace_id, roles)

    def _require_role(self, workspace: Workspace, *roles: str) -> None:
        if self.record:
            self.record.workspace_id = workspace.pk
        if self.token is None:
            has_role = visible_to(Workspace.objects.filter(pk=workspace.pk), self.person, "pk", *roles).exists()
        else:
            # No query is needed: the role of the token's owner was loaded with the token.
            is_owners = workspace.pk == self.token.workspace_id and self.token.role_now in roles
            has_role = is_owners and bool(self._limit_to(self.token).roles.intersection(roles))
        if not has_role:
            message = f"{self.actor} does not have the role {roles[0]} in workspace {workspace.name}."
            raise Problem("forbidden", message, {"role": roles[0], "workspace": workspace.pk})


class ByToken(HttpBearer):
    openapi_description = "A token of one workspace: `Authorization: Bearer ade_…`"

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        super().__init__()

    def __call__(self, request: HttpRequest) -> Caller | None:
        """Parse the header. Replaces ninja's method, which could leak a token: it logs headers that it can't parse."""
        scheme, _, token = request.headers.get(self.header, "").partition(" ")
        return self.authenticate(request, token.strip()) if scheme.lower() == self.openapi_scheme else None

    def authenticate(self, request: HttpRequest, token: str) -> Caller | None:
        row = tokens.find(token)
        if row is None or row.state != ApiToken.State.USABLE or row.role_now is None:
            limits.check_stranger(origin_of(request))
            raise not_usable()
        caller = Caller(row.user, row, audit.start_record(request, row.user, _actor(row.user, row), row))
        _limit_rate(request, caller)
        _require_scope(row, self.scope)
        tokens.record_use(row, address_of(request))
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
        caller = Caller(person, record=audit.start_record(request, person, person.username))
        _limit_rate(request, caller)
        if check_csrf(request):
            message = "The header X-CSRFToken is missing or does not match the cookie csrftoken."
            raise Problem("csrf_failed", message)
        return caller


# For each scope, the two ways to authenticate: a token with that scope, or a session.
READ, OPERATE, ADMIN, INSTALLATION = ([ByToken(scope), BySession()] for scope in Scope)


def _limit_rate(request: HttpRequest, caller: Caller) -> None:
    """Apply the rate limit before any other check, because a refusal by another check writes an audit entry."""
    try:
        limits.check(request, caller.key)
    except RateLimited as limited:
        if caller.record:
            caller.record.is_passed_over = not limited.is_first
        raise


def _actor(person: AbstractUser, token: ApiToken | None) -> str:
    name = f"{person.username} (token {token.name})" if token else person.username
    # Truncate the name here, for all `actor` columns, which have the same width: a user name of 150 characters plus a
    # token name of 100 does not fit.
    return name[: Event._meta.get_field("actor").max_length]


def _require_scope(token: ApiToken, scope: Scope) -> None:
    if not token.allows(scope):
        details = {"scope": scope.value, "found": token.scopes}
        raise Problem("forbidden", f"The token does not have the scope {scope.value}.", details)


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


def insider_of(request: HttpRequest, permission: str = "") -> Caller:
    """Return the caller of a path that concerns the whole installation. Raises Problem unless the caller is a member of
    at least one workspace (which is enough for reading) and, if a permission is given, has that permission.
    """
    caller = caller_of(request)
    # A token always belongs to a member.
    is_member = caller.token or caller.person.is_superuser or Workspace.objects.for_user(caller.person).exists()
    if not is_member:
        message = f"{caller.person.username} is not a member of any workspace. Ask an administrator for access."
        raise Problem("forbidden", message)
    if permission:
        caller.require_permission(permission)
    return caller
