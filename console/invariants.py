"""Checks the invariants of the database when a person asks for it, and stores the results.

A check reads whole tables, so it runs only when a person presses the button. Each invariant and the whole round have a
time limit. The least recently tried invariants come first, so that pressing the button again continues where the time
ran out. An invariant that another person is checking is skipped.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import Q

from api.subjects import Subject
from console.models import PromiseCheck
from work import clock
from work.invariants import Invariant, all_invariants
from work.operations.commands import clean

# A round is limited because a person waits for the response. `manage.py doctor` has no limit.
SECONDS = 20.0
SECONDS_OF_ONE = 5.0
MOST_OFFENDERS = 20
LONGEST_TROUBLE = 500
# If a check began longer ago than this and has no result, it was interrupted.
FORGOTTEN = timedelta(seconds=60)
# Number of SQLite VM instructions between two checks of the time limit.
SQLITE_STEPS = 10_000
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Result:
    invariant: Invariant
    # None if the invariant was never checked.
    check: PromiseCheck | None

    @property
    def state(self) -> str:
        if self.check is None or (self.check.checked_at is None and not self.check.trouble):
            return "never"
        if self.check.trouble:
            return "unknown"
        return "broken" if self.check.offenders else "holds"

    @property
    def offenders(self) -> list[Subject]:
        return [(kind, id) for kind, id in self.check.offenders] if self.check else []

    @property
    def is_cut(self) -> bool:
        return len(self.offenders) > MOST_OFFENDERS


@dataclass(frozen=True)
class Round:
    """How many invariants one round of checks has checked, found broken, failed to check, and left."""

    checked: int
    broken: int
    failed: int
    # Not tried, because time ran out or another user is checking them.
    left: int

    def __str__(self) -> str:
        parts = [f"Checked {self.checked} of {self.checked + self.failed + self.left} invariants"]
        parts.append(f"{self.broken} broken" if self.broken else "none is broken" if self.checked else "")
        parts.append(f"{self.failed} could not be checked" if self.failed else "")
        parts.append(f"{self.left} left for the next check" if self.left else "")
        return f"{'; '.join(filter(None, parts))}."


def all_results() -> Sequence[Result]:
    """Return the last result of each invariant: broken invariants first, then those without a result."""
    checks = {check.name: check for check in PromiseCheck.objects.all()}
    results = [Result(invariant, checks.get(invariant.name)) for invariant in all_invariants()]
    order = ("broken", "unknown", "never", "holds")
    return sorted(results, key=lambda result: order.index(result.state))


def check_all(actor: str, seconds: float = SECONDS) -> Round:
    until = time.monotonic() + seconds
    results = [_check(invariant, actor, until) for invariant in _stalest_first(all_invariants())]
    checks = [check for check in results if check is not None]
    failed = sum(bool(check.trouble) for check in checks)
    broken = sum(bool(check.offenders) and not check.trouble for check in checks)
    return Round(len(checks) - failed, broken, failed, len(results) - len(checks))


def _stalest_first(invariants: Iterable[Invariant]) -> list[Invariant]:
    """Sort by the time of the last attempt, whether it failed or not."""
    tried_at = dict(PromiseCheck.objects.values_list("name", "tried_at"))
    return sorted(invariants, key=lambda invariant: tried_at.get(invariant.name) or _NEVER)


def _check(invariant: Invariant, actor: str, until: float) -> PromiseCheck | None:
    """Check one invariant. Return None if there is no time left, or if another user is checking it."""
    seconds = min(SECONDS_OF_ONE, until - time.monotonic())
    if seconds <= 0:
        return None
    now = clock.now()
    PromiseCheck.objects.get_or_create(name=invariant.name)
    free = Q(began_at=None) | Q(began_at__lt=now - FORGOTTEN)
    if not PromiseCheck.objects.filter(free, name=invariant.name).update(began_at=now):
        return None
    began = time.monotonic()
    try:
        with LIMITS[connection.vendor](seconds):
            offenders = invariant.breaches(MOST_OFFENDERS + 1)
    except DatabaseError as error:
        trouble = clean(" ".join(str(error).split()))[:LONGEST_TROUBLE]
        # Recognise a timeout by the time that has passed, because each database reports timeouts differently.
        if time.monotonic() - began >= seconds * 0.9:
            trouble = f"The check was stopped after {seconds:.0f} s. `manage.py doctor` has no time limit."
        # `checked_at` and the offenders of the previous result stay.
        result: dict[str, Any] = {"trouble": trouble}
    else:
        result = {"trouble": "", "offenders": offenders, "seconds": time.monotonic() - began}
        result |= {"checked_at": clock.now(), "checked_by": actor}
    PromiseCheck.objects.filter(name=invariant.name).update(began_at=None, tried_at=clock.now(), **result)
    return PromiseCheck.objects.get(name=invariant.name)


@contextmanager
def _postgresql(seconds: float) -> Iterator[None]:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = %s", [max(1, round(seconds * 1000))])
        yield


@contextmanager
def _sqlite(seconds: float) -> Iterator[None]:
    """Limit statements without opening a transaction: on SQLite, ADE's transactions take the write lock at the start,
    which would block all other writers.
    """
    until = time.monotonic() + seconds
    connection.ensure_connection()
    connection.connection.set_progress_handler(lambda: time.monotonic() > until, SQLITE_STEPS)
    try:
        yield
    finally:
        connection.connection.set_progress_handler(None, 0)


@contextmanager
def _microsoft(seconds: float) -> Iterator[None]:
    connection.ensure_connection()
    before, connection.connection.timeout = connection.connection.timeout, max(1, round(seconds))
    try:
        yield
    finally:
        connection.connection.timeout = before


# For each database, a context manager that limits the time of statements. A longer statement raises DatabaseError.
LIMITS = {"postgresql": _postgresql, "sqlite": _sqlite, "microsoft": _microsoft}
