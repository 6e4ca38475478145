"""The steps of a configuration, in the order in which they were declared."""

from __future__ import annotations

# Not imported from typing: that import takes longer than this whole module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ade_engine.context import Context

# The largest number of attempts, and the default: the first one, and a second one in case the failure was temporary.
ATTEMPTS = 2


class Rejected(Exception):
    """Raise this in a step if the configuration does not apply to the document.

    The step is not tried again, and the run fails with this message.
    """


class Step:
    def __init__(self, name: str, function: Callable[[Context], Any], attempts: int) -> None:
        self.name, self.function, self.attempts = name, function, attempts


_declared: list[Step] = []


def step(function: Any = None, *, name: str | None = None, attempts: int = ATTEMPTS) -> Any:
    """Declare a step: `@step`, or `@step(name="read", attempts=1)`. Names must be unique."""
    if not 1 <= attempts <= ATTEMPTS:
        raise ValueError(f"The number of attempts must be from 1 to {ATTEMPTS}, not {attempts}.")

    def declare(function: Any) -> Any:
        declared = Step(name or function.__name__, function, attempts)
        if any(each.name == declared.name for each in _declared):
            raise ValueError(f"Two steps are named {declared.name!r}. Step names must be unique.")
        _declared.append(declared)
        return function

    return declare(function) if function is not None else declare


def declared_steps() -> list[Step]:
    return list(_declared)
