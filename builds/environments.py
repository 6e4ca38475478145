"""The environments of this host. There is one directory per fingerprint and lock, which is either complete or missing.

Its name contains both, because the package index may resolve the same fingerprint to other versions on another day.

A process that uses an environment holds a shared lock on its name. A process that makes one holds a lock on the staging
directory. The kernel releases both locks when a process dies, so pruning and sweeping need to know nothing about runs
or workers.

Each environment has a seal, which is a list of its files (builds/integrity.py). An environment that differs from its
seal is not used.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import structlog
from django.conf import settings

from ade_engine.runner import CONFIGURATION as CONFIGURATION
from ade_engine.runner import MARKER as MARKER
from builds import integrity
from builds.integrity import Seal
from work.processes import filelocks, scratch

BUILDING = ".building-"
REMOVED = ".removed-"
LOCKS = ".locks"
SEALS = ".seals"
# How long a check of an environment's files remains valid. Checking a large environment takes some 10 ms, so runs in
# quick succession skip the check.
LOOK_SECONDS = 10.0
_MISSING = "is missing"
# Name -> when the files were last found unchanged (time.monotonic()), and the inode of the directory.
_checked: dict[str, tuple[float, int]] = {}

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Staging:
    """The directory in which an environment is made. `home` becomes the environment, `seal` becomes its seal, and
    `work` is deleted.
    """

    root: Path

    @property
    def home(self) -> Path:
        return self.root / "environment"

    @property
    def seal(self) -> Path:
        return self.root / "seal.json"

    @property
    def work(self) -> Path:
        return self.root / "work"


@dataclass(frozen=True)
class StoredEnvironment:
    name: str
    path: Path
    size_bytes: int
    # Seconds since the epoch.
    used_at: float

    @property
    def fingerprint(self) -> str:
        return self.name.partition("-")[0]


@dataclass(frozen=True)
class Pruned:
    removed: list[StoredEnvironment]
    # Environments that would have been removed if they were not in use.
    in_use: list[StoredEnvironment]


def root() -> Path:
    return Path(settings.VAR_DIR, "environments")


def name_of(fingerprint: str, lock: str) -> str:
    return f"{fingerprint}-{hashlib.sha256(lock.encode()).hexdigest()[:12]}" if lock else fingerprint


def path_of(name: str) -> Path:
    return root() / name


def python_of(environment: Path) -> str:
    return str(environment / "bin" / "python")


def exists(name: str) -> bool:
    """Return whether the environment is complete and its Python still exists on this host."""
    path = path_of(name)
    return (path / MARKER).is_file() and os.path.exists(python_of(path))


def is_usable(name: str) -> bool:
    return not why_unusable(name)


def why_unusable(name: str) -> str:
    """Return why the environment cannot be used, or an empty string if it can. The reason completes a sentence.

    Check the environment's files unless this process has checked them within the last LOOK_SECONDS.
    """
    if not exists(name):
        return _MISSING
    checked_at, inode = _checked.get(name, (-LOOK_SECONDS, 0))
    if time.monotonic() - checked_at < LOOK_SECONDS and inode == _inode(name):
        return ""
    return _check(name)


def read_seal(name: str) -> Seal | None:
    return integrity.read_seal(_seal_path(name))


@contextmanager
def in_use(name: str) -> Iterator[Path]:
    """Protect the environment from removal while it is in use. The environment need not exist yet."""
    with filelocks.shared(_use_lock(name)):
        path = path_of(name)
        with suppress(FileNotFoundError):
            os.utime(path)
        yield path


@contextmanager
def staging(fingerprint: str) -> Iterator[Staging]:
    name = f"{BUILDING}{fingerprint[:12]}-{uuid4().hex}"
    with filelocks.alone(_use_lock(name)):
        staged = Staging(root() / name)
        try:
            staged.root.mkdir(mode=0o700, parents=True)
            staged.work.mkdir()
            yield staged
        finally:
            erase(staged.root)
    _use_lock(name).unlink(missing_ok=True)


def publish(staged: Staging, name: str) -> bool:
    """Publish the seal, and then the directory in one rename. Replace any unusable environment of that name.

    Return False if another process has already published this environment. Its environment is the same, so use that.
    """
    with filelocks.alone(_publishing_lock(name)):
        if exists(name) and not _check(name):
            return False
        _rename_away(name)
        _seal_path(name).parent.mkdir(mode=0o700, exist_ok=True)
        os.replace(staged.seal, _seal_path(name))
        os.rename(staged.home, path_of(name))
        _checked[name] = (time.monotonic(), _inode(name))
    return True


def seal(staged: Staging) -> Seal:
    """Make the environment read-only and write its seal."""
    integrity.protect(staged.home)
    files = integrity.make_seal(staged.home)
    integrity.write_seal(staged.seal, files)
    return files


def write_configuration(home: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = home / CONFIGURATION / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", newline="")
    (home / CONFIGURATION).mkdir(exist_ok=True)


def write_marker(home: Path, **values: str | int) -> None:
    (home / MARKER).write_text(json.dumps(values))


def size_of(directory: Path) -> int:
    """Return the total size of all files. They use less space if the file system shares blocks between copies."""
    total = 0
    for folder, _, names in os.walk(directory):
        total += sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
    return total


def all_environments() -> list[StoredEnvironment]:
    """Return all environments, the longest unused first."""
    environments = []
    with suppress(FileNotFoundError):
        for entry in os.scandir(root()):
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                path = Path(entry.path)
                try:
                    size = int(json.loads((path / MARKER).read_bytes()).get("size_bytes", 0))
                except (OSError, ValueError):
                    size = size_of(path)
                environments.append(StoredEnvironment(entry.name, path, size, entry.stat().st_mtime))
    return sorted(environments, key=lambda each: each.used_at)


def remove(name: str) -> bool:
    """Remove an environment. Return False if it is in use."""
    with filelocks.alone_at_once(_use_lock(name)) as ours:
        if ours:
            with filelocks.alone(_publishing_lock(name)):
                renamed = _rename_away(name)
    if ours and renamed:
        # Erase the environment only after the locks are released, so that no build waits for that.
        erase(renamed)
    return ours


def erase(tree: Path) -> None:
    """Remove a directory tree, even if it is read-only or packages have changed its permissions."""
    integrity.unprotect(tree)
    scratch.remove(tree)


def prune(*, unused_seconds: float | None, most_bytes: int | None, rehearse: bool = False) -> Pruned:
    """Remove environments that have been unused for too long. Then remove the longest unused until the rest fits
    `most_bytes`. With `rehearse`, only report what would be removed.
    """
    environments, pruned = all_environments(), Pruned([], [])
    left = sum(each.size_bytes for each in environments)
    for each in environments:
        too_old = unused_seconds is not None and time.time() - each.used_at > unused_seconds
        too_much = most_bytes is not None and left > most_bytes
        if not too_old and not too_much:
            continue
        if is_free(each.name) if rehearse else remove(each.name):
            left -= each.size_bytes
            pruned.removed.append(each)
        else:
            pruned.in_use.append(each)
    return pruned


def is_free(name: str) -> bool:
    with filelocks.alone_at_once(_use_lock(name)) as ours:
        return ours


def tidy(_owner: str = "") -> int:
    """Remove half-made and long-unused environments of this host. As a periodic task, return 0: no rows change."""
    swept = sweep()
    pruned = prune(unused_seconds=settings.ADE_ENVIRONMENT_UNUSED_SECONDS, most_bytes=settings.ADE_ENVIRONMENTS_BYTES)
    if swept or pruned.removed:
        log.info("environments.tidied", swept=swept, pruned=[each.fingerprint[:12] for each in pruned.removed])
    return 0


def sweep() -> int:
    """Remove half-made and half-removed environments, and seals without an environment.

    Return the number of removed environments.
    """
    swept = 0
    with suppress(FileNotFoundError):
        for entry in list(os.scandir(root())):
            if not entry.name.startswith((BUILDING, REMOVED)):
                continue
            with filelocks.alone_at_once(_use_lock(entry.name)) as dead:
                if dead:
                    erase(Path(entry.path))
                    _use_lock(entry.name).unlink(missing_ok=True)
                    swept += 1
        # Remove the seals of environments that were deleted by hand, and half-written seals.
        for entry in list(os.scandir(root() / SEALS)):
            seal = Path(entry)
            with filelocks.alone_at_once(_publishing_lock(seal.stem)) as ours:
                if ours and (seal.suffix == ".new" or not path_of(seal.stem).exists()):
                    seal.unlink()
    return swept


def _check(name: str) -> str:
    """Check the files, and return what `why_unusable` returns."""
    inode, now = _inode(name), time.monotonic()
    sealed = read_seal(name)
    if sealed is None:
        return "has no seal: it was made by an older version, or the seal was removed"
    try:
        changes = integrity.compare(path_of(name), sealed)
    except FileNotFoundError:
        return _MISSING
    if changes:
        log.warning("environments.changed", name=name, changes=str(changes))
        return f"was changed after it was made: {changes}"
    if changes.has_new_times:
        _seal_again(name, inode)
    _checked[name] = (now, inode)
    return ""


def _seal_again(name: str, inode: int) -> None:
    """Update the times in the seal if all contents are unchanged, so that the next check need not read the files."""
    with filelocks.alone_at_once(_publishing_lock(name)) as ours:
        sealed = read_seal(name)
        if not ours or sealed is None or inode != _inode(name):
            return
        now = integrity.make_seal(path_of(name))
        if {path: entry.sha256 for path, entry in now.items()} == {path: each.sha256 for path, each in sealed.items()}:
            integrity.write_seal(_seal_path(name), now)


def _rename_away(name: str) -> Path | None:
    """Move the environment out of the way and delete its seal. Return its new path, or None if it does not exist.

    The caller must hold the publishing lock.
    """
    _checked.pop(name, None)
    renamed = root() / f"{REMOVED}{uuid4().hex}"
    _seal_path(name).unlink(missing_ok=True)
    try:
        os.rename(path_of(name), renamed)
    except FileNotFoundError:
        return None
    return renamed


def _inode(name: str) -> int:
    try:
        return os.stat(path_of(name)).st_ino
    except FileNotFoundError:
        return 0


def _seal_path(name: str) -> Path:
    return root() / SEALS / f"{name}.json"


def _publishing_lock(name: str) -> Path:
    return root() / LOCKS / f"{name}.publishing"


def _use_lock(name: str) -> Path:
    return root() / LOCKS / name
