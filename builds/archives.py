"""Reads zip files that may be hostile. Checks all entries before unpacking a single byte. Writes nothing to disk.

It does not read with `zipfile`, because `zipfile` believes what a file says about itself and, up to Python 3.11.7, lets
entries share their bytes.
"""

import re
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, Any

from builds import contents
from builds.contents import BadPackage, shown

# The maximum size of a zip file. It has room for an uncompressed package of maximum size and its list of entries.
MOST_BYTES = 4 * 2**20
# Folders and byproducts count too, although they are skipped.
MOST_ENTRIES = 1000
# The maximum compression ratio. Text rarely exceeds 20. Files smaller than NEVER_A_BOMB may have any ratio.
LARGEST_RATIO = 100
NEVER_A_BOMB = 2**16

# The structures of a zip file as its specification, APPNOTE.TXT, defines them.
_END, _END_SIGNATURE = struct.Struct("<4s4H2LH"), b"PK\5\6"
_LISTED, _LISTED_SIGNATURE = struct.Struct("<4s6H3L5H2L"), b"PK\1\2"
_LOCAL, _LOCAL_SIGNATURE = struct.Struct("<4s5H3L2H"), b"PK\3\4"
_LONGEST_COMMENT = 0xFFFF
_STORED, _DEFLATED = 0, 8
# Flags for an encrypted entry, a strongly encrypted entry, and an encrypted list of entries.
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_SIZES_FOLLOW = 0x8
_PATCH = 0x20
# DOS and Windows attributes: first of folders, then of volume labels, devices and links.
_DOS_FOLDER = 0x10
_DOS_NEITHER = 0x8 | 0x40 | 0x400
_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
# Extra fields that would override what the entry itself says.
_EXTRAS = {0x1: "64-bit sizes", 0xD: "a link", 0x756E: "a link", 0x7075: "another name", 0x9901: "a password"}
_TRICKS = (
    (re.compile("\0"), "it contains a NUL character"),
    (re.compile(r"\\"), "it contains a backslash"),
    (re.compile("^/"), "it is absolute"),
    (re.compile("^[A-Za-z]:"), "it names a drive"),
    (re.compile(r"(^|/)\.\.(/|$)"), "it leads out of the package"),
)
_EARLIEST = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    attributes: int
    extra: bytes
    # The positions of the entry's local header and of its content. `local` has the values that this header repeats.
    offset: int
    start: int
    local: tuple[Any, ...]

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")

    @property
    def is_kept(self) -> bool:
        return not self.is_folder and not contents.is_byproduct(self.name)

    @property
    def end(self) -> int:
        return self.start + self.packed


def read(file: IO[bytes]) -> tuple[dict[str, bytes], list[str]]:
    """Return the files, and the problems of single files. Raise BadPackage if the whole archive must be refused."""
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise BadPackage([f"The zip file is larger than {MOST_BYTES} bytes."])
    count, start, end = _find_list(data)
    entries = list(_read_list(data, count, start, end))
    if problems := list(_problems(entries, start)):
        raise BadPackage(problems)
    files, problems = {}, []
    for entry in entries:
        if entry.is_kept:
            try:
                files[entry.name] = _unpack(data, entry)
            except ValueError as error:
                problems.append(f"{shown(entry.name)} is damaged: {error}.")
    return files, problems


def write(files: Mapping[str, bytes], file: IO[bytes]) -> None:
    """Write an archive that has the same bytes whenever the files are the same. The files are not compressed, because
    the result of compression depends on the version of zlib.
    """
    with zipfile.ZipFile(file, "w") as archive:
        for path, content in sorted(files.items()):
            entry = zipfile.ZipInfo(path, _EARLIEST)
            # Set this because its default depends on the operating system.
            entry.create_system = 3
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, content)


def _find_list(data: bytes) -> tuple[int, int, int]:
    """Return how many entries the file claims to have, and where the list of entries starts and ends."""
    end = data.rfind(_END_SIGNATURE, max(0, len(data) - _END.size - _LONGEST_COMMENT))
    if not 0 <= end <= len(data) - _END.size:
        raise BadPackage(["This is not a zip file, or it is incomplete."])
    _, disk, first, here, count, size, start, comment = _END.unpack_from(data, end)
    if disk or first or here != count:
        raise BadPackage(["The zip file is only one of several parts."])
    if count > MOST_ENTRIES:
        raise BadPackage([f"The zip file may have at most {MOST_ENTRIES} entries, not {count}."])
    if start + size != end or end + _END.size + comment != len(data):
        raise BadPackage([f"The list of entries is not where the zip file says: it ends at byte {end}."])
    return count, start, end


def _read_list(data: bytes, count: int, at: int, end: int) -> Iterator[_Entry]:
    for _ in range(count):
        header = _header(_LISTED, _LISTED_SIGNATURE, data, at)
        flags, method, crc, packed, size = header[3], header[4], *header[7:10]
        length, extra_length, comment_length = header[10:13]
        attributes, offset = header[15:17]
        at += _LISTED.size
        name, extra = data[at : at + length], data[at + length : at + length + extra_length]
        at += length + extra_length + comment_length
        local = _header(_LOCAL, _LOCAL_SIGNATURE, data, offset)
        start = offset + _LOCAL.size + local[9] + local[10]
        # Read at most one byte more than expected. This is enough to show a difference, and keeps a thousand entries
        # from each reading the same long name.
        again = data[offset + _LOCAL.size : offset + _LOCAL.size + min(local[9], length + 1)]
        yield _Entry(
            *(_decode(name), flags, method, crc, packed, size, attributes, extra, offset, start),
            local=(_decode(again), *local[2:4], *local[6:9]),
        )
    if at != end:
        raise BadPackage([f"The length of the list does not match its {count} entries."])


def _header(kind: struct.Struct, signature: bytes, data: bytes, at: int) -> tuple[Any, ...]:
    if at + kind.size > len(data) or not data.startswith(signature, at):
        raise BadPackage([f"The zip file has no entry at byte {at}, where one should be."])
    return kind.unpack_from(data, at)


def _decode(name: bytes) -> str:
    # The encoding of a name does not matter, because names that are not ASCII are refused later.
    return name.decode(errors="surrogateescape")


def _problems(entries: list[_Entry], end: int) -> Iterator[str]:
    honest = []
    for name, times in Counter(entry.name for entry in entries).items():
        reasons = [reason for pattern, reason in _TRICKS if pattern.search(name)]
        if reasons:
            yield f"The path {shown(name)} is not allowed: {', '.join(reasons)}."
        elif not contents.is_byproduct(name):
            honest.append(name)
        if times > 1:
            yield f"The path {shown(name)} occurs {times} times."
    folders = [name.removesuffix("/") for name in honest if name.endswith("/")]
    yield from contents.problems_of_paths([name for name in honest if not name.endswith("/")], folders)
    for entry in entries:
        yield from _problems_of_entry(entry)
    placed = sorted(entries, key=lambda entry: (entry.offset, entry.end))
    for one, next in pairwise(placed):
        if next.offset < one.end:
            yield f"The entries {shown(one.name)} and {shown(next.name)} overlap."
    for entry in placed:
        if entry.end > end:
            yield f"The entry {shown(entry.name)} overlaps the list of entries."
    kept = [entry for entry in entries if entry.is_kept]
    if len(kept) > contents.MOST_FILES + 2:
        yield f"A package may have at most {contents.MOST_FILES} files besides its description, not {len(kept)}."
    if (size := sum(entry.size for entry in kept)) > contents.MOST_PACKAGE_BYTES:
        yield f"All files together may have at most {contents.MOST_PACKAGE_BYTES} bytes, not {size}."


def _problems_of_entry(entry: _Entry) -> Iterator[str]:
    expected = stat.S_IFDIR if entry.is_folder else stat.S_IFREG
    # The mode is zero if the file comes from a system without modes.
    kind = stat.S_IFMT(entry.attributes >> 16) or expected
    if kind != expected:
        yield f"{shown(entry.name)} must be {_KINDS[expected]}, not {_KINDS.get(kind, 'something else')}."
    elif entry.attributes & _DOS_NEITHER or (entry.attributes & _DOS_FOLDER and not entry.is_folder):
        yield f"{shown(entry.name)} must be {_KINDS[expected]}, but its attributes say something else."
    if entry.is_folder and entry.size:
        yield f"The folder {shown(entry.name)} must be empty, but has {entry.size} bytes."
    at, ids = 0, set()
    while at + 4 <= len(entry.extra):
        id, size = struct.unpack_from("<2H", entry.extra, at)
        ids.add(id)
        at += 4 + size
    for meaning in {_EXTRAS[id] for id in ids & _EXTRAS.keys()}:
        yield f"The extra data of {shown(entry.name)} is not allowed: {meaning}."
    if entry.flags & _ENCRYPTED:
        yield f"{shown(entry.name)} is encrypted. Use a zip file without a password."
    if entry.method not in (_STORED, _DEFLATED) or entry.flags & _PATCH:
        yield f"{shown(entry.name)} is compressed with method {entry.method}. Use stored or deflated files."
    if entry.method == _STORED and entry.packed != entry.size:
        yield f"{shown(entry.name)} is damaged: it has {entry.packed} bytes instead of {entry.size}."
    if entry.size > max(NEVER_A_BOMB, LARGEST_RATIO * entry.packed):
        yield (
            f"{shown(entry.name)} expands from {entry.packed} to {entry.size} bytes, more than"
            f" {LARGEST_RATIO} times its compressed size."
        )
    # The local header must agree with the list of entries, because programs differ in which of the two they read.
    name, flags, method, *sizes = entry.local
    relevant = _ENCRYPTED | _SIZES_FOLLOW | _PATCH
    is_same = (name, flags & relevant, method) == (entry.name, entry.flags & relevant, entry.method)
    if not is_same or (not flags & _SIZES_FOLLOW and sizes != [entry.crc, entry.packed, entry.size]):
        yield f"{shown(entry.name)} differs between the list of entries and its own header, which says {shown(name)}."


def _unpack(data: bytes, entry: _Entry) -> bytes:
    content, size = data[entry.start : entry.end], entry.size
    if entry.method == _DEFLATED:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            # Decompressing one byte more than declared is enough to detect a wrong size.
            content = inflater.decompress(content, size + 1)
        except zlib.error:
            raise ValueError(f"it cannot be decompressed to {size} bytes") from None
        if len(content) > size:
            raise ValueError(f"it has more than {size} bytes")
        if len(content) < size or not inflater.eof:
            raise ValueError(f"it has {len(content)} bytes instead of {size}, or no end")
        if inflater.unused_data:
            raise ValueError(f"it has data after its {size} bytes")
    if zlib.crc32(content) != entry.crc:
        raise ValueError(f"its {size} bytes do not match its checksum")
    return content
