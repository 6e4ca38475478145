"""Measures what a child and all its descendants use, twice a second.

The kernel's limits hold for a single process, and a program can have many.
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
# A slow measurement is repeated less often, but a limit still holds within two seconds.
LONGEST_PAUSE_SECONDS = 1.2
# To read the memory map of a process waits for it: a fork copies that, and 500 that do nothing but fork made a look of
# 24 s of it. Who is left out is looked at another time.
MAPS_SECONDS = 0.4
# What a file costs, however small it is.
LEAST_FILE_BYTES = 4096
_TOO_MUCH = 1 << 62
# Of all processes: what there is to look at has an end too.
MOST_DESCRIPTORS = 1 << 16
MOST_MAPPINGS = 1 << 20
# What a socket can hold, beside what it holds at most by default: nobody can ask for more (`seccomp.py`).
_TCP_BYTES = 10 << 20
_SHARED_MEMORY = (b"/dev/zero ", b"/memfd:", b"/SYSV")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MB = 1 << 20


@dataclass(frozen=True)
class Most:
    """Limits on all processes together. None means no limit."""

    memory_bytes: int | None
    # Includes threads, as the kernel does.
    processes: int | None
    disk_bytes: int | None


class Usage:
    """Of all below this process, and of what lies in these folders. `walled_off`: its first two processes are not its
    program's; `own_network`: no socket of it is anybody else's.
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
        # What cannot be looked into is judged by what is missing on the machine.
        self._free_at_first, self._shared_at_first = _free_bytes(folders), _shared_bytes() or _TOO_MUCH
        # Whoever could fork faster than it is killed has to go at once, with the first process of its sandbox.
        self._victim = victim
        self._look_at = time.monotonic() + LOOK_SECONDS

    def end(self) -> None:
        if self._victim is not None:
            proc.send_exactly(self._victim, signal.SIGKILL)

    def seconds_until_due(self) -> float:
        return self._look_at - time.monotonic()

    def excess(self) -> str | None:
        """Return the exceeded limit in words that continue "over its limit of", or None."""
        began = time.monotonic()
        try:
            pids: list[int] = []
            if (excess := self._excess_of_processes(pids)) is not None:
                return excess
            opened = _Opened()
            own = pids[2:] if self._walled_off else pids
            until = time.monotonic() + MAPS_SECONDS
            for pid in random.sample(own, len(own)):
                opened.look_at(pid)
                if time.monotonic() > until:
                    break
            if excess := self._excess_of_memory(pids, opened) or self._excess_of_disk(opened):
                return excess
            # Meanwhile there may be more of them.
            return self._excess_of_processes([]) if time.monotonic() > until else None
        except _TooMany as error:
            return str(error)
        finally:
            took = time.monotonic() - began
            self._look_at = began + took + min(max(LOOK_SECONDS, 5 * took), LONGEST_PAUSE_SECONDS)

    def _excess_of_processes(self, pids: list[int]) -> str | None:
        """Adds those that it finds, until they are too many."""
        most, tasks = self._most.processes, 0
        for pid in below(self._root):
            pids.append(pid)
            tasks += _size_of(pid)[0]
            if most is not None and tasks > most:
                return f"processes and threads: more than {most} at the same time"
        return None

    def _excess_of_memory(self, pids: Sequence[int], opened: "_Opened") -> str | None:
        if (most := self._most.memory_bytes) is None:
            return None
        of_kernel = _in_sockets(pids[1]) if self._own_network and len(pids) > 1 else 0
        resident = sum(_size_of(pid)[1] * _PAGE + _swapped(pid) for pid in pids)
        if resident + of_kernel + opened.shared_bytes > most:
            # What several share was counted for each of them, and what is mapped of shared memory twice.
            until = time.monotonic() + MAPS_SECONDS
            found = [_proportional(pid) if time.monotonic() < until else _as_resident(pid) for pid in pids]
            unmapped = max(opened.shared_bytes - sum(shared for _, shared in found), 0)
            taken = sum(size for size, _ in found) + unmapped + of_kernel
            if taken > most:
                return f"memory: {taken / _MB:.0f} MB in {len(pids)} processes, at most {most / _MB:.0f} MB"
        if opened.has_shared_memory and (gone := _shared_bytes() - self._shared_at_first) > most:
            return f"memory: {gone / _MB:.0f} MB of shared memory since it started, at most {most / _MB:.0f} MB"
        return None

    def _excess_of_disk(self, opened: "_Opened") -> str | None:
        if (most := self._most.disk_bytes) is None:
            return None
        taken = opened.nameless_bytes
        hidden = opened.hidden
        for folder in self._folders:
            for size in _sizes_in(folder):
                taken += size or 0
                hidden = hidden or size is None
                if taken > most:
                    break
        if taken > most:
            return f"disk: more than {most / _MB:.0f} MB in its files"
        if hidden and self._free_at_first - _free_bytes(self._folders) > most:
            return f"disk: more than {most / _MB:.0f} MB since it started, with files that cannot be counted"
        return None


class _TooMany(Exception):
    """Says of what, in words that continue "over its limit of"."""


class _Opened:
    """What processes hold open or mapped and no folder shows: files that were removed, and shared memory."""

    def __init__(self) -> None:
        self.nameless_bytes = 0
        # What is known of it; a part may not be.
        self.shared_bytes = 0
        self.has_shared_memory = False
        # There are files that cannot be counted.
        self.hidden = False
        self._seen: set[tuple[int, int]] = set()
        self._descriptors = self._mappings = 0

    def look_at(self, pid: int) -> None:
        with suppress(FileNotFoundError, ProcessLookupError):
            self._look_at_descriptors(pid)
            self._look_at_mappings(pid)

    def _look_at_descriptors(self, pid: int) -> None:
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")
        except PermissionError:
            # It lets nobody look into it.
            self.hidden = True
            return
        self._descriptors += len(numbers)
        if self._descriptors > MOST_DESCRIPTORS:
            raise _TooMany(f"open files: more than {MOST_DESCRIPTORS} in all its processes")
        for number in numbers:
            with suppress(OSError):
                found = os.stat(f"/proc/{pid}/fd/{number}")
                if stat.S_ISREG(found.st_mode) and not found.st_nlink:
                    self._add(found)
                elif stat.S_ISSOCK(found.st_mode):
                    self.hidden = self.hidden or _carries_descriptors(pid, number)

    def _look_at_mappings(self, pid: int) -> None:
        try:
            with open(f"/proc/{pid}/maps", "rb") as file:
                for line in file:
                    self._mappings += 1
                    if line.endswith(b" (deleted)\n"):
                        self._add_mapping(pid, *line.split(maxsplit=5))
        except PermissionError:
            self.hidden = True
        if self._mappings > MOST_MAPPINGS:
            raise _TooMany(f"memory: more than {MOST_MAPPINGS} mappings in all its processes")

    def _add_mapping(self, pid: int, place: bytes, mode: bytes, offset: bytes, device: bytes, *rest: bytes) -> None:
        is_shared = rest[1].startswith(_SHARED_MEMORY)
        self.has_shared_memory |= is_shared
        try:
            found = os.stat(f"/proc/{pid}/map_files/{place.decode()}")
        except OSError:
            # Only root may.
            self.hidden |= not is_shared
            return
        if is_shared:
            self.shared_bytes += self._once(found)
        else:
            self._add(found)

    def _add(self, found: os.stat_result) -> None:
        self.nameless_bytes += self._once(found)

    def _once(self, found: os.stat_result) -> int:
        file = (found.st_dev, found.st_ino)
        if file in self._seen or found.st_nlink:
            return 0
        self._seen.add(file)
        return found.st_blocks * 512


def first_below(pid: int) -> int:
    """Return the first child of a process, which bubblewrap started, or the process itself if it has none."""
    return next(iter(_children(pid)), pid)


def below(root: int) -> Iterator[int]:
    """All descendants; those that end meanwhile may be missing."""
    waiting = _children(root)
    for pid in waiting:
        yield pid
        waiting += _children(pid)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(ProcessLookupError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    except FileNotFoundError:
        if not os.path.exists("/proc/thread-self/children"):
            # The kernel does not provide these lists.
            found = [each.pid for each in proc.processes() if each.parent == pid]
    except ProcessLookupError:
        pass
    return found


def _size_of(pid: int) -> tuple[int, int]:
    """Return the number of threads, and of pages in memory."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    return int(fields[17]), int(fields[21])


def _swapped(pid: int) -> int:
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
    """Each page divided by the number of those who share it; what is swapped out included. And what of it is of shared
    memory.
    """
    taken, shared = 0, 0
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith((b"Pss:", b"SwapPss:")):
                    taken += int(line.split()[1]) * 1024
                elif line.startswith(b"Pss_Shmem:"):
                    shared = int(line.split()[1]) * 1024
    except PermissionError:
        return _as_resident(pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    return taken, shared


def _as_resident(pid: int) -> tuple[int, int]:
    return _size_of(pid)[1] * _PAGE, 0


def _in_sockets(pid: int) -> int:
    """What the sockets of its network can hold: memory of the kernel, of no process. Those in messages count too."""
    found = 0
    with suppress(OSError), open(f"/proc/{pid}/net/sockstat", "rb") as file:
        for line in file:
            if line.startswith(b"sockets: used "):
                found += int(line.split()[2]) * _socket_bytes()
            elif line.startswith(b"TCP: inuse "):
                found += int(line.split()[2]) * _TCP_BYTES
    return found


@cache
def _socket_bytes() -> int:
    with open("/proc/sys/net/core/wmem_default", "rb") as file:
        return int(file.read())


def _shared_bytes() -> int:
    """Of the whole machine; 0 if nobody knows."""
    with suppress(OSError), open("/proc/meminfo", "rb") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(b"Shmem:"))
    return 0


def _free_bytes(folders: Sequence[str]) -> int:
    for folder in folders:
        with suppress(OSError):
            found = os.statvfs(folder)
            return found.f_bfree * found.f_frsize
    return 0


def _carries_descriptors(pid: int, number: str) -> bool:
    """Files in a message that nobody has read are in no list of open ones."""
    with suppress(OSError), open(f"/proc/{pid}/fdinfo/{number}", "rb") as file:
        return any(line.startswith(b"scm_fds:") and int(line.split()[1]) > 0 for line in file)
    return False


def _sizes_in(folder: str) -> Iterator[int | None]:
    """None: of what cannot be looked into."""
    waiting = [folder]
    for each in waiting:
        try:
            entries = os.scandir(each)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                # Folders this deep serve to hide their content.
                yield _TOO_MUCH
            elif error.errno == errno.EACCES:
                yield None
            continue
        with entries:
            for entry in entries:
                with suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    yield max(found.st_blocks * 512, LEAST_FILE_BYTES)
                    if stat.S_ISDIR(found.st_mode):
                        waiting.append(entry.path)
