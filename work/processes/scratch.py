"""The directories in which a worker's child processes work.

Each worker locks its own directory. When a worker has died, the next worker removes the directory that it left.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import structlog

from work.processes import filelocks
from work.processes.supervise import SCRATCH

LOCKS = ".locks"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_unremoved: list[Path] = []

log = structlog.get_logger(__name__)


class ScratchDirectory:
    """A worker's own folder. It contains a folder for each warm child, with a folder for each piece of work in it."""

    def __init__(self, root: Path) -> None:
        self.path = root / uuid4().hex
        self._lock_stack = ExitStack()
        self._lock_stack.enter_context(filelocks.alone(_lock(self.path)))
        self.path.mkdir(mode=0o700, parents=True)

    def place(self) -> Path:
        path = self.path / uuid4().hex
        path.mkdir(mode=0o700)
        return path

    def close(self) -> None:
        remove(self.path)
        _lock(self.path).unlink(missing_ok=True)
        self._lock_stack.close()


def sweep(root: Path) -> int:
    """Remove the folders of dead workers, and folders that could not be removed earlier. Return their number."""
    swept = 0
    for each in _take_unremoved():
        remove(each)
        swept += 1
    with suppress(FileNotFoundError):
        for entry in [each for each in os.scandir(root) if each.name != LOCKS]:
            path = Path(entry.path)
            with filelocks.alone_at_once(_lock(path)) as is_abandoned:
                if is_abandoned:
                    remove(path)
                    _lock(path).unlink(missing_ok=True)
                    swept += 1
    return swept


@contextmanager
def workplace(below: Path, name: str) -> Iterator[Path]:
    """Make a directory for one piece of work in a warm child's folder, and empty that folder afterwards.

    The next piece of work must not see any files that this one has put next to its own directory.
    """
    path = below / name
    path.mkdir(mode=0o700)
    try:
        yield path
    finally:
        with _log_errors(below):
            _empty(below, but=SCRATCH)
        with _log_errors(below), suppress(FileNotFoundError):
            # The scratch folder is mounted as the child's shared memory, so the folder itself has to stay.
            _empty(below / SCRATCH)


def is_intact(below: Path) -> bool:
    """Return whether other work may use the folder: it contains nothing but a scratch folder, which is not a link."""
    with suppress(OSError):
        return os.listdir(below) == [SCRATCH] and stat.S_ISDIR(os.lstat(below / SCRATCH).st_mode)
    return False


def remove(path: Path) -> None:
    """Remove a folder, whatever a child has done to it. If this fails, `remove` and `sweep` try again later."""
    for each in (path, *_take_unremoved()):
        try:
            with suppress(FileNotFoundError):
                _empty(each)
                each.rmdir()
        except OSError as error:
            log.warning("workplaces.not_removed", path=str(each), error=str(error))
            _unremoved.append(each)


def _take_unremoved() -> list[Path]:
    paths = []
    # Another thread may be taking folders from the same list.
    with suppress(IndexError):
        for _ in range(len(_unremoved)):
            paths.append(_unremoved.pop())
    return paths


def _empty(folder: Path, but: str = "") -> None:
    """Remove everything in a folder at any depth, without following links.

    Move the folders inside a folder up to the top, and then remove the folder. This needs only two descriptors, while
    shutil needs one per level, and it never recurses.
    """
    top = _enter(None, str(folder))
    try:
        while entries := [each for each in _entries(top) if each.name != but]:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    _remove_folder(top, entry.name)
                else:
                    os.unlink(entry.name, dir_fd=top)
    finally:
        os.close(top)


def _remove_folder(top: int, name: str) -> None:
    below = _enter(top, name)
    try:
        for entry in _entries(below):
            if entry.is_dir(follow_symlinks=False):
                # A folder without permissions cannot be moved either. `_enter` grants them.
                os.close(_enter(below, entry.name))
                os.rename(entry.name, uuid4().hex, src_dir_fd=below, dst_dir_fd=top)
            else:
                os.unlink(entry.name, dir_fd=below)
    finally:
        os.close(below)
    os.rmdir(name, dir_fd=top)


def _entries(folder: int) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)


def _enter(folder: int | None, name: str) -> int:
    """Open a folder. If this user, who owns it, lacks the permission, grant it first."""
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=folder)
        return os.open(name, _FOLDER, dir_fd=folder)


@contextmanager
def _log_errors(path: Path) -> Iterator[None]:
    """Log a failed removal instead of failing the work."""
    try:
        yield
    except OSError as error:
        log.warning("workplaces.not_removed", path=str(path), error=str(error))


def _lock(path: Path) -> Path:
    return path.parent / LOCKS / path.name
