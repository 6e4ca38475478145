"""What came of a form that a person has sent, kept for a day: whoever sends it twice is told the same again, and
nothing is done twice.

Each is kept as a session that nobody is signed in with: its key cannot be guessed, and it goes when it has expired.
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
    """For a form that is to be sent once."""
    return secrets.token_urlsafe(24)


def begin(person: Person, key: str) -> bool:
    """Before anything is done. False when that was begun before: `find` has what came of it."""
    try:
        with transaction.atomic():
            Session.objects.create(
                session_key=_place(person, key),
                session_data=Session.objects.encode({}),
                expire_date=clock.now() + KEPT,
            )
    except IntegrityError:
        return False
    return True


def keep(person: Person, key: str, told: Mapping[str, Any]) -> None:
    Session.objects.filter(pk=_place(person, key)).update(session_data=Session.objects.encode(dict(told)))


def find(person: Person, key: str) -> dict[str, Any] | None:
    """Only for whoever has sent it. Empty while it is not done; None when it was never begun, or long ago."""
    kept = Session.objects.filter(pk=_place(person, key), expire_date__gt=clock.now()).first()
    return None if kept is None else dict(kept.get_decoded())


def _place(person: Person, key: str) -> str:
    # As long as the key of a session may be.
    return salted_hmac("work.once", f"{person.pk} {key}", algorithm="sha256").hexdigest()[:40]
