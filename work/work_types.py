"""The work types of this installation.

`settings.WORK_TYPES` names them by dotted path, so that this package need not import the apps whose work it does.
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
    """A periodic task of every worker. `do` takes the worker's owner name. A true result wakes a worker thread."""

    do: Callable[[str], object]
    # The number of ticks between two calls.
    every: int = 1
    # Whether the task also runs when the housekeeping thread is woken between ticks.
    when_rung: bool = True


@dataclass(frozen=True)
class Handler:
    """How worker threads claim, do and finish one kind of work. Each thread handles one row after another."""

    # The name of the setting with the number of threads.
    concurrency_setting: str
    claim: Callable[[str], Claim | None]
    # Does the work and returns its result, or raises. It knows nothing about statuses, leases and attempts.
    do: Callable[[Claim], Any]
    # Record how the work ended. Each is a verb of the app's lifecycle.
    succeed: Callable[[Claim, Any], object]
    fail: Callable[[Claim, BaseException], object]
    stop: Callable[[Claim], object] | None = None
    # Exceptions by which the work itself may fail. Any other exception is a defect of ADE and is logged with its
    # traceback.
    expected: tuple[type[Exception], ...] = ()


@dataclass(frozen=True)
class WorkType:
    states: StateMachine
    handler: Handler | None = None
    # Recovers a row whose worker is gone. Returns the verb that was used, or None if the row had changed.
    rescue: Callable[[LostClaim], str | None] | None = None
    # The name of the setting with the time limit. Recovery ends longer work even if its worker is alive.
    budget: str | None = None
    periodic_tasks: tuple[PeriodicTask, ...] = ()
    # Further wake-up topics that wake the periodic tasks and threads of this work type.
    wakes_on: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.states.kind


def all_work_types() -> Iterator[WorkType]:
    return iter(_import_all(tuple(settings.WORK_TYPES)))


def work_type_named(name: str) -> WorkType:
    return next(kind for kind in all_work_types() if kind.name == name)


def other_subjects() -> Iterator[StateMachine]:
    """Return the state machines of rows that have a history but are not work."""
    return iter(_import_all(tuple(settings.WORK_SUBJECTS)))


@cache
def _import_all(paths: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(import_string(path) for path in paths)
