"""Reads figures from /proc about processes and their descendants."""

import os
import select
import time
from contextlib import suppress
from pathlib import Path

import psutil

# If a process has not ended after this time, it was not stopped at all.
GONE_SECONDS = 30.0
_TICKS = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    return [root, *(each.pid for each in psutil.Process(root).children(recursive=True))]


def proportional_bytes(pids: list[int]) -> int:
    """Return the proportional set size, in which memory that n processes share counts as one nth for each process."""
    return sum(_kilobytes(f"/proc/{pid}/smaps_rollup", "Pss:") for pid in pids) * 1024


def resident_bytes(pid: int) -> int:
    return _kilobytes(f"/proc/{pid}/status", "VmRSS:") * 1024


def peak_bytes(pid: int) -> int:
    """Return the peak resident size since `forget_peak`."""
    return _kilobytes(f"/proc/{pid}/status", "VmHWM:") * 1024


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def processor_seconds(pids: list[int]) -> dict[int, float]:
    """Return the processor seconds of each process, including children that it has waited for. Skip processes that have
    ended.
    """
    found = {}
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            found[pid] = sum(map(int, _stat(pid)[11:15])) / _TICKS
    return found


def own_processor_seconds(pid: int) -> float:
    return sum(map(int, _stat(pid)[11:13])) / _TICKS


def parent(pid: int) -> int:
    return int(_stat(pid)[1])


def gone_at(pids: list[int]) -> int:
    """Wait until all of these processes have ended. Return the moment by time.monotonic_ns()."""
    until = time.monotonic() + GONE_SECONDS
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended, _, _ = select.select([descriptor], [], [], max(until - time.monotonic(), 0))
        os.close(descriptor)
        if not ended:
            raise TimeoutError(f"process {pid} was not ended within {GONE_SECONDS:g} s")
    return time.monotonic_ns()


def _kilobytes(file: str, name: str) -> int:
    lines = Path(file).read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat, starting with the state. The name before the state may contain spaces."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
