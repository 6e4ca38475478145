"""Checks the files of an environment: first against the RECORDs of its packages, and later against its seal.

The seal lists every file as it was when the environment was published.
"""

import base64
import csv
import hashlib
import json
import os
import stat
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

# The folder in which Python keeps bytecode. It is not checked, because ADE compiles it again from checked sources.
BYTECODE = "__pycache__"
# The wheel format allows no weaker hash than SHA-256.
ALGORITHMS = ("sha256", "sha384", "sha512")
# Files without a hash: a RECORD cannot contain its own hash, nor the hash of its own signature.
UNHASHED = ("RECORD", "RECORD.jws", "RECORD.p7s")
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class Entry(NamedTuple):
    """A seal's entry for a file, link or folder. A folder's entry has only the mode: its files have their own."""

    mode: int
    size: int = 0
    mtime_ns: int = 0
    # The kernel sets the ctime at every change, even if a program restores the mtime.
    ctime_ns: int = 0
    # For a link, this is the hash of its target.
    sha256: str = ""


Seal = dict[str, Entry]


@dataclass
class Changes:
    """The differences between a tree and its seal."""

    missing: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    # Whether files were touched, copied or linked without a change to their content.
    has_new_times: bool = False

    def __bool__(self) -> bool:
        return bool(self.missing or self.added or self.changed)

    def __str__(self) -> str:
        kinds = (("was changed", self.changed), ("is missing", self.missing), ("was added", self.added))
        pairs = sorted((path, what) for what, paths in kinds for path in paths)
        return in_short([f"{path} {what}" for path, what in pairs])


def make_seal(home: Path) -> Seal:
    entries = {path: _entry(home / path) for path in _paths(home)}
    return {path: entry for path, entry in entries.items() if entry is not None}


def write_seal(path: Path, seal: Seal) -> None:
    """Write a seal with one rename, so that no reader sees half of it. Only one process may write it at a time."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(seal, separators=(",", ":")), "utf-8")
    os.replace(new, path)


def read_seal(path: Path) -> Seal | None:
    """Return the seal, or None if it is missing or cannot be read."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        return {name: Entry(*entry) for name, entry in json.loads(path.read_bytes()).items()}
    return None


def compare(home: Path, seal: Seal, *, thorough: bool = False) -> Changes:
    """Compare a tree with its seal. Read only files whose size or time has changed; with `thorough`, read all."""
    changes = Changes()
    paths = set(_paths(home))
    changes.added = sorted(paths - seal.keys())
    for path, sealed in seal.items():
        quick = _entry(home / path, read=False) if path in paths else None
        if quick is None:
            changes.missing.append(path)
            continue
        has_same_times = quick == sealed._replace(sha256="")
        if has_same_times and not thorough:
            continue
        now = _entry(home / path)
        if now is None or now.mode != sealed.mode or now.sha256 != sealed.sha256:
            changes.changed.append(path)
        elif not has_same_times:
            changes.has_new_times = True
    return changes


def protect(home: Path) -> None:
    """Make everything inside `home` read-only. `home` itself stays writable: a read-only folder cannot be renamed."""
    for path in _paths(home):
        _change_mode(home / path, remove=_WRITABLE)


def unprotect(home: Path) -> None:
    """Make all folders inside `home` writable, so that their owner can remove the tree."""
    with suppress(FileNotFoundError):
        for path in _paths(home):
            if os.path.isdir(home / path) and not os.path.islink(home / path):
                _change_mode(home / path, add=stat.S_IRWXU)


def check_packages(home: Path, packages: Path, own: Collection[str]) -> list[str]:
    """Check the installed files against the RECORDs of their packages. Return the problems.

    `own` are the files that the environment had before the installation.
    """
    records = {info.name.removesuffix(".dist-info"): info for info in sorted(packages.glob("*.dist-info"))}
    problems: list[str] = []
    claims: dict[str, list[_Claim]] = defaultdict(list)
    for package, info in records.items():
        try:
            for claim in _claims(home, packages, package, info):
                claims[claim.path].append(claim)
        except (OSError, ValueError, csv.Error) as error:
            problems.append(f"the RECORD of {package} cannot be used: {error}")
    # List files that several packages claim first, because these usually explain the other problems.
    for path, claimants in sorted(claims.items(), key=lambda item: (len(item[1]) == 1, item[0])):
        problems += _problems_of_file(home, path, claimants, is_own=path in own)
    known = claims.keys() | set(own)
    is_folder = {path: os.path.isdir(home / path) and not os.path.islink(home / path) for path in _paths(home)}
    problems += [
        f"{path} is listed in no RECORD" for path in sorted(is_folder) if not is_folder[path] and path not in known
    ]
    return problems


def in_short(problems: list[str]) -> str:
    more = f", and {len(problems) - 3} more" if len(problems) > 3 else ""
    return ", ".join(problems[:3]) + more


class _Claim(NamedTuple):
    """A line of a RECORD, by which a package claims a file as its own."""

    path: str
    package: str
    # Empty if the line has no hash, so that the content is unknown.
    algorithm: str
    digest: str
    needs_hash: bool

    def matches(self, file: Path) -> bool:
        digest = bytes.fromhex(_hash(file, self.algorithm))
        return base64.urlsafe_b64encode(digest).decode().rstrip("=") == self.digest.rstrip("=")


def _claims(home: Path, packages: Path, package: str, info: Path) -> Iterator[_Claim]:
    top, own_folder = os.path.relpath(packages, home), os.path.relpath(info, home)
    text = (info / "RECORD").read_text("utf-8")
    # Claim the RECORD even if it does not list itself. Another package could have forged it and left out that line.
    yield _Claim(f"{own_folder}/RECORD", package, "", "", needs_hash=False)
    for row in csv.reader(text.splitlines()):
        name, checksum = [*row, "", ""][:2]
        path = os.path.normpath(os.path.join(top, name))
        if not name or os.path.isabs(path) or path.split("/")[0] == "..":
            raise ValueError(f"it names {name!r}, which is outside the environment")
        if BYTECODE in path.split("/") or path == f"{own_folder}/RECORD":
            continue
        algorithm, _, digest = checksum.partition("=")
        needs_hash = path not in {f"{own_folder}/{unhashed}" for unhashed in UNHASHED}
        yield _Claim(path, package, algorithm, digest, needs_hash)


def _problems_of_file(home: Path, path: str, claimants: list[_Claim], *, is_own: bool) -> Iterator[str]:
    names = " and ".join(dict.fromkeys(claim.package for claim in claimants))
    if is_own:
        yield f"{path} of the environment was overwritten by {names}"
        return
    entry = _entry(home / path, read=False)
    if entry is None or not stat.S_ISREG(entry.mode):
        yield f"{path} of {names} is {'missing' if entry is None else 'not a file'}"
        return
    if len(claimants) == 1 and not claimants[0].needs_hash:
        return
    if all(claim.algorithm in ALGORITHMS and claim.matches(home / path) for claim in claimants):
        return
    if len(claimants) > 1:
        yield f"{path} belongs to {names}, which overwrite each other's files"
    elif claimants[0].algorithm not in ALGORITHMS:
        yield f"{path} has no checksum in the RECORD of {names}"
    else:
        yield f"{path} differs from the RECORD of {names}"


def _paths(home: Path) -> Iterator[str]:
    """Yield the path of everything inside `home`, folders before their content. Do not follow links."""
    folders = [""]
    while folders:
        folder = folders.pop()
        with os.scandir(home / folder) as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                yield path
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)


def _entry(path: Path, *, read: bool = True) -> Entry | None:
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(status.st_mode):
        return Entry(status.st_mode)
    entry = Entry(status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    # If the file cannot be read, its content is unknown and the hash stays empty.
    with suppress(OSError):
        if read and stat.S_ISREG(status.st_mode):
            return entry._replace(sha256=_hash(path, "sha256"))
        if read and stat.S_ISLNK(status.st_mode):
            return entry._replace(sha256=hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest())
    return entry


def _hash(path: Path, algorithm: str) -> str:
    # The file may just have been replaced: do not follow a link, and do not wait for the other end of a pipe.
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _change_mode(path: Path, *, add: int = 0, remove: int = 0) -> None:
    mode = os.lstat(path).st_mode
    new_mode = (stat.S_IMODE(mode) | add) & ~remove
    if not stat.S_ISLNK(mode) and new_mode != stat.S_IMODE(mode):
        os.chmod(path, new_mode)
