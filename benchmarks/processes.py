"""What /proc says of a process and of all that it has started."""

import os
import select
import time
from contextlib import suppress
from pathlib import Path

import psutil

# What ends later than this has not been ended.
GONE_SECONDS = 30.0
_TICKS = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    return [root, *(each.pid for each in psutil.Process(root).children(recursive=True))]


def proportional_bytes(pids: list[int]) -> int:
    """What is shared by n processes counts for each of them as the nth part."""
    return sum(_kilobytes(f"/proc/{pid}/smaps_rollup", "Pss:") for pid in pids) * 1024


def resident_bytes(pid: int) -> int:
    return _kilobytes(f"/proc/{pid}/status", "VmRSS:") * 1024


def peak_bytes(pid: int) -> int:
    """The most that was resident since `forget_peak`."""
    return _kilobytes(f"/proc/{pid}/status", "VmHWM:") * 1024


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def processor_seconds(pids: list[int]) -> dict[int, float]:
    """Of each with all that it has waited for; not of those that have just ended."""
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
    """Wait for the end of all of them; answers the moment by time.monotonic_ns()."""
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
    """From the state of the process on, which is after its name."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
