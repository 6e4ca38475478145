"""File locks between the processes of one host. The kernel releases a process's locks when it dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path


def shared(path: Path) -> AbstractContextManager[bool]:
    return _lock(path, fcntl.LOCK_SH)


def alone(path: Path) -> AbstractContextManager[bool]:
    return _lock(path, fcntl.LOCK_EX)


def alone_at_once(path: Path) -> AbstractContextManager[bool]:
    """Take an exclusive lock without waiting. Yield False if another process has the lock."""
    return _lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def _lock(path: Path, how: int) -> Iterator[bool]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        ours = True
        try:
            fcntl.flock(descriptor, how)
        except BlockingIOError:
            ours = False
        yield ours
    finally:
        os.close(descriptor)
