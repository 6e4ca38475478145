"""Lists the contents of a zip archive or an OLE file by reading only its table of contents.

Nothing is unpacked, and a table that is too long is not read.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

# Enough to find the end record of an archive, which a comment of up to 64 kB may follow.
TAIL_BYTES = (1 << 16) + 128
HEAD_BYTES = 1 << 16
LARGEST_TABLE_BYTES = 4 << 20

_ZIP_END = struct.Struct("<4s4H2LH")
_ZIP64_LOCATOR = struct.Struct("<4sLQL")
_ZIP64_END = struct.Struct("<4sQ2H2L4Q")
_ZIP_ENTRY = struct.Struct("<4s4B4HL2L5H2L")

# How many sectors of an OLE file's directory are read at most.
_MOST_SECTORS = 256
_NO_ENTRY = 0xFFFFFFFF
_LAST_SECTOR = 0xFFFFFFFA


class Content:
    """A seekable file whose beginning and end are held in memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.size_bytes = file.seek(0, 2)
        self.head = self.read(0, HEAD_BYTES)
        self.tail = self.read(max(0, self.size_bytes - TAIL_BYTES), TAIL_BYTES)

    def read(self, place: int, length: int) -> bytes:
        self.file.seek(place)
        parts = []
        while length > 0 and (data := self.file.read(length)):
            parts.append(data)
            length -= len(data)
        return b"".join(parts)

    @property
    def is_all_in_head(self) -> bool:
        return len(self.head) == self.size_bytes


@dataclass(frozen=True)
class Archive:
    names: frozenset[str]
    # The number of bytes before the archive, and the bytes after it. Documents have neither.
    before_bytes: int
    after: bytes


class TooLong(Exception):
    """The table of contents is too long to be read."""


def archive(content: Content) -> Archive | None:
    """Return the zip archive that a zip reader would find in this file, at any offset. Raises TooLong."""
    place = content.tail.rfind(b"PK\5\6")
    while place >= 0:
        if result := _archive_at(content, place):
            return result
        place = content.tail.rfind(b"PK\5\6", 0, place)
    return None


def streams(content: Content) -> set[str]:
    """Return the names of the top-level entries of an OLE file, or an empty set if it is damaged."""
    try:
        entries = list(_ole_entries(content))
    except struct.error:
        return set()
    waiting, seen = [entry.child for entry in entries[:1]], set()
    while waiting:
        number = waiting.pop()
        if number < len(entries) and number not in seen:
            seen.add(number)
            waiting += [entries[number].left, entries[number].right]
    return {entries[number].name for number in seen}


def _archive_at(content: Content, place: int) -> Archive | None:
    if len(content.tail) - place < _ZIP_END.size:
        return None
    _, _, _, _, _, length, offset, comment = _ZIP_END.unpack_from(content.tail, place)
    end = content.size_bytes - len(content.tail) + place
    after = content.tail[place + _ZIP_END.size + comment :]
    if large := _zip64(content, end):
        length, offset, end = large
    start = end - length
    if start < offset or (length and content.read(start, 4) != b"PK\1\2"):
        return None
    if length > LARGEST_TABLE_BYTES:
        raise TooLong
    table = content.read(start, length)
    names = set()
    at = 0
    while at + _ZIP_ENTRY.size <= len(table):
        entry = _ZIP_ENTRY.unpack_from(table, at)
        if entry[0] != b"PK\1\2":
            break
        at += _ZIP_ENTRY.size
        names.add(table[at : at + entry[12]].decode(errors="replace"))
        at += sum(entry[12:15])
    return Archive(frozenset(names), start - offset, after)


def _zip64(content: Content, end: int) -> tuple[int, int, int] | None:
    """Return length, offset and end of the zip64 table of contents, or None. Readers prefer it to the plain table."""
    if end < _ZIP64_LOCATOR.size + _ZIP64_END.size:
        return None
    mark, *_ = _ZIP64_LOCATOR.unpack(content.read(end - _ZIP64_LOCATOR.size, _ZIP64_LOCATOR.size))
    place = end - _ZIP64_LOCATOR.size - _ZIP64_END.size
    large = _ZIP64_END.unpack(content.read(place, _ZIP64_END.size))
    if (mark, large[0]) != (b"PK\6\7", b"PK\6\6"):
        return None
    return large[-2], large[-1], place


@dataclass(frozen=True)
class _Entry:
    name: str
    left: int
    right: int
    child: int


def _ole_entries(content: Content) -> Iterator[_Entry]:
    (shift,) = struct.unpack_from("<H", content.head, 30)
    if shift not in (9, 12):
        return
    size = 1 << shift
    (sector,) = struct.unpack_from("<L", content.head, 48)
    tables = struct.unpack_from("<109L", content.head, 76)
    for _ in range(_MOST_SECTORS):
        data = content.read((sector + 1) * size, size)
        for place in range(0, len(data), 128):
            (length,) = struct.unpack_from("<H", data, place + 64)
            left, right, child = struct.unpack_from("<3L", data, place + 68)
            name = data[place : place + max(0, min(length, 64) - 2)].decode("utf-16-le", "replace")
            yield _Entry(name, left, right, child)
        table, index = divmod(sector, size // 4)
        if table >= len(tables) or tables[table] >= _LAST_SECTOR:
            return
        (sector,) = struct.unpack("<L", content.read((tables[table] + 1) * size + index * 4, 4))
        if sector >= _LAST_SECTOR:
            return
