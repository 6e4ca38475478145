"""Tokens of programs: made once and shown once, found by how they begin, compared by their hash."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.contrib.auth.models import AbstractUser
from django.db import transaction
from django.db.models import Q

from api.models import ApiToken, ApiTokenQuerySet, Scope
from documents.models import Workspace
from work import clock

# ade_ and a name of its own, an underscore, and the secret: 256 bits.
PREFIX_BYTES, SECRET_BYTES = 6, 32
# What is none is not looked up: it may hold what no database takes.
_SHAPE = re.compile(r"(ade_[0-9a-f]{8,12})_[A-Za-z0-9_-]{43}")
# A token that is used all the time is not written down each time.
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
    """The token, and what to show once: nobody can tell it later. Who may have which, `grants` says."""
    prefix = f"ade_{secrets.token_hex(PREFIX_BYTES)}"
    shown = f"{prefix}_{secrets.token_urlsafe(SECRET_BYTES)}"
    chosen = [scope.value for scope in Scope if scope in {Scope.READ, *scopes}]
    values = {"workspace": workspace, "user": user, "name": name, "scopes": chosen, "expires_at": expires_at}
    made = {"prefix": prefix, "sha256": _hash(shown), "created_by": actor, "made_with": made_with}
    return ApiToken.objects.create(**values, **made), shown


def find(shown: str) -> ApiToken | None:
    """The token of these characters, whatever has become of it since."""
    shape = _SHAPE.fullmatch(shown)
    if shape is None:
        return None
    token = ApiToken.objects.with_roles().select_related("user", "workspace").filter(prefix=shape[1]).first()
    # Compared in any case: how long the answer takes tells nothing.
    is_same = hmac.compare_digest(token.sha256 if token else _hash(shape[1]), _hash(shown))
    return token if is_same else None


def hold(token: ApiToken) -> bool:
    """Until the caller's transaction ends nobody revokes it, so that who does finds what is made with it meanwhile.
    False when it is not usable any more.
    """
    return ApiToken.objects.usable().select_for_update().filter(pk=token.pk).first() is not None


def revoke(token: ApiToken, *, actor: str) -> bool:
    """From the next request on, and with it those that were made with it. False: somebody has done so before."""
    now = clock.now()
    with transaction.atomic():
        # First its own row: whoever is making another with it has it in turn, and is either found below or refused.
        is_done = bool(_revoke(ApiToken.objects.filter(pk=token.pk), now, actor))
        made = _made_with([token.pk])
        while made:
            _revoke(ApiToken.objects.filter(pk__in=made), now, actor)
            made = _made_with(made)
    return is_done


def _revoke(rows: ApiTokenQuerySet, now: datetime, actor: str) -> int:
    return rows.not_revoked().update(revoked_at=now, revoked_by=actor)


def _made_with(ids: list[int]) -> list[int]:
    return list(ApiToken.objects.filter(made_with__in=ids).values_list("pk", flat=True))


def was_used(token: ApiToken, address: str) -> None:
    now = clock.now()
    if token.last_used_at and token.last_used_at > now - timedelta(seconds=USED_SECONDS):
        return
    long_ago = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - timedelta(seconds=USED_SECONDS))
    ApiToken.objects.filter(long_ago, pk=token.pk).update(last_used_at=now, last_used_from=address[:64])


def _hash(shown: str) -> str:
    # No slow hash: a secret of 256 bits is not guessed.
    return hashlib.sha256(shown.encode()).hexdigest()
