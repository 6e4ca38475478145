"""Issues, finds and revokes the tokens of programs. A token's text is shown once; tokens are looked up by prefix and
compared by hash.
"""

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

# A token consists of "ade_", a unique prefix, an underscore, and a secret of 256 bits.
PREFIX_BYTES, SECRET_BYTES = 6, 32
# A string of any other shape is not looked up, because it may contain characters that a database rejects.
_SHAPE = re.compile(r"(ade_[0-9a-f]{8,12})_[A-Za-z0-9_-]{43}")
# The time of the last use is saved at most once in this interval.
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
    """Create a token and return it with its full text, which can't be recovered later. This checks no permissions:
    `grants` decides who may create which token.
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
    """Return the token with this text, even if it has expired or was revoked."""
    shape = _SHAPE.fullmatch(secret)
    if shape is None:
        return None
    token = ApiToken.objects.with_roles().select_related("user", "workspace").filter(prefix=shape[1]).first()
    # Compare hashes even if no prefix matches, so that the response time doesn't reveal which prefixes exist.
    is_same = hmac.compare_digest(token.sha256 if token else _hash(shape[1]), _hash(secret))
    return token if is_same else None


def hold(token: ApiToken) -> bool:
    """Lock a token until the caller's transaction ends, so that a concurrent `revoke` waits and then also finds the
    token that this transaction creates with it. Return False if the token is no longer usable.
    """
    return ApiToken.objects.usable().select_for_update().filter(pk=token.pk).first() is not None


def revoke(token: ApiToken, *, actor: str) -> bool:
    """Revoke a token and all tokens created with it. Return False if the token was already revoked."""
    now = clock.now()
    with transaction.atomic():
        # Update the token's own row first. A concurrent transaction that creates another token with it has locked this
        # row (see `hold`): either it commits first and the query below finds its token, or it finds this token revoked
        # and fails.
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
    # A fast hash is enough, because a secret of 256 bits can't be guessed.
    return hashlib.sha256(secret.encode()).hexdigest()
