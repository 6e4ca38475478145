"""The worker's side of a warm process: a child that has imported a program and forks a fresh process per piece of work.

The warm process contains a process guard (`programs/ade_keeper/guard.py`) for its forks, and is itself an ordinary
supervised child: it has a sandbox and ends with the worker. It has one fork at a time, which is a `Child` like any
other.
"""

import math
import os
import select
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from ade_keeper import proc
from work.processes import supervise
from work.processes.child import CannotStart, Child
from work.processes.spawner_client import GuardClient, Wires
from work.processes.supervise import (
    GRACE_SECONDS,
    Limits,
    Line,
    OnEvent,
    OnOutput,
    Path,
    connect,
    explain_failure,
    place,
    spawn,
)
from work.processes.usage import Usage, below, first_below

# The descriptor for events in every fork. It is above the program's own descriptors and below the limit of open files.
EVENTS_NUMBER = 900
# How long each check for readiness waits.
LOOK_SECONDS = 0.02
# How long to wait for the process to exit once it has closed its socket.
LAST_WORDS_SECONDS = 2.0


class ForkServer:
    """A warm process, used by one thread at a time. The constructor raises CannotStart if it cannot be started."""

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
        # Whether the sandbox keeps one fork from leaving anything behind for the next.
        self.is_walled_off = supervise.level() == "bubblewrap"
        self.used_at = time.monotonic()
        self._last_lines: list[str] = []
        self._limits = replace(limits or Limits(), wall_seconds=None, cpu_seconds=None)
        self._folder = os.path.abspath(cwd)
        # The process that forks, as seen from outside its sandbox. Looked up once, not for each fork.
        self._root: proc.Process | None = None
        # None until the warm process is ready, and while a fork uses the guard.
        self._guard: GuardClient | None = None
        with ExitStack() as opened:
            self._control, there = socket.socketpair()
            opened.enter_context(self._control)
            with there:
                self._child = spawn(
                    [*argv, str(there.fileno())],
                    cwd=cwd,
                    env=env,
                    limits=self._limits,
                    on_output=self._keep_last,
                    pass_fds=[there.fileno()],
                    readable=readable,
                    hidden=hidden,
                    is_first=True,
                )
            opened.pop_all()

    def wait(self, stop: Callable[[], str | None]) -> str | None:
        """Wait until the warm process can fork. If `stop` returns a reason to stop waiting, return it.

        Raise CannotStart if the process ends.
        """
        while self._guard is None:
            if reason := stop():
                return reason
            if self._child.poll(0):
                raise self._failure()
            watched = select.poll()
            watched.register(self._control, select.POLLIN)
            if watched.poll(LOOK_SECONDS * 1000):
                try:
                    self._guard = GuardClient(self._control)
                except OSError as error:
                    raise self._failure() from error
                outermost = self._child.process_id.pid
                self._root = proc.process(first_below(outermost) if self.is_walled_off else outermost)
                if not self.is_alone():
                    raise CannotStart("Cannot keep a process warm: it starts other processes during the import.")
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
        """Fork a child. The arguments mean the same as in `supervise.spawn`. Raise CannotStart if it cannot start."""
        if self._guard is None or self._root is None:
            raise RuntimeError("The fork server is not ready, or not free.")
        directory, _, variables = place(cwd, env or {})
        limits = limits or Limits()
        pipes = limits.pipes(on_output, on_event)
        guard, self._guard, self.forked = self._guard, None, self.forked + 1
        with ExitStack() as undo, ExitStack() as ours, ExitStack() as theirs, explain_failure("a fork", directory):
            # If anything below fails, close the guard. Otherwise the child closes it or gives it back.
            undo.callback(guard.close)
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
            answer = guard.start(order | times, wires)
            # Measure the warm process together with its fork, because it may use just as much.
            measured = (self._child.guard_pid, [self._folder], limits.most())
            walled_off = self.is_walled_off
            usage = Usage(*measured, victim=self._root, walled_off=walled_off, own_network=walled_off)
            # Recovery ends the warm process to end the fork, because a pid inside the sandbox has no meaning outside.
            child = Child(
                "a fork",
                guard,
                answer,
                pipes,
                ours.pop_all(),
                **times,
                process_id=self._child.process_id,
                give_back=self._take_back,
                usage=usage,
            )
            undo.pop_all()
            return child

    def is_free(self) -> bool:
        """Return whether the warm process can fork: it is alive, and its last fork is gone."""
        return self._guard is not None and self._child.poll(0) is None

    def is_alone(self) -> bool:
        """Return whether the warm process has no other processes below it.

        Count them from outside. The guard's own answer could not be trusted, because an import may have changed it.
        """
        own = {self._child.process_id.pid, self._root.pid if self._root else 0}
        # The check raises OSError if this process has no free file descriptors.
        with suppress(OSError):
            return set(islice(below(self._child.guard_pid), len(own) + 1)) <= own
        return False

    def close(self) -> None:
        """End the warm process and everything that it has forked."""
        if self._guard is not None:
            self._guard.close()
        self._control.close()
        self._child.close()

    def _take_back(self, guard: GuardClient) -> None:
        self._guard = guard
        self.used_at = time.monotonic()

    def _failure(self) -> CannotStart:
        """Return the error with the last output. Wait for the output: the process closes its socket before it ends."""
        ended = self._child.poll(0)
        give_up_at = time.monotonic() + LAST_WORDS_SECONDS
        while not ended and time.monotonic() < give_up_at:
            ended = self._child.poll(LOOK_SECONDS)
        output = " ".join(self._last_lines) or "none"
        return CannotStart(f"Cannot keep a process warm: it {ended or 'does not answer'}. Output: {output}")

    def _keep_last(self, lines: list[Line]) -> None:
        # The last lines explain why the process ended.
        self._last_lines = [*self._last_lines, *(line.text for line in lines)][-5:]
