"""The prepared environments of this host: a directory for each fingerprint and lock, which is complete or not there.

Both are in its name: a fingerprint says what was asked for, and the index answers differently from day to day.

Whoever uses one holds a shared lock on its name, and whoever makes one holds the lock on the directory it is made in;
the kernel lets go of both when a process dies. So pruning and sweeping need to know nothing of runs or of workers.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from django.conf import settings

from ade_engine.runner import CONFIGURATION as CONFIGURATION
from ade_engine.runner import MARKER as MARKER
from work import filelocks

BUILDING = ".building-"
REMOVED = ".removed-"
LOCKS = ".locks"


@dataclass(frozen=True)
class Staging:
    """Where an environment is made: `home` becomes it, `work` is thrown away."""

    root: Path

    @property
    def home(self) -> Path:
        return self.root / "environment"

    @property
    def work(self) -> Path:
        return self.root / "work"


@dataclass(frozen=True)
class Stored:
    """One environment on disk."""

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
    removed: list[Stored]
    # They would have gone, but for whoever uses them now.
    in_use: list[Stored]


def root() -> Path:
    return Path(settings.VAR_DIR, "environments")


def name_of(fingerprint: str, lock: str) -> str:
    return f"{fingerprint}-{hashlib.sha256(lock.encode()).hexdigest()[:12]}" if lock else fingerprint


def path_of(name: str) -> Path:
    return root() / name


def python_of(environment: Path) -> str:
    return str(environment / "bin" / "python")


def exists(name: str) -> bool:
    """Complete, and with a Python that is still on this host."""
    path = path_of(name)
    return (path / MARKER).is_file() and os.path.exists(python_of(path))


@contextmanager
def in_use(name: str) -> Iterator[Path]:
    """While this is held, nobody removes the environment; it may have to be made first."""
    with filelocks.shared(_lock(name)):
        path = path_of(name)
        with suppress(FileNotFoundError):
            os.utime(path)
        yield path


@contextmanager
def staging(fingerprint: str) -> Iterator[Staging]:
    name = f"{BUILDING}{fingerprint[:12]}-{uuid4().hex}"
    with filelocks.alone(_lock(name)):
        made = Staging(root() / name)
        try:
            made.root.mkdir(mode=0o700, parents=True)
            made.work.mkdir()
            yield made
        finally:
            shutil.rmtree(made.root, ignore_errors=True)
    _lock(name).unlink(missing_ok=True)


def publish(staged: Staging, name: str) -> bool:
    """In one rename. False when somebody was faster: then theirs is used, which is the same."""
    path = path_of(name)
    if path.exists() and not exists(name):
        # Its Python has been removed from this host since.
        os.rename(path, root() / f"{REMOVED}{uuid4().hex}")
    try:
        os.rename(staged.home, path)
    except OSError:
        if exists(name):
            return False
        raise
    return True


def write_configuration(home: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = home / CONFIGURATION / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", newline="")
    (home / CONFIGURATION).mkdir(exist_ok=True)


def write_marker(home: Path, **values: str | int) -> None:
    """What the engine reads, and what a list of environments shows."""
    (home / MARKER).write_text(json.dumps(values))


def size_of(directory: Path) -> int:
    """What it takes on the disk; what it shares with the cache by hard links is counted too."""
    total = 0
    for folder, _, names in os.walk(directory):
        total += sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
    return total


def stored() -> list[Stored]:
    """All that are there, the longest unused first."""
    found = []
    with suppress(FileNotFoundError):
        for entry in os.scandir(root()):
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                path = Path(entry.path)
                found.append(Stored(entry.name, path, _told_size(path), entry.stat().st_mtime))
    return sorted(found, key=lambda each: each.used_at)


def _told_size(path: Path) -> int:
    with suppress(OSError, ValueError):
        return int(json.loads((path / MARKER).read_bytes()).get("size_bytes", 0))
    return size_of(path)


def remove(name: str) -> bool:
    """False when it is in use."""
    gone = root() / f"{REMOVED}{uuid4().hex}"
    with filelocks.alone_at_once(_lock(name)) as ours:
        if ours:
            # Unless somebody else has pruned it a moment ago.
            with suppress(FileNotFoundError):
                os.rename(path_of(name), gone)
    # Nobody who wants it again has to wait for this.
    shutil.rmtree(gone, ignore_errors=True)
    return ours


def prune(*, unused_seconds: float | None, most_bytes: int | None, rehearse: bool = False) -> Pruned:
    """Remove what nobody has used for so long, and then the longest unused until the rest fits."""
    found, pruned = stored(), Pruned([], [])
    left = sum(each.size_bytes for each in found)
    for each in found:
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
    with filelocks.alone_at_once(_lock(name)) as ours:
        return ours


def sweep() -> int:
    """Remove what died half-made or half-removed; answers how many."""
    swept = 0
    with suppress(FileNotFoundError):
        for entry in list(os.scandir(root())):
            if not entry.name.startswith((BUILDING, REMOVED)):
                continue
            with filelocks.alone_at_once(_lock(entry.name)) as dead:
                if dead:
                    shutil.rmtree(entry.path, ignore_errors=True)
                    _lock(entry.name).unlink(missing_ok=True)
                    swept += 1
    return swept


def _lock(name: str) -> Path:
    return root() / LOCKS / name
