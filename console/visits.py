"""Remembers until when each user has seen the news.

Users confirm this themselves. Opening the page writes nothing, so unread news stays new. After more than a week, the
page shows only the last week; a new user sees the last day.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import AbstractUser
from django.db import IntegrityError, transaction
from django.utils.dateparse import parse_datetime

from console.models import Visit
from work import clock

LONGEST = timedelta(days=7)
FIRST = timedelta(days=1)


@dataclass(frozen=True)
class Absence:
    """The period that is new to the user, as far as the page shows it."""

    since: datetime
    until: datetime
    # The moment up to which the user last confirmed the news; None if the user never did.
    looked_until: datetime | None

    @property
    def is_first(self) -> bool:
        return self.looked_until is None

    @property
    def is_cut(self) -> bool:
        """Return whether the user was away for longer than the page shows."""
        return self.looked_until is not None and self.looked_until < self.since


def absence_of(person: AbstractUser) -> Absence:
    now = clock.now()
    looked_until = Visit.objects.filter(person_id=person.pk).values_list("looked_until", flat=True).first()
    if looked_until is None:
        return Absence(now - FIRST, now, None)
    return Absence(max(min(looked_until, now), now - LONGEST), now, looked_until)


def mark_as_seen(person: AbstractUser, until: datetime) -> bool:
    """Save that the user has seen the news up to `until`. Return False if the user had already confirmed this moment or
    a later one, for example in another tab.
    """
    now = clock.now()
    until = min(until, now)
    with suppress(IntegrityError), transaction.atomic():
        Visit.objects.create(person_id=person.pk, looked_until=until, last_seen_at=now)
        return True
    visit = Visit.objects.filter(person_id=person.pk, looked_until__lt=until)
    return bool(visit.update(looked_until=until, last_seen_at=now))


def moment_of(text: str) -> datetime | None:
    """Parse a moment that a page sent; return None if it is not valid."""
    with suppress(ValueError):
        moment = parse_datetime(text)
        return moment if moment and moment.tzinfo else None
    return None
