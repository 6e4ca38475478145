"""Reads the output of a started child process, and ends the process. `work/processes/supervise.py` starts it."""

import json
import os
import select
import selectors
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

from ade_keeper.guard import KILL_SECONDS
from work.processes import spawner_client
from work.processes.identity import ProcessId
from work.processes.output import Events, Output
from work.processes.spawner_client import Answer, GuardClient
from work.processes.usage import Usage

# How often to check for a lost lease or a cancel request: twice in the 100 ms that `supervise.run` promises.
LOOK_SECONDS = 0.05
# How far the guard may exceed its own time limits before it counts as stuck.
GUARD_SECONDS = 2.0
# The maximum size of a read, which is the capacity of a pipe.
READ_BYTES = 1 << 16
# The reasons that a guard may report for the end of its child. None: the child ended by itself.
REASONS = (None, "stopped", "orphaned", "trust_ended", "timed_out")
# Maximum number of processes to report that could not be killed, because an event lists them.
MOST_LEFT_BEHIND = 100
# Maximum number of reads per pipe once the child is gone. They can empty even the largest pipe, but end even if a
# surviving process keeps writing.
DRAIN_READS = 32


@dataclass(frozen=True)
class Ended:
    # "lost": the guard was killed, and the child with it.
    reason: Literal["exited", "signalled", "timed_out", "stopped", "over_limit", "lost"]
    # The exit code or, as in subprocess, the negative number of the signal. None if it is unknown.
    returncode: int | None
    signal: str | None
    stop_reason: str | None
    # The limit that all processes together exceeded, in words that complete "exceeded its limit of".
    over_limit: str | None
    # Both times are values of time.monotonic().
    started: float
    ended: float
    output_bytes: int
    truncated: bool
    events_refused: int
    # The peak memory of the largest process. It is at least about 10 MB, because the forked process has that size
    # before exec.
    max_rss_bytes: int
    cpu_seconds: float
    # The processes that even SIGKILL did not end in time. Their directory must not be used again.
    left_behind: tuple[int, ...]

    @property
    def seconds(self) -> float:
        return self.ended - self.started

    def __str__(self) -> str:
        message = {
            "exited": f"exited with code {self.returncode}",
            "signalled": f"was killed by {self.signal}{_USUAL_CAUSES.get(self.signal or '', '')}",
            "timed_out": "timed out",
            "stopped": f"stopped ({self.stop_reason})",
            "over_limit": f"exceeded its limit of {self.over_limit}",
            "lost": "lost: its process guard was killed",
        }[self.reason]
        left = f"; could not be killed: {', '.join(map(str, self.left_behind))}" if self.left_behind else ""
        return f"{message} after {self.seconds:.1f} s{left}"


_USUAL_CAUSES = {
    "SIGXCPU": " (over its limit of CPU time)",
    "SIGXFSZ": " (over its limit of file size)",
    "SIGKILL": " (by the kernel because memory ran out, or by a user)",
}


class CannotStart(Exception):
    """The program could not be started at all. The message says why."""

    def __init__(self, message: str, number: int | None = None) -> None:
        super().__init__(message)
        self.errno = number


@dataclass
class Pipes:
    """The pipes that the child writes to, and the functions that take what is read from them."""

    output: Output
    events: Events | None
    feeds: dict[int, Callable[[bytes], None]]
    # The pipe on which bubblewrap reports whether the program ran; None without bubblewrap.
    sandbox_report: int | None = None


class Child:
    """A running child. Only one thread may use it, except that any thread may call `stop` and `trust_until`."""

    def __init__(
        self,
        program: str,
        guard: GuardClient,
        answer: Answer,
        pipes: Pipes,
        opened: ExitStack,
        *,
        wall_seconds: float,
        grace_seconds: float,
        process_id: ProcessId | None = None,
        give_back: Callable[[GuardClient], None] = spawner_client.give_back,
        usage: Usage | None = None,
    ) -> None:
        # Recovery kills this process to end the child. For a fork of a warm process, this is the warm process.
        self.process_id = process_id or ProcessId.here(answer.pid, answer.start_ticks)
        # The kernel makes the guard the parent of the child's orphaned descendants, so all of them are below the guard.
        self.guard_pid = guard.pid
        self._give_back = give_back
        self._usage = usage
        self._over_limit: str | None = None
        self.ended: Ended | None = None
        self._program = program
        self._guard = guard
        self._answer = answer
        self._pipes = pipes
        self._descriptors = opened
        self._unread = answer.unread
        self._report: dict[str, Any] | None = None
        self._stop_reason: str | None = None
        self._is_closed = False
        self._sending = threading.Lock()
        self._grace_seconds = grace_seconds
        self._out_of_time_at = answer.at + wall_seconds
        self._stuck_at = self._out_of_time_at + self._longest_end(grace_seconds)
        # Not epoll, which would use up a file descriptor per child.
        self._selector = selectors.PollSelector()
        self._selector.register(guard.control, selectors.EVENT_READ, self._receive)
        for descriptor, feed in pipes.feeds.items():
            self._selector.register(descriptor, selectors.EVENT_READ, partial(self._read, descriptor, feed))
        self._parse_report()

    @staticmethod
    def _longest_end(grace_seconds: float) -> float:
        return grace_seconds + KILL_SECONDS + GUARD_SECONDS

    def wait(self, stop: Callable[[], str | None] | None = None) -> Ended:
        look_at = 0.0
        while True:
            if stop is not None and time.monotonic() >= look_at and self._stop_reason is None:
                if reason := stop():
                    self.stop(reason)
                look_at = time.monotonic() + LOOK_SECONDS
            if ended := self.poll(LOOK_SECONDS if stop is not None else 1.0):
                return ended

    def poll(self, timeout_seconds: float = 0.0) -> Ended | None:
        """Read the output, and wait at most this long for it. Return None while the child runs.

        Raise CannotStart if bubblewrap could not start the program. This becomes known only when bubblewrap ends.
        """
        if self.ended or self._is_closed:
            return self.ended
        timeout_seconds = min(timeout_seconds, self._pipes.output.seconds_until_due())
        if self._usage is not None and self._over_limit is None:
            timeout_seconds = min(timeout_seconds, self._usage.seconds_until_due())
        for key, _ in self._selector.select(max(timeout_seconds, 0)):
            key.data()
        if self._usage and not self._over_limit and not self._report and self._usage.seconds_until_due() <= 0:
            self._over_limit = self._usage.excess()
            if self._over_limit:
                self._stuck_at = min(self._stuck_at, time.monotonic() + self._longest_end(0))
                self._send({"stop": 0})
                self._usage.end()
        if self._pipes.output.seconds_until_due() <= 0:
            self._pipes.output.flush()
        if self._report is None and time.monotonic() >= self._stuck_at:
            self._kill_guard()
        if self._report is not None:
            try:
                self.ended = self._result_of(self._report)
            finally:
                self.close()
        return self.ended

    def stop(self, reason: str, grace_seconds: float | None = None) -> None:
        """Ask the guard to send SIGTERM and, after the grace period, SIGKILL. Do not wait for it.

        If this is called more than once, the first reason counts.
        """
        grace = self._grace_seconds if grace_seconds is None else grace_seconds
        self._stop_reason = self._stop_reason or reason
        self._stuck_at = min(self._stuck_at, time.monotonic() + self._longest_end(grace))
        self._send({"stop": grace})

    def trust_until(self, moment: float) -> None:
        """Make the guard kill the child at this time of time.monotonic(), unless a later time is sent before then.

        So the child ends when its lease is not renewed, even if this process is suspended or hangs.
        """
        self._send({"trust_until": moment})

    def _send(self, command: dict[str, Any]) -> None:
        message = json.dumps(command | {"number": self._answer.number}).encode() + b"\n"
        with self._sending, suppress(OSError):  # the guard has ended if it is not listening
            if not self._is_closed:
                # This does not block, because a guard that does not read must not delay the renewal of other leases.
                os.write(self._guard.control.fileno(), message)

    def _read(self, descriptor: int, feed: Callable[[bytes], None]) -> bool:
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            # A running program may close its end of the pipe. Only the guard reports that the child has ended.
            self._selector.unregister(descriptor)
            return False
        feed(data)
        return True

    def _receive(self) -> None:
        try:
            data = self._guard.control.recv(READ_BYTES)
        except ConnectionResetError:
            data = b""
        self._unread += data
        self._parse_report()
        if self._report is None and (not data or len(self._unread) > spawner_client.ANSWER_BYTES):
            self._report = self._lost_report()

    def _parse_report(self) -> None:
        if b"\n" in self._unread:
            line, _, self._unread = self._unread.partition(b"\n")
            try:
                # A guard in a sandbox may send anything.
                report = spawner_client.parse(line)
                if report["why"] not in REASONS:
                    raise ValueError(report["why"])
                if report["status"] is not None:
                    os.waitstatus_to_exitcode(report["status"])
                numbers = [report[name] for name in ("at", "max_rss_bytes", "cpu_seconds")]
                if not all(0 <= number < spawner_client.LARGEST for number in numbers):
                    raise ValueError(numbers)
                left = [int(pid) for pid in report["left_behind"][:MOST_LEFT_BEHIND]]
                at = max(self._answer.at, min(report["at"], time.monotonic()))
                is_free = report["keeper_is_free"] is True
                self._report = report | {"at": at, "left_behind": left, "keeper_is_free": is_free}
            except (OSError, TypeError, ValueError, KeyError, OverflowError):
                self._report = self._lost_report()

    def _lost_report(self) -> dict[str, Any]:
        now = time.monotonic()
        is_gone = _is_ready(self._answer.pidfd, KILL_SECONDS)
        return {
            "status": None,
            "why": "stopped" if self._stop_reason else "timed_out" if now >= self._out_of_time_at else "lost",
            "at": now,
            "max_rss_bytes": 0,
            "cpu_seconds": 0.0,
            "left_behind": [] if is_gone else [self.process_id.pid],
            "keeper_is_free": False,
        }

    def _result_of(self, report: dict[str, Any]) -> Ended:
        self._selector.unregister(self._guard.control)
        for key in list(self._selector.get_map().values()):
            for _ in range(DRAIN_READS):
                if not key.data():
                    break
        self._pipes.output.end()
        if self._pipes.events:
            self._pipes.events.end()
        returncode = None if report["status"] is None else self._returncode(report)
        signal_name = None
        if returncode is not None and returncode < 0:
            try:
                signal_name = signal.Signals(-returncode).name
            except ValueError:
                signal_name = f"signal {-returncode}"  # a real-time signal has no name
        reason: Any = report["why"] or ("signalled" if signal_name else "exited")
        stop_reason = None
        if self._over_limit:
            reason = "over_limit"
        elif reason == "trust_ended":
            reason, stop_reason = "stopped", "no longer trusted"
        elif reason == "stopped":
            stop_reason = self._stop_reason
        return Ended(
            reason=reason,
            returncode=returncode,
            signal=signal_name,
            stop_reason=stop_reason,
            over_limit=self._over_limit,
            started=self._answer.at,
            ended=report["at"],
            output_bytes=self._pipes.output.seen_bytes,
            truncated=self._pipes.output.truncated,
            events_refused=self._pipes.events.refused if self._pipes.events else 0,
            max_rss_bytes=report["max_rss_bytes"],
            cpu_seconds=report["cpu_seconds"],
            left_behind=tuple(report["left_behind"]),
        )

    def _returncode(self, report: dict[str, Any]) -> int:
        code = os.waitstatus_to_exitcode(report["status"])
        if self._pipes.sandbox_report is None:
            return code
        if code == 1 and report["why"] is None and b"exit-code" not in os.read(self._pipes.sandbox_report, READ_BYTES):
            output = " ".join(self._pipes.output.last) or "none"
            raise CannotStart(f"Cannot start {self._program}: bubblewrap ended without running it. Output: {output}")
        # bubblewrap reports a signal as a shell does. So a program that exits with code 137 looks like a killed one.
        return 128 - code if code > 128 and code - 128 in signal.valid_signals() else code

    def close(self) -> None:
        """Kill the child if it still runs, wait until it is gone, and close the descriptors."""
        if self._is_closed:
            return
        if self._report is None:
            self._send({"stop": 0})
            until = time.monotonic() + KILL_SECONDS + GUARD_SECONDS
            while self._report is None and (left := until - time.monotonic()) > 0:
                if _is_ready(self._guard.control.fileno(), left):
                    self._receive()
        if self._report is None:
            self._kill_guard()
            _is_ready(self._answer.pidfd, KILL_SECONDS)
        with self._sending:
            self._is_closed = True
        if self._report and self._report["keeper_is_free"]:
            self._give_back(self._guard)
        else:
            self._guard.close()
        self._descriptors.close()
        # The selector references this object's methods. This cycle would keep thousands of ended children in memory
        # until a garbage collection.
        self._selector.close()

    def _kill_guard(self) -> None:
        with suppress(OSError):
            signal.pidfd_send_signal(self._guard.pidfd, signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _is_ready(descriptor: int, seconds: float) -> bool:
    """Return whether the descriptor becomes readable in time. A pidfd becomes readable when its process ends."""
    watched = select.poll()
    watched.register(descriptor, select.POLLIN)
    return bool(watched.poll(seconds * 1000))
