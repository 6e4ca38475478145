"""The operations that people perform on tokens: see `work/operations/previews.py`."""

from api import tokens
from api.models import ApiToken
from work.operations.outcomes import Outcome
from work.operations.previews import Operation


def revoke(token: ApiToken, *, actor: str) -> Outcome:
    return Outcome.REVOKED if tokens.revoke(token, actor=actor) else Outcome.WAS_REVOKED


REVOKE = Operation(
    "revoke", "Revoke", revoke, lambda token: Outcome.WAS_REVOKED if token.revoked_at else Outcome.REVOKED
)
