"""Runs the steps of a configuration over one document.

The parent process reads the events of this process and waits for it to exit. A run has succeeded only if it reports
success and then exits with code 0.
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
# Longer messages are cut: each is stored in a row and read by people.
LONGEST_MESSAGE = 2000


class NoSteps(Exception):
    """The entry point provides no step to run."""


def load(environment: Path | None = None) -> list[Step]:
    """Import the entry point of the configuration and return its steps. Raise NoSteps if there are none."""
    root = environment or Path(sys.prefix)
    entry_point: str = json.loads((root / MARKER).read_bytes())["entry_point"]
    sys.path.insert(0, str(root / CONFIGURATION))
    name, _, function = entry_point.partition(":")
    module = importlib.import_module(name)
    if function:
        value = getattr(module, function, None)
        if not callable(value):
            reason = "does not exist" if value is None else f"is not a function but {value!r}"
            raise NoSteps(f"{entry_point} {reason}")
        return [next((step for step in declared_steps() if step.function is value), Step(function, value, 2))]
    if not (steps := declared_steps()):
        raise NoSteps(f"{name} has no function with @step, and the entry point names no function (MODULE:FUNCTION)")
    return steps


def check() -> NoReturn:
    """Report the steps, or why they cannot be loaded, and end this process even if an import has started threads."""
    channel = own_channel()
    code = 1
    try:
        channel.send("checked", steps=[step.name for step in load()])
        code = 0
    except BaseException as error:
        _print(error)
        if isinstance(error, NoSteps):
            message = str(error)
        elif isinstance(error, SystemExit):
            message = f"the configuration called sys.exit({error.code!r}) when it was imported{_place(error)}"
        else:
            # The message of a syntax error already contains its place.
            place = "" if isinstance(error, SyntaxError) else _place(error)
            message = f"{type(error).__name__}: {error}"[:LONGEST_MESSAGE] + place
        channel.send("refused", error=message)
    finally:
        end(code)


def run_here(load: Callable[[], Sequence[Step]]) -> NoReturn:
    """Run the steps in the current directory, which is the run's working directory, and end this process."""
    channel = own_channel()
    code = 1
    try:
        steps = load()
        directory = Path.cwd()
        context = Context(directory, json.loads((directory / INPUT).read_bytes()), channel)
        if all(_run_step(step, context, channel) for step in steps):
            channel.send("result", outcome="succeeded")
            code = 0
    except BaseException as error:
        _print(error)
        channel.send("result", outcome="failed", type=type(error).__name__, error=_message(error), step="")
    finally:
        end(code)


def end(code: int) -> NoReturn:
    """End this process at once. No thread and no `atexit` function may delay a run that has reported its result."""
    for stream in (sys.stdout, sys.stderr):
        # A step may have closed the stream.
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def reset_after_fork() -> None:
    """Reset state that must differ between forks. Call this in a process that was forked after the imports."""
    if random := sys.modules.get("random"):
        random.seed()
    if tempfile := sys.modules.get("tempfile"):
        tempfile.tempdir = None  # type: ignore[attr-defined]  # mypy knows only a module type here
    # Do not import numpy only for this.
    if numpy_random := sys.modules.get("numpy.random"):
        numpy_random.seed()
    gc.enable()


def _run_step(step: Step, context: Context, channel: Channel) -> bool:
    me = os.getpid()
    for attempt in range(1, step.attempts + 1):
        channel.send("step_started", step=step.name, attempt=attempt)
        context.begin(step.name, attempt)
        started_at = time.perf_counter()
        error: BaseException | None = None
        try:
            step.function(context)
        except BaseException as raised:
            error = raised
        if os.getpid() != me:
            # A step has forked, and the child process came back here. It must not run as a second engine.
            os._exit(0)
        seconds = round(time.perf_counter() - started_at, 6)
        event: dict[str, Any] = {"step": step.name, "attempt": attempt, "seconds": seconds}
        if error is None:
            context.keep()
            channel.send("step_succeeded", soon=True, **event)
            return True
        _print(error)
        context.drop()
        event |= {"type": type(error).__name__, "error": _message(error)}
        if attempt < step.attempts and isinstance(error, Exception) and not isinstance(error, Rejected):
            channel.send("step_retried", soon=True, **event)
            continue
        channel.send("step_failed", soon=True, **event)
        outcome = "rejected" if isinstance(error, Rejected) else "failed"
        channel.send("result", outcome=outcome, **event)
        return False
    return False


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"The step called sys.exit({error.code!r}). It must return or raise an exception instead."
    return (str(error) or type(error).__name__)[:LONGEST_MESSAGE]


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

    # The frames of the engine and of importlib precede the configuration's code.
    earlier = (os.path.dirname(__file__), "<frozen ", importlib.__file__)
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename.startswith(earlier):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)
