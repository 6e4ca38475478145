"""Runs the steps of a configuration over one document.

The process that started this one reads its events and waits for its end. A run has succeeded only if it reports success
and then exits with code 0.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import sys
import time
from pathlib import Path

from ade_engine.channel import Channel, own_channel
from ade_engine.context import Context
from ade_engine.steps import Rejected, Step, declared_steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

# The configuration's folder in the environment, next to the installed packages.
CONFIGURATION = "configuration"
MARKER = "ade.json"
INPUT = "input.json"
# A message is stored in a row and read by people.
LONGEST_MESSAGE = 2000


class NoSteps(Exception):
    """The entry point has nothing to run."""


def load(environment: Path | None = None) -> list[Step]:
    """Import the entry point of the configuration and return its steps. Raise NoSteps if there are none."""
    root = environment or Path(sys.prefix)
    entry_point: str = json.loads((root / MARKER).read_bytes())["entry_point"]
    sys.path.insert(0, str(root / CONFIGURATION))
    name, _, function = entry_point.partition(":")
    module = importlib.import_module(name)
    if function:
        return [_single(module, entry_point, function)]
    if not (steps := declared_steps()):
        raise NoSteps(f"{name} has no function with @step, and the entry point names no function (MODULE:FUNCTION)")
    return steps


def check() -> NoReturn:
    """Report the steps, or why they cannot be loaded, and end this process even if an import has started threads."""
    channel = own_channel()
    code = 1
    try:
        channel.tell("checked", steps=[step.name for step in load()])
        code = 0
    except BaseException as error:
        _print(error)
        channel.tell("refused", error=_why_not_loaded(error))
    finally:
        end(code)


def run_here(load: Callable[[], Sequence[Step]]) -> NoReturn:
    """Run the steps in the current directory, the run's working directory, and end this process."""
    channel = own_channel()
    code = 1
    try:
        steps = load()
        directory = Path.cwd()
        told = json.loads((directory / INPUT).read_bytes())
        code = 0 if _run_steps(steps, Context(directory, told, channel), channel) else 1
    except BaseException as error:
        _print(error)
        channel.tell("result", outcome="failed", type=type(error).__name__, error=_message(error), step="")
    finally:
        end(code)


def end(code: int) -> NoReturn:
    """End this process at once. No thread and no `atexit` function may delay a run that has reported its result."""
    for stream in (sys.stdout, sys.stderr):
        # A step may have closed it.
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def start_anew() -> None:
    """Reset the state that must differ between forks, in a process that was forked after the imports."""
    if random := sys.modules.get("random"):
        random.seed()
    if tempfile := sys.modules.get("tempfile"):
        tempfile.tempdir = None  # type: ignore[attr-defined]  # mypy knows only a module type here
    # Do not import numpy only for this.
    if numpy_random := sys.modules.get("numpy.random"):
        numpy_random.seed()
    gc.enable()


def _single(module: Any, entry_point: str, function: str) -> Step:
    found = getattr(module, function, None)
    if not callable(found):
        why = "does not exist" if found is None else f"is not a function but {found!r}"
        raise NoSteps(f"{entry_point} {why}")
    return next((step for step in declared_steps() if step.function is found), Step(function, found, 2))


def _run_steps(steps: Sequence[Step], context: Context, channel: Channel) -> bool:
    for step in steps:
        if not _run_step(step, context, channel):
            return False
    channel.tell("result", outcome="succeeded")
    return True


def _run_step(step: Step, context: Context, channel: Channel) -> bool:
    me = os.getpid()
    for attempt in range(1, step.attempts + 1):
        channel.tell("step_started", step=step.name, attempt=attempt)
        context.begin(step.name, attempt)
        started = time.perf_counter()
        error: BaseException | None = None
        try:
            step.function(context)
        except BaseException as raised:
            error = raised
        if os.getpid() != me:
            # A step has forked, and the child process came back here. It must not run as a second engine.
            os._exit(0)
        told: dict[str, Any] = {
            "step": step.name,
            "attempt": attempt,
            "seconds": round(time.perf_counter() - started, 6),
        }
        if error is None:
            context.keep()
            channel.tell("step_succeeded", soon=True, **told)
            return True
        _print(error)
        context.drop()
        told |= {"type": type(error).__name__, "error": _message(error)}
        if attempt < step.attempts and isinstance(error, Exception) and not isinstance(error, Rejected):
            channel.tell("step_retried", soon=True, **told)
            continue
        channel.tell("step_failed", soon=True, **told)
        outcome = "rejected" if isinstance(error, Rejected) else "failed"
        channel.tell("result", outcome=outcome, **told)
        return False
    return False


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"The step called sys.exit({error.code!r}). It must return or raise an exception instead."
    return (str(error) or type(error).__name__)[:LONGEST_MESSAGE]


def _why_not_loaded(error: BaseException) -> str:
    if isinstance(error, NoSteps):
        return str(error)
    if isinstance(error, SystemExit):
        return f"the configuration called sys.exit({error.code!r}) when it was imported{_place(error)}"
    # The message of a syntax error already contains its place.
    place = "" if isinstance(error, SyntaxError) else _place(error)
    return f"{type(error).__name__}: {error}"[:LONGEST_MESSAGE] + place


def _place(error: BaseException) -> str:
    """Return the innermost line of the configuration's own code in the traceback."""
    import traceback  # noqa: PLC0415  # a cold run would wait for this import

    inside = f"/{CONFIGURATION}/"
    lines = [(frame.f_code.co_filename, number) for frame, number in traceback.walk_tb(error.__traceback__)]
    own = [(path.rpartition(inside)[2], number) for path, number in lines if inside in path]
    return f" ({own[-1][0]}, line {own[-1][1]})" if own else ""


def _print(error: BaseException) -> None:
    """Print the traceback for the log, starting at the configuration's own code."""
    if isinstance(error, Rejected):
        return
    import traceback  # noqa: PLC0415  # a cold run would wait for this import

    found = error.__traceback__
    while found is not None and _is_before(found.tb_frame.f_code.co_filename) and found.tb_next is not None:
        found = found.tb_next
    traceback.print_exception(type(error), error, found)


def _is_before(path: str) -> bool:
    """Return whether this file is part of the engine or importlib, whose frames precede the configuration's code."""
    return path.startswith((os.path.dirname(__file__), "<frozen ", importlib.__file__))
