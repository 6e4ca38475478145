"""The steps of a configuration, in the order in which they were declared."""

from __future__ import annotations

# Not from typing: importing that takes longer than all of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ade_engine.context import Context

# In total: the first one and another, for what a second look may cure.
ATTEMPTS = 2


class Rejected(Exception):
    """Raised by a step: the document is not what the configuration is for. Not tried again; the run fails with these
    words.
    """


class Step:
    def __init__(self, name: str, function: Callable[[Context], Any], attempts: int) -> None:
        self.name, self.function, self.attempts = name, function, attempts


_declared: list[Step] = []


def step(function: Any = None, *, name: str | None = None, attempts: int = ATTEMPTS) -> Any:
    """Declares a step: `@step`, or `@step(name="read", attempts=1)`."""
    if not 1 <= attempts <= ATTEMPTS:
        raise ValueError(f"expected from 1 to {ATTEMPTS} attempts, found {attempts}")

    def declare(function: Any) -> Any:
        declared = Step(name or function.__name__, function, attempts)
        if any(each.name == declared.name for each in _declared):
            raise ValueError(f"expected steps of different names, found two named {declared.name!r}")
        _declared.append(declared)
        return function

    return declare(function) if function is not None else declare


def declared_steps() -> list[Step]:
    return list(_declared)
