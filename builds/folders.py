"""Reads and writes packages as folders. It never follows symbolic links, neither to read nor to write."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from builds import contents
from builds.contents import BadPackage, shown

# The maximum number of entries in one folder. Entries that are skipped count too.
MOST_ENTRIES = 1000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Non-blocking, because a pipe may have replaced the file, and opening a pipe would wait for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read(path: Path) -> tuple[dict[str, bytes], list[str]]:
    """Return the files, and the problems of single files. Raise BadPackage if the folder is too large."""
    reader = _Reader()
    with _open(path, _FOLDER) as folder:
        reader.walk(folder, "")
    return reader.files, reader.problems


def write(files: Mapping[str, bytes], path: Path, *, force: bool = False) -> list[str]:
    """Write to a new or empty folder, or with `force` to any folder. Return the folder's other files, which stay."""
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is not a folder")
    if path.exists() and not force and any(path.iterdir()):
        raise FileExistsError(f"the folder {path} is not empty")
    existing = read(path)[0] if path.exists() else {}
    for name, content in sorted(files.items()):
        target = path / name
        for place in [target, *target.parents]:
            if place != path and place.is_relative_to(path) and place.is_symlink():
                raise FileExistsError(f"{place} is a symbolic link")
        target.parent.mkdir(parents=True, exist_ok=True)
        # Remove the old file first, to write neither through a link nor into a file that has a second name.
        target.unlink(missing_ok=True)
        with target.open("xb") as file:
            file.write(content)
    return sorted(existing.keys() - files.keys())


class _Reader:
    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.problems: list[str] = []
        self.left = contents.MOST_PACKAGE_BYTES

    def walk(self, folder: int, above: str) -> None:
        with os.scandir(folder) as entries:
            first = list(islice(entries, MOST_ENTRIES + 1))
        if len(first) > MOST_ENTRIES:
            raise BadPackage([f"The folder {shown(above or '.')} has more than {MOST_ENTRIES} entries."])
        for entry in sorted(first, key=lambda entry: entry.name):
            path = f"{above}{entry.name}"
            if contents.is_byproduct(path):
                continue
            try:
                self._read_entry(folder, entry, path)
            except OSError as error:
                self.problems.append(f"Could not read {shown(path)}: {error.strerror}.")

    def _read_entry(self, folder: int, entry: "os.DirEntry[str]", path: str) -> None:
        if entry.is_dir(follow_symlinks=False) and len(path) < contents.LONGEST_PATH:
            with _open(entry.name, _FOLDER | os.O_NOFOLLOW, folder) as below:
                self.walk(below, f"{path}/")
        elif entry.is_file(follow_symlinks=False):
            with _open(entry.name, _FILE, folder) as descriptor:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise OSError(0, "it is no longer a file")
                with open(descriptor, "rb", closefd=False) as file:
                    self.files[path] = file.read(self.left + 1)
            self.left -= len(self.files[path])
        else:
            kind = "a device, a pipe or a socket"
            if entry.is_symlink():
                kind = "a symbolic link"
            elif entry.is_dir(follow_symlinks=False):
                kind = "a folder whose path is too long"
            self.problems.append(f"{shown(path)} is {kind}. A package may only contain files and folders.")
        if self.left < 0:
            most = contents.MOST_PACKAGE_BYTES
            raise BadPackage([f"All files together may have at most {most} bytes, but have more, up to {shown(path)}."])
        if len(self.files) > contents.MOST_FILES + 2:
            raise BadPackage(
                [f"A package may have at most {contents.MOST_FILES} files, but has more, up to {shown(path)}."]
            )


@contextmanager
def _open(path: str | Path, flags: int, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
