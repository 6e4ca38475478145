"""Up to when somebody has looked at what is new.

They say so themselves: looking alone writes nothing, so a page that was opened and not read hides nothing. Who has not
said so for longer than a week is shown a week; who never has, a day.
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
    """What came after `since` is new to them."""

    since: datetime
    until: datetime
    # When they said so; None: never.
    looked_until: datetime | None

    @property
    def is_first(self) -> bool:
        return self.looked_until is None

    @property
    def is_cut(self) -> bool:
        """Whether they were away for longer than is told of."""
        return self.looked_until is not None and self.looked_until < self.since


def absence_of(person: AbstractUser) -> Absence:
    now = clock.now()
    looked_until = Visit.objects.filter(person_id=person.pk).values_list("looked_until", flat=True).first()
    if looked_until is None:
        return Absence(now - FIRST, now, None)
    return Absence(max(min(looked_until, now), now - LONGEST), now, looked_until)


def has_looked(person: AbstractUser, until: datetime) -> bool:
    """False when they had looked as far before: from another page, or by an older one."""
    now = clock.now()
    until = min(until, now)
    with suppress(IntegrityError), transaction.atomic():
        Visit.objects.create(person_id=person.pk, looked_until=until, last_seen_at=now)
        return True
    behind = Visit.objects.filter(person_id=person.pk, looked_until__lt=until)
    return bool(behind.update(looked_until=until, last_seen_at=now))


def moment_of(text: str) -> datetime | None:
    """As a page has sent it; None for what is none."""
    with suppress(ValueError):
        found = parse_datetime(text)
        return found if found and found.tzinfo else None
    return None
