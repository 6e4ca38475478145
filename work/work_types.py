"""The kinds of work of this installation.

`settings.WORK_TYPES` names them by dotted path, so that the kernel does not import what it runs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from work.claims import Claim
from work.recovery import LostClaim
from work.state_machine import StateMachine


@dataclass(frozen=True)
class PeriodicTask:
    """A periodic task of every worker. It is called with the worker's owner name."""

    do: Callable[[str], object]
    # The number of ticks from one call to the next.
    every: int = 1
    # If False, the task runs only at its ticks.
    when_rung: bool = True


@dataclass(frozen=True)
class Handler:
    """The handler of one kind of work. A number of worker threads each claim, do and finish one row after another."""

    # The name of the setting with the number of threads.
    concurrency_setting: str
    claim: Callable[[str], Claim | None]
    # Does the work and returns its result, or raises. It knows nothing of statuses, leases and attempts.
    do: Callable[[Claim], Any]
    # How work ends: each is a verb of the app's lifecycle.
    succeed: Callable[[Claim, Any], object]
    fail: Callable[[Claim, BaseException], object]
    stop: Callable[[Claim], object] | None = None
    # Expected failures of the work itself. Any other exception is a defect of ADE and is logged with its traceback.
    expected: tuple[type[Exception], ...] = ()


@dataclass(frozen=True)
class WorkType:
    states: StateMachine
    handler: Handler | None = None
    # Recovers a row whose worker is gone. Returns the verb that it used, or None if the row had changed.
    rescue: Callable[[LostClaim], str | None] | None = None
    # The name of the setting with the maximum duration, which holds for a live worker too.
    budget: str | None = None
    periodic_tasks: tuple[PeriodicTask, ...] = ()
    # Further topics that wake its periodic tasks and its threads.
    wakes_on: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.states.kind


def all_work_types() -> Iterator[WorkType]:
    return iter(_import_all(tuple(settings.WORK_TYPES)))


def work_type_named(name: str) -> WorkType:
    return next(kind for kind in all_work_types() if kind.name == name)


def other_subjects() -> Iterator[StateMachine]:
    """Yield rows that have a history but are no kind of work."""
    return iter(_import_all(tuple(settings.WORK_SUBJECTS)))


@cache
def _import_all(paths: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(import_string(path) for path in paths)
