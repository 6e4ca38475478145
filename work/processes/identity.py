"""Identifies a process beyond its pid, so that a worker can end the processes of a dead worker and no others."""

import os
import select
import signal
import socket
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal, Self

from ade_keeper import proc

# How long to wait after SIGKILL. It works at once, except on a process in uninterruptible sleep.
KILL_SECONDS = 5.0


@cache
def _boot() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def _machine() -> str:
    """Identify the kernel boot and the pid namespace. A pid has a meaning only within these."""
    return f"{_boot()}/{os.stat('/proc/self/ns/pid').st_ino}"


@dataclass(frozen=True)
class ProcessId:
    host: str
    machine: str
    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        process = proc.process(pid)
        return cls.here(pid, process.start_ticks) if process else None

    @classmethod
    def here(cls, pid: int, start_ticks: int) -> Self:
        return cls(socket.gethostname(), _machine(), pid, start_ticks)

    @classmethod
    def current(cls) -> Self:
        current = cls.of(os.getpid())
        if current is None:
            raise RuntimeError("This process is missing in /proc. Is /proc mounted?")
        return current

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(value["host"], value["machine"], value["pid"], value["start_ticks"])

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def alive(self) -> bool | None:
        """Return whether the process is alive, or None if it belongs to another machine, boot or pid namespace.

        A zombie counts as dead.
        """
        if self.machine != _machine():
            return None
        now = proc.process(self.pid)
        return now is not None and now.start_ticks == self.start_ticks and now.state not in "ZX"


def end_recorded(process_id: ProcessId, grace_seconds: float) -> Literal["ended", "gone", "elsewhere", "unkillable"]:
    """End this process, its group, session and descendants: SIGTERM, grace period, SIGKILL.

    Return "gone" if the process had already ended, even if another process has its pid now; "elsewhere" if nothing was
    done, because its pid has no meaning here (see `ProcessId.alive`); "unkillable" if it still exists, because it is in
    uninterruptible sleep or belongs to another user.
    """
    if process_id.machine != _machine():
        return "elsewhere"
    if process_id == ProcessId.current():
        raise ValueError(f"Process {process_id.pid} is this process itself, not one of a dead worker.")
    if not (victims := _belonging_to(process_id)):
        return "gone"
    _send(victims, signal.SIGTERM, signal.SIGCONT)
    _wait(victims, grace_seconds)
    give_up_at = time.monotonic() + KILL_SECONDS
    known = set(victims)
    while victims := _still_alive(known):
        if time.monotonic() >= give_up_at:
            return "unkillable"
        known |= _with_descendants(victims)
        _send(known, signal.SIGKILL)
        _wait(known, 0.1)
    return "ended"


def _belonging_to(process_id: ProcessId) -> set[proc.Process]:
    leader = proc.process(process_id.pid)
    if leader is None or leader.start_ticks != process_id.start_ticks:
        return set()
    members = [each for each in proc.processes() if process_id.pid in (each.pid, each.group, each.session)]
    return {each for each in _with_descendants(members) if each.state not in "ZX"}


def _with_descendants(roots: Iterable[proc.Process]) -> set[proc.Process]:
    roots = set(roots)
    return roots.union(*(proc.descendants(each.pid) for each in roots))


def _still_alive(known: Iterable[proc.Process]) -> set[proc.Process]:
    alive = set()
    for each in known:
        now = proc.process(each.pid)
        if now and now.start_ticks == each.start_ticks and now.state not in "ZX":
            alive.add(each)
    return alive


def _send(victims: Iterable[proc.Process], *numbers: int) -> None:
    for each in victims:
        for number in numbers:
            proc.send_exactly(each, number)


def _wait(victims: Iterable[proc.Process], seconds: float) -> None:
    """Wait until all processes have ended or the time is up."""
    watched = select.poll()
    waiting = set()
    for each in _still_alive(victims):
        try:
            pidfd = os.pidfd_open(each.pid)
        except OSError:
            continue
        watched.register(pidfd, select.POLLIN)
        waiting.add(pidfd)
    opened, until = set(waiting), time.monotonic() + seconds
    while waiting and (left := until - time.monotonic()) > 0:
        for pidfd, _ in watched.poll(left * 1000):
            watched.unregister(pidfd)
            waiting.discard(pidfd)
    for pidfd in opened:
        os.close(pidfd)
