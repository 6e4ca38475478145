"""Stores for a day the results of forms that must run only once. Sending a form again shows the first result.

Each result is stored as a session that no user is signed in with, because the keys of sessions cannot be guessed and
expired sessions are deleted.
"""

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.contrib.sessions.models import Session
from django.db import IntegrityError, transaction
from django.utils.crypto import salted_hmac

from work import clock

KEPT = timedelta(days=1)
Person = AbstractBaseUser | AnonymousUser


def new_key() -> str:
    """Return a key for a form that must run only once."""
    return secrets.token_urlsafe(24)


def begin(person: Person, key: str) -> bool:
    """Reserve the key before doing anything. Return False if it has been used; then `find` returns the result."""
    try:
        with transaction.atomic():
            Session.objects.create(
                session_key=_session_key(person, key),
                session_data=Session.objects.encode({}),
                expire_date=clock.now() + KEPT,
            )
    except IntegrityError:
        return False
    return True


def keep(person: Person, key: str, result: Mapping[str, Any]) -> None:
    Session.objects.filter(pk=_session_key(person, key)).update(session_data=Session.objects.encode(dict(result)))


def find(person: Person, key: str) -> dict[str, Any] | None:
    """Return the result of this person's form: empty while it runs, None if it never ran or has expired."""
    session = Session.objects.filter(pk=_session_key(person, key), expire_date__gt=clock.now()).first()
    return None if session is None else dict(session.get_decoded())


def _session_key(person: Person, key: str) -> str:
    # A session key is at most 40 characters long.
    return salted_hmac("work.operations.once", f"{person.pk} {key}", algorithm="sha256").hexdigest()[:40]
