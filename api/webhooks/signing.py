"""Secrets of webhooks, and what is signed with them.

A secret is kept nowhere: it is made from SECRET_KEY and a salt of its own, whenever something is to be signed. Whoever
has the database alone can sign nothing.
"""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64encode
from contextlib import suppress
from datetime import datetime

from django.utils.crypto import salted_hmac

from api.models import Webhook

SALT_BYTES = 24
# Begins what people copy, so that it is recognised where it should not be.
PREFIX = "whsec_"


class SecretLost(Exception):
    """SECRET_KEY is not what it was when the secret was made."""


def new_salt() -> str:
    return secrets.token_urlsafe(SALT_BYTES)


def secret_of(salt: str) -> str:
    made = salted_hmac("api.webhooks.signing", salt, algorithm="sha256").digest()
    return PREFIX + urlsafe_b64encode(made).decode().rstrip("=")


def known_by(secret: str) -> str:
    # No slow hash: a secret of 256 bits is not guessed.
    return hashlib.sha256(secret.encode()).hexdigest()


def signature(webhook: Webhook, body: bytes, now: datetime) -> str:
    """With the secret, and with the one before while that is good. Raises SecretLost of the first."""
    moment = int(now.timestamp())
    marks = [_signed(webhook.salt, webhook.secret_sha256, body, moment)]
    if webhook.is_earlier_good(now):
        # That one may be lost: it is why there is a new one.
        with suppress(SecretLost):
            marks.append(_signed(webhook.earlier_salt, webhook.earlier_sha256, body, moment))
    return ",".join([f"t={moment}", *(f"v1={mark}" for mark in marks)])


def _signed(salt: str, sha256: str, body: bytes, moment: int) -> str:
    secret = secret_of(salt)
    if not hmac.compare_digest(known_by(secret), sha256):
        raise SecretLost("expected the SECRET_KEY with which the secret was made, found another one: rotate the secret")
    return hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
