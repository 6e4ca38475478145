"""Tokens of programs. They are shown once, looked up by their prefix and compared by their hash."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.contrib.auth.models import AbstractUser
from django.db import transaction
from django.db.models import Q

from api.models import ApiToken, Scope
from work import clock
from workspaces.models import Workspace

# A token is "ade_", a prefix of its own, an underscore, and a secret of 256 bits.
PREFIX_BYTES, SECRET_BYTES = 6, 32
# Other strings are not looked up: they may contain characters that a database rejects.
_SHAPE = re.compile(r"(ade_[0-9a-f]{8,12})_[A-Za-z0-9_-]{43}")
# The last use is saved at most this often.
USED_SECONDS = 60


def issue(
    workspace: Workspace,
    user: AbstractUser,
    name: str,
    scopes: Iterable[str],
    *,
    actor: str,
    expires_at: datetime | None = None,
    made_with: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """Create a token and return it with its full text, which can't be recovered later. `grants` decides who may
    create which.
    """
    prefix = f"ade_{secrets.token_hex(PREFIX_BYTES)}"
    secret = f"{prefix}_{secrets.token_urlsafe(SECRET_BYTES)}"
    columns = {
        "workspace": workspace,
        "user": user,
        "name": name,
        "scopes": [scope.value for scope in Scope if scope in {Scope.READ, *scopes}],
        "expires_at": expires_at,
        "prefix": prefix,
        "sha256": _hash(secret),
        "created_by": actor,
        "made_with": made_with,
    }
    return ApiToken.objects.create(**columns), secret


def find(secret: str) -> ApiToken | None:
    """Return the token with this text, also if it has expired or was revoked."""
    shape = _SHAPE.fullmatch(secret)
    if shape is None:
        return None
    token = ApiToken.objects.with_roles().select_related("user", "workspace").filter(prefix=shape[1]).first()
    # Compared even without a match, so that the response time reveals nothing.
    is_same = hmac.compare_digest(token.sha256 if token else _hash(shape[1]), _hash(secret))
    return token if is_same else None


def hold(token: ApiToken) -> bool:
    """Lock a token until the caller's transaction ends, so that a concurrent `revoke` waits and then finds the tokens
    created with it. Return False if the token is no longer usable.
    """
    return ApiToken.objects.usable().select_for_update().filter(pk=token.pk).first() is not None


def revoke(token: ApiToken, *, actor: str) -> bool:
    """Revoke a token, and all tokens created with it. Return False if it was already revoked."""
    now = clock.now()
    with transaction.atomic():
        # Its own row first: a transaction that creates a token with it holds that row. It then either commits first
        # and is found below, or fails.
        changes = {"revoked_at": now, "revoked_by": actor}
        is_revoked = bool(ApiToken.objects.filter(pk=token.pk).not_revoked().update(**changes))
        ids = [token.pk]
        while ids := list(ApiToken.objects.filter(made_with__in=ids).values_list("pk", flat=True)):
            ApiToken.objects.filter(pk__in=ids).not_revoked().update(**changes)
    return is_revoked


def record_use(token: ApiToken, address: str) -> None:
    now = clock.now()
    if token.last_used_at and token.last_used_at > now - timedelta(seconds=USED_SECONDS):
        return
    long_ago = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - timedelta(seconds=USED_SECONDS))
    ApiToken.objects.filter(long_ago, pk=token.pk).update(last_used_at=now, last_used_from=address[:64])


def _hash(secret: str) -> str:
    # A fast hash is enough: a secret of 256 bits can't be guessed.
    return hashlib.sha256(secret.encode()).hexdigest()
