"""Secrets and signatures of webhooks.

A secret is not stored. It is derived from SECRET_KEY and a salt whenever something is signed, so access to the
database alone is not enough to forge signatures.
"""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64encode
from contextlib import suppress
from datetime import datetime

from django.utils.crypto import salted_hmac

from webhooks.models import Webhook

SALT_BYTES = 24
# Prefix of a secret, so that a leaked one can be recognised.
PREFIX = "whsec_"


class SecretLost(Exception):
    """SECRET_KEY has changed since the secret was created."""


def new_salt() -> str:
    return secrets.token_urlsafe(SALT_BYTES)


def secret_of(salt: str) -> str:
    digest = salted_hmac("webhooks.signing", salt, algorithm="sha256").digest()
    return PREFIX + urlsafe_b64encode(digest).decode().rstrip("=")


def hash_of(secret: str) -> str:
    # A fast hash is enough: a secret of 256 bits can't be guessed.
    return hashlib.sha256(secret.encode()).hexdigest()


def signature(webhook: Webhook, body: bytes, now: datetime) -> str:
    """Sign with the current secret, and also with the previous one while that is valid. Raises SecretLost if the
    current one is lost.
    """
    moment = int(now.timestamp())
    marks = [_signed(webhook.salt, webhook.secret_sha256, body, moment)]
    if webhook.is_earlier_good(now):
        # Do not sign with the previous secret if it is lost, which may be why there is a new one.
        with suppress(SecretLost):
            marks.append(_signed(webhook.earlier_salt, webhook.earlier_sha256, body, moment))
    return ",".join([f"t={moment}", *(f"v1={mark}" for mark in marks)])


def _signed(salt: str, sha256: str, body: bytes, moment: int) -> str:
    secret = secret_of(salt)
    if not hmac.compare_digest(hash_of(secret), sha256):
        raise SecretLost("SECRET_KEY has changed since the secret was created. Rotate the secret.")
    return hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
