"""The kinds of work of this installation: `settings.WORK_KINDS` names them by dotted path, so that the kernel never
imports what it runs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from work.claims import Claim
from work.moves import Moves
from work.recovery import Found


@dataclass(frozen=True)
class Chore:
    """A small duty of every worker: called with its owner name at every so many ticks, and when somebody rings."""

    do: Callable[[str], object]
    every: int = 1
    # Otherwise at its ticks only.
    when_rung: bool = True


@dataclass(frozen=True)
class Lane:
    """How a worker does one kind of work: so many slots, each claiming, doing and ending one after the other."""

    # The setting that says how many.
    slots: str
    claim: Callable[[str], Claim | None]
    # Does the work and answers its result, or raises; knows nothing of status, leases and attempts.
    do: Callable[[Claim], Any]
    # How it ended, each a verb of the app's lifecycle.
    succeed: Callable[[Claim, Any], object]
    fail: Callable[[Claim, BaseException], object]
    stop: Callable[[Claim], object] | None = None
    # What the work itself may fail with; anything else is a mistake of ours, and is logged with its traceback.
    expected: tuple[type[Exception], ...] = ()


@dataclass(frozen=True)
class Kind:
    moves: Moves
    lane: Lane | None = None
    # Moves on a row whose worker is gone; answers the verb that it used, None when it came too late.
    rescue: Callable[[Found], str | None] | None = None
    # The setting that says for how long one may be at work, also by a worker that is alive.
    budget: str | None = None
    chores: tuple[Chore, ...] = ()
    # Topics on whose bell its chores and its slots should look, besides its own.
    wakes_on: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.moves.kind


def all_kinds() -> Iterator[Kind]:
    return iter(_load(tuple(settings.WORK_KINDS)))


def kind_named(name: str) -> Kind:
    return next(kind for kind in all_kinds() if kind.name == name)


def other_subjects() -> Iterator[Moves]:
    """What has a history, and is no kind of work."""
    return iter(_load_subjects(tuple(settings.WORK_SUBJECTS)))


@cache
def _load_subjects(paths: tuple[str, ...]) -> tuple[Moves, ...]:
    return tuple(import_string(path) for path in paths)


@cache
def _load(paths: tuple[str, ...]) -> tuple[Kind, ...]:
    return tuple(import_string(path) for path in paths)
