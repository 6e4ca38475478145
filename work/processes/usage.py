"""Measures the memory, disk space and processes of a child and all its descendants, twice a second.

The kernel's limits apply to single processes, but a program can have many.
"""

import errno
import os
import random
import signal
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from ade_keeper import proc

LOOK_SECONDS = 0.5
# Slow measurements are repeated less often, but at least so often that an exceeded limit is noticed within two seconds.
LONGEST_PAUSE_SECONDS = 1.2
# Time limit for reading memory maps. While a process forks, reading its map has to wait: 500 processes that did nothing
# but fork delayed one measurement by 24 s. Processes are read in random order, so later measurements include those that
# this one skips.
MAPS_SECONDS = 0.4
# Every file and folder counts as at least this large, so that many empty files reach the limit too.
LEAST_FILE_BYTES = 4096
_TOO_MUCH = 1 << 62
# Limits on all processes of a child together, because each descriptor and each mapping takes time to measure.
MOST_DESCRIPTORS = 1 << 16
MOST_MAPPINGS = 1 << 20
# The memory that a TCP socket can use beyond the default buffer. Programs cannot raise it; see `seccomp.py`.
_TCP_BYTES = 10 << 20
_SHARED_MEMORY = (b"/dev/zero ", b"/memfd:", b"/SYSV")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MB = 1 << 20


@dataclass(frozen=True)
class Most:
    """Limits on all processes of a child together. None means no limit."""

    memory_bytes: int | None
    # Threads count too, as they do for the kernel.
    processes: int | None
    disk_bytes: int | None


class Usage:
    """Measures what all descendants of `root` use, and the size of these folders.

    `walled_off` means that the first two descendants belong to the sandbox and not to the program. `own_network` means
    that the network namespace contains no sockets except those of these processes.
    """

    def __init__(
        self,
        root: int,
        folders: Sequence[str],
        most: Most,
        *,
        victim: proc.Process | None = None,
        walled_off: bool = False,
        own_network: bool = False,
    ) -> None:
        self._root, self._folders, self._most = root, folders, most
        self._walled_off, self._own_network = walled_off, own_network
        # Files and memory that cannot be inspected are estimated by how far the machine's totals have since moved from
        # these values.
        self._free_at_first, self._shared_at_first = _free_bytes(folders), _shared_bytes() or _TOO_MUCH
        # The first process of the sandbox. Killing it ends all processes in the sandbox at once. Otherwise a fork bomb
        # could fork faster than its processes are killed.
        self._victim = victim
        self._look_at = time.monotonic() + LOOK_SECONDS

    def end(self) -> None:
        if self._victim is not None:
            proc.send_exactly(self._victim, signal.SIGKILL)

    def seconds_until_due(self) -> float:
        return self._look_at - time.monotonic()

    def excess(self) -> str | None:
        """Return which limit is exceeded, in words that complete "exceeded its limit of", or None."""
        started_at = time.monotonic()
        try:
            pids: list[int] = []
            if (excess := self._excess_of_processes(pids)) is not None:
                return excess
            open_files = _OpenFiles()
            own = pids[2:] if self._walled_off else pids
            until = time.monotonic() + MAPS_SECONDS
            for pid in random.sample(own, len(own)):
                open_files.add(pid)
                if time.monotonic() > until:
                    break
            if excess := self._excess_of_memory(pids, open_files) or self._excess_of_disk(open_files):
                return excess
            # If the measurement took long, the number of processes may have grown.
            return self._excess_of_processes([]) if time.monotonic() > until else None
        except _TooMany as error:
            return str(error)
        finally:
            now = time.monotonic()
            self._look_at = now + min(max(LOOK_SECONDS, 5 * (now - started_at)), LONGEST_PAUSE_SECONDS)

    def _excess_of_processes(self, pids: list[int]) -> str | None:
        """Return the excess, if any. Append the processes' IDs to `pids`, and stop once the limit is exceeded."""
        most, tasks = self._most.processes, 0
        for pid in below(self._root):
            pids.append(pid)
            tasks += _size_of(pid)[0]
            if most is not None and tasks > most:
                return f"processes and threads: more than {most} at the same time"
        return None

    def _excess_of_memory(self, pids: Sequence[int], open_files: "_OpenFiles") -> str | None:
        if (most := self._most.memory_bytes) is None:
            return None
        of_kernel = _socket_memory_bytes(pids[1]) if self._own_network and len(pids) > 1 else 0
        resident = sum(_size_of(pid)[1] * _PAGE + _swap_bytes(pid) for pid in pids)
        if resident + of_kernel + open_files.shared_bytes > most:
            # This sum counts shared pages once per process and mapped shared memory twice, so measure more exactly.
            until = time.monotonic() + MAPS_SECONDS
            sizes = [_proportional(pid) if time.monotonic() < until else _as_resident(pid) for pid in pids]
            unmapped = max(open_files.shared_bytes - sum(shared for _, shared in sizes), 0)
            total = sum(size for size, _ in sizes) + unmapped + of_kernel
            if total > most:
                return f"memory: {total / _MB:.0f} MB in {len(pids)} processes, at most {most / _MB:.0f} MB"
        if open_files.has_shared_memory and (growth := _shared_bytes() - self._shared_at_first) > most:
            return f"memory: {growth / _MB:.0f} MB of shared memory since it started, at most {most / _MB:.0f} MB"
        return None

    def _excess_of_disk(self, open_files: "_OpenFiles") -> str | None:
        if (most := self._most.disk_bytes) is None:
            return None
        total = open_files.nameless_bytes
        is_incomplete = open_files.is_incomplete
        for folder in self._folders:
            for size in _sizes_in(folder):
                total += size or 0
                is_incomplete = is_incomplete or size is None
                if total > most:
                    break
        if total > most:
            return f"disk: more than {most / _MB:.0f} MB in its files"
        if is_incomplete and self._free_at_first - _free_bytes(self._folders) > most:
            return f"disk: more than {most / _MB:.0f} MB since it started, with files that cannot be counted"
        return None


class _TooMany(Exception):
    """The message names the limit, in words that complete "exceeded its limit of"."""


class _OpenFiles:
    """Counts deleted files and shared memory, which no folder lists but which processes hold open or mapped."""

    def __init__(self) -> None:
        self.nameless_bytes = 0
        # The part of the shared memory whose size is known.
        self.shared_bytes = 0
        self.has_shared_memory = False
        # Whether there are files that cannot be counted.
        self.is_incomplete = False
        self._seen: set[tuple[int, int]] = set()
        self._descriptors = self._mappings = 0

    def add(self, pid: int) -> None:
        with suppress(FileNotFoundError, ProcessLookupError):
            self._look_at_descriptors(pid)
            try:
                with open(f"/proc/{pid}/maps", "rb") as file:
                    for line in file:
                        self._mappings += 1
                        if line.endswith(b" (deleted)\n"):
                            self._add_mapping(pid, *line.split(maxsplit=5))
            except PermissionError:
                self.is_incomplete = True
            if self._mappings > MOST_MAPPINGS:
                raise _TooMany(f"memory: more than {MOST_MAPPINGS} mappings in all its processes")

    def _look_at_descriptors(self, pid: int) -> None:
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")
        except PermissionError:
            # The kernel does not let this user inspect the process.
            self.is_incomplete = True
            return
        self._descriptors += len(numbers)
        if self._descriptors > MOST_DESCRIPTORS:
            raise _TooMany(f"open files: more than {MOST_DESCRIPTORS} in all its processes")
        for number in numbers:
            with suppress(OSError):
                file = os.stat(f"/proc/{pid}/fd/{number}")
                if stat.S_ISREG(file.st_mode) and not file.st_nlink:
                    self.nameless_bytes += self._size_once(file)
                elif stat.S_ISSOCK(file.st_mode):
                    self.is_incomplete = self.is_incomplete or _carries_descriptors(pid, number)

    def _add_mapping(self, pid: int, place: bytes, mode: bytes, offset: bytes, device: bytes, *rest: bytes) -> None:
        is_shared = rest[1].startswith(_SHARED_MEMORY)
        self.has_shared_memory |= is_shared
        try:
            file = os.stat(f"/proc/{pid}/map_files/{place.decode()}")
        except OSError:
            # Only root may follow this link.
            self.is_incomplete |= not is_shared
            return
        if is_shared:
            self.shared_bytes += self._size_once(file)
        else:
            self.nameless_bytes += self._size_once(file)

    def _size_once(self, file: os.stat_result) -> int:
        key = (file.st_dev, file.st_ino)
        if key in self._seen or file.st_nlink:
            return 0
        self._seen.add(key)
        return file.st_blocks * 512


def first_below(pid: int) -> int:
    """Return the first child of a bubblewrap process, or the process itself if it has no children."""
    return next(iter(_children(pid)), pid)


def below(root: int) -> Iterator[int]:
    """Yield all descendants of a process. Descendants of processes that end meanwhile may be missing."""
    waiting = _children(root)
    for pid in waiting:
        yield pid
        waiting += _children(pid)


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(ProcessLookupError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                children += map(int, file.read().split())
    except FileNotFoundError:
        if not os.path.exists("/proc/thread-self/children"):
            # This kernel has no lists of children.
            children = [each.pid for each in proc.processes() if each.parent == pid]
    except ProcessLookupError:
        pass
    return children


def _size_of(pid: int) -> tuple[int, int]:
    """Return a process's number of threads, and its number of pages in memory."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    return int(fields[17]), int(fields[21])


def _swap_bytes(pid: int) -> int:
    if not _has_swap():
        return 0
    with suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(b"VmSwap:"))
    return 0


@cache
def _has_swap() -> bool:
    with open("/proc/swaps", "rb") as file:
        return len(file.readlines()) > 1


def _proportional(pid: int) -> tuple[int, int]:
    """Return a process's memory including swap, and how much of it is shared memory.

    The size of each page is divided by the number of processes that share it.
    """
    total, shared = 0, 0
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith((b"Pss:", b"SwapPss:")):
                    total += int(line.split()[1]) * 1024
                elif line.startswith(b"Pss_Shmem:"):
                    shared = int(line.split()[1]) * 1024
    except PermissionError:
        return _as_resident(pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    return total, shared


def _as_resident(pid: int) -> tuple[int, int]:
    return _size_of(pid)[1] * _PAGE, 0


def _socket_memory_bytes(pid: int) -> int:
    """Return how much kernel memory the sockets of the process's network namespace can use.

    This memory belongs to no process. Sockets inside messages that are still unread count too.
    """
    total = 0
    with suppress(OSError), open(f"/proc/{pid}/net/sockstat", "rb") as file:
        for line in file:
            if line.startswith(b"sockets: used "):
                total += int(line.split()[2]) * _socket_bytes()
            elif line.startswith(b"TCP: inuse "):
                total += int(line.split()[2]) * _TCP_BYTES
    return total


@cache
def _socket_bytes() -> int:
    with open("/proc/sys/net/core/wmem_default", "rb") as file:
        return int(file.read())


def _shared_bytes() -> int:
    """Return the size of all shared memory of the machine, or 0 if it is unknown."""
    with suppress(OSError), open("/proc/meminfo", "rb") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(b"Shmem:"))
    return 0


def _free_bytes(folders: Sequence[str]) -> int:
    for folder in folders:
        with suppress(OSError):
            disk = os.statvfs(folder)
            return disk.f_bfree * disk.f_frsize
    return 0


def _carries_descriptors(pid: int, number: str) -> bool:
    """Return whether unread messages in this socket carry descriptors, because no list of open files has those."""
    with suppress(OSError), open(f"/proc/{pid}/fdinfo/{number}", "rb") as file:
        return any(line.startswith(b"scm_fds:") and int(line.split()[1]) > 0 for line in file)
    return False


def _sizes_in(folder: str) -> Iterator[int | None]:
    """Yield the size of each file and folder in a folder at any depth, and None for each folder that cannot be read."""
    waiting = [folder]
    for each in waiting:
        try:
            entries = os.scandir(each)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                # Folders this deep only serve to hide files, so they count as over the limit.
                yield _TOO_MUCH
            elif error.errno == errno.EACCES:
                yield None
            continue
        with entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    yield max(status.st_blocks * 512, LEAST_FILE_BYTES)
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append(entry.path)
