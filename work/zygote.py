"""A child that forks a fresh process for each piece of work, with everything imported already.

It is a keeper (`ade_keeper/keeper.py`) in a program of its own, and itself an ordinary supervised child: in its
sandbox, ended with the worker. What it forks is a `Child` like any other. One at a time.
"""

import math
import select
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from work.children.child import CannotStart, Child
from work.children.launcher import Keeper, Wires
from work.supervise import GRACE_SECONDS, Limits, Line, OnEvent, OnOutput, Path, connect, explained, place, spawn

# Above what the program has open itself, and below the limit of open files: the number is the same in every fork.
EVENTS_NUMBER = 900
# One look at whether it is ready.
LOOK_SECONDS = 0.02
# Between the end of its socket and its own.
LAST_WORDS_SECONDS = 2.0


class Zygote:
    """Used by one thread at a time. Raises CannotStart."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        readable: Sequence[Path] = (),
        hidden: Sequence[Path] = (),
    ) -> None:
        self.forked = 0
        self.used_at = time.monotonic()
        self.said: list[str] = []
        self._limits = replace(limits or Limits(), wall_seconds=None, cpu_seconds=None)
        # None until it is ready, and while a fork has it.
        self._keeper: Keeper | None = None
        with ExitStack() as opened:
            self._control, there = socket.socketpair()
            opened.enter_context(self._control)
            with there:
                self._child = spawn(
                    [*argv, str(there.fileno())],
                    cwd=cwd,
                    env=env,
                    limits=self._limits,
                    on_output=self._hear,
                    pass_fds=[there.fileno()],
                    readable=readable,
                    hidden=hidden,
                    is_first=True,
                )
            opened.pop_all()

    def wait(self, stop: Callable[[], str | None]) -> str | None:
        """Until it is ready to fork, or `stop` gives a reason, which is answered. Raises CannotStart if it ends."""
        while self._keeper is None:
            if reason := stop():
                return reason
            if self._child.poll(0):
                raise self._not_warm()
            if _is_readable(self._control, LOOK_SECONDS):
                try:
                    self._keeper = Keeper(self._control)
                except OSError as error:
                    raise self._not_warm() from error
        return None

    def spawn(
        self,
        *,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        stdin: int | None = None,
        limits: Limits | None = None,
        grace_seconds: float = GRACE_SECONDS,
        on_output: OnOutput | None = None,
        on_event: OnEvent | None = None,
        trust_until: float = math.inf,
    ) -> Child:
        """Forks a child, as `supervise.spawn` starts one. Raises CannotStart."""
        if self._keeper is None:
            raise RuntimeError("expected a zygote that is ready and free")
        directory, _, variables = place(cwd, env or {})
        limits = limits or Limits()
        pipes = limits.pipes(on_output, on_event)
        keeper, self._keeper, self.forked = self._keeper, None, self.forked + 1
        with ExitStack() as lent, ExitStack() as ours, ExitStack() as theirs, explained("a fork", directory):
            # From now on its child closes it, or gives it back.
            lent.callback(keeper.close)
            wires = Wires(ours, theirs, ())
            connect(wires, pipes, variables, stdin=stdin, events_number=EVENTS_NUMBER)
            times = limits.times(grace_seconds)
            order: dict[str, Any] = {
                "env": variables,
                "cwd": directory,
                "limits": limits.rlimits(),
                "sandboxed": False,
                "is_fork": True,
                "trust_until": trust_until,
            }
            answer = keeper.start(order | times, wires)
            # To end what it forked, whoever comes later ends the zygote: inside a sandbox, pids mean nothing here.
            child = Child(
                "a fork",
                keeper,
                answer,
                pipes,
                ours.pop_all(),
                **times,
                process_id=self._child.process_id,
                give_back=self._take_back,
            )
            lent.pop_all()
            return child

    def is_free(self) -> bool:
        """Ready for the next: it lives, and what it forked is gone."""
        return self._keeper is not None and self._child.poll(0) is None

    def close(self) -> None:
        """Ends it, and all that it has forked."""
        if self._keeper is not None:
            self._keeper.close()
        self._control.close()
        self._child.close()

    def _take_back(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self.used_at = time.monotonic()

    def _not_warm(self) -> CannotStart:
        """It closes its socket a moment before it has ended; one that closes it and lives on is of no use."""
        ended = self._child.poll(0)
        give_up_at = time.monotonic() + LAST_WORDS_SECONDS
        while not ended and time.monotonic() < give_up_at:
            ended = self._child.poll(LOOK_SECONDS)
        said = " ".join(self.said) or "nothing"
        return CannotStart(f"cannot keep a process warm: it {ended or 'does not answer'}, and said: {said}")

    def _hear(self, lines: list[Line]) -> None:
        # The last lines say why it ended.
        self.said = [*self.said, *(line.text for line in lines)][-5:]


def _is_readable(connection: socket.socket, seconds: float) -> bool:
    watched = select.poll()
    watched.register(connection, select.POLLIN)
    return bool(watched.poll(seconds * 1000))
