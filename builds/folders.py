"""Packages as folders. Symbolic links are never followed, neither for reading nor for writing."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from builds import contents
from builds.contents import BadPackage, shown

# Per folder, including entries that are skipped.
MOST_ENTRIES = 1000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Non-blocking: a pipe may have replaced a file, and would wait for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read(path: Path) -> tuple[dict[str, bytes], list[str]]:
    """Return the files, and the problems of single files. Raise BadPackage if there is too much to read."""
    reading = _Reading()
    with _opened(path, _FOLDER) as folder:
        reading.walk(folder, "")
    return reading.found, reading.problems


def write(files: Mapping[str, bytes], path: Path, *, force: bool = False) -> list[str]:
    """Write to a new or empty folder, or with `force` to any. Return the other files in it, which stay."""
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is not a folder")
    if path.exists() and not force and any(path.iterdir()):
        raise FileExistsError(f"the folder {path} is not empty")
    there = read(path)[0] if path.exists() else {}
    for name, content in sorted(files.items()):
        _write(path, name, content)
    return sorted(there.keys() - files.keys())


class _Reading:
    def __init__(self) -> None:
        self.found: dict[str, bytes] = {}
        self.problems: list[str] = []
        self.left = contents.MOST_PACKAGE_BYTES

    def walk(self, folder: int, above: str) -> None:
        with os.scandir(folder) as entries:
            seen = list(islice(entries, MOST_ENTRIES + 1))
        if len(seen) > MOST_ENTRIES:
            raise BadPackage([f"The folder {shown(above or '.')} has more than {MOST_ENTRIES} entries."])
        for entry in sorted(seen, key=lambda entry: entry.name):
            path = f"{above}{entry.name}"
            if contents.is_byproduct(path):
                continue
            try:
                self._take(folder, entry, path)
            except OSError as error:
                self.problems.append(f"Could not read {shown(path)}: {error.strerror}.")

    def _take(self, folder: int, entry: "os.DirEntry[str]", path: str) -> None:
        if entry.is_dir(follow_symlinks=False) and len(path) < contents.LONGEST_PATH:
            with _opened(entry.name, _FOLDER | os.O_NOFOLLOW, folder) as below:
                self.walk(below, f"{path}/")
        elif entry.is_file(follow_symlinks=False):
            self._read(folder, entry.name, path)
        else:
            self.problems.append(f"{shown(path)} is {_kind(entry)}. A package may only contain files and folders.")

    def _read(self, folder: int, name: str, path: str) -> None:
        with _opened(name, _FILE, folder) as file:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(0, "it is no longer a file")
            with open(file, "rb", closefd=False) as opened:
                self.found[path] = opened.read(self.left + 1)
        self.left -= len(self.found[path])
        if self.left < 0:
            most = contents.MOST_PACKAGE_BYTES
            raise BadPackage([f"All files together may have at most {most} bytes, but have more, up to {shown(path)}."])
        if len(self.found) > contents.MOST_FILES + 2:
            raise BadPackage(
                [f"A package may have at most {contents.MOST_FILES} files, but has more, up to {shown(path)}."]
            )


def _kind(entry: "os.DirEntry[str]") -> str:
    if entry.is_symlink():
        return "a symbolic link"
    return "a folder whose path is too long" if entry.is_dir(follow_symlinks=False) else "a device, a pipe or a socket"


def _write(top: Path, name: str, content: bytes) -> None:
    target = top / name
    for place in [target, *target.parents]:
        if place != top and place.is_relative_to(top) and place.is_symlink():
            raise FileExistsError(f"{place} is a symbolic link")
    target.parent.mkdir(parents=True, exist_ok=True)
    # Never write through a link, or into a file with a second name.
    target.unlink(missing_ok=True)
    with target.open("xb") as file:
        file.write(content)


@contextmanager
def _opened(path: str | Path, flags: int, folder: int | None = None) -> Iterator[int]:
    opened = os.open(path, flags, dir_fd=folder)
    try:
        yield opened
    finally:
        os.close(opened)
