"""The steps of a configuration, in the order in which they were declared."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from ade_engine.context import Context

# In total: the first one and another, for what a second look may cure.
ATTEMPTS = 2

Function = TypeVar("Function", bound="Callable[[Context], Any]")


class Rejected(Exception):
    """Raised by a step: the document is not what the configuration is for. Not tried again; the run fails with these
    words.
    """


@dataclass(frozen=True)
class Step:
    name: str
    function: "Callable[[Context], Any]"
    attempts: int


_declared: list[Step] = []


@overload
def step(function: Function) -> Function: ...
@overload
def step(*, name: str | None = None, attempts: int = ATTEMPTS) -> Callable[[Function], Function]: ...
def step(function: Any = None, *, name: str | None = None, attempts: int = ATTEMPTS) -> Any:
    """Declares a step: `@step`, or `@step(name="read", attempts=1)`."""
    if not 1 <= attempts <= ATTEMPTS:
        raise ValueError(f"expected from 1 to {ATTEMPTS} attempts, found {attempts}")

    def declare(function: Function) -> Function:
        declared = Step(name or function.__name__, function, attempts)
        if any(each.name == declared.name for each in _declared):
            raise ValueError(f"expected steps of different names, found two named {declared.name!r}")
        _declared.append(declared)
        return function

    return declare(function) if function is not None else declare


def declared_steps() -> list[Step]:
    return list(_declared)
