"""Checks a zip archive before a library reads it, because office files are archives of XML."""

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from zipfile import ZipFile, ZipInfo

from ade_extractor.limits import MOST_ARCHIVE_BYTES, MOST_ENTRIES
from ade_extractor.trouble import Trouble, malformed, reading, too_large

_START = b"PK\x03\x04"
# Office stores an encrypted archive inside a file of the older format.
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# The XML of sheets compresses to a thirtieth. Only crafted files exceed this ratio.
MOST_RATIO = 250
# Smaller parts may have any ratio: a small file of zeros is harmless.
RATIO_FROM_BYTES = 4 << 20
CHUNK_BYTES = 1 << 18
_ENCRYPTED = 0x1
_LOCAL_HEADER = 30
_MANIFEST = "META-INF/manifest.xml"
_MANIFEST_BYTES = 1 << 20
# Matches UTF-16 as well. Entities need a declaration of the document type, which no office file has.
_DECLARATION = re.compile(rb"<!DOCTYPE|<!ENTITY|<\0!\0D\0O\0C\0T\0Y\0P\0E|<\0!\0E\0N\0T\0I\0T\0Y")
_LONGEST_DECLARATION = 18
_ENCODING = re.compile(rb"""^<\?xml[^>]{0,200}?encoding\s*=\s*["']([^"'>]{1,40})["']""")
_ENCODINGS = {b"utf-8", b"utf8", b"utf-16", b"us-ascii", b"ascii", b"iso-8859-1", b"windows-1252"}


def examine(path: Path, what: str, *, parts: tuple[str, ...], most_xml_bytes: int = MOST_ARCHIVE_BYTES) -> None:
    """Raise Trouble unless the file is a plain archive within the limits, with harmless XML and one of these parts."""
    with path.open("rb") as file:
        head = file.read(8)
        if head == _COMPOUND:
            file.seek(0)
            if is_encrypted_package(file.read(MOST_ARCHIVE_BYTES)):
                raise encrypted(what)
            raise malformed(what, "it has the older Office format", "Upload it with its own extension.")
        if not head.startswith(_START):
            raise malformed(what, "its header is missing")
        with reading(what), ZipFile(file) as archive:
            entries = archive.infolist()
            _check_entries(entries, what, parts)
            # An OpenDocument manifest may say that the parts are encrypted one by one.
            if _MANIFEST in archive.namelist():
                with archive.open(_MANIFEST) as manifest:
                    if b"encryption-data" in manifest.read(_MANIFEST_BYTES):
                        raise encrypted(what)
            xml_bytes = sum(_check_content(file, archive, entry, what) for entry in entries)
    if xml_bytes > most_xml_bytes:
        raise too_large(what, f"it contains {xml_bytes:,} bytes of XML (limit: {most_xml_bytes:,})")


def encrypted(what: str) -> Trouble:
    return Trouble("encrypted", f"{what} is encrypted. Remove its password and upload it again.")


def is_encrypted_package(data: bytes) -> bool:
    return "EncryptedPackage".encode("utf-16-le") in data


def _check_entries(entries: list[ZipInfo], what: str, parts: tuple[str, ...]) -> None:
    if len(entries) > MOST_ENTRIES:
        raise too_large(what, f"it has {len(entries):,} parts (limit: {MOST_ENTRIES:,})")
    total = sum(entry.file_size for entry in entries)
    if total > MOST_ARCHIVE_BYTES:
        raise too_large(what, f"it unpacks to {total:,} bytes (limit: {MOST_ARCHIVE_BYTES:,})")
    for entry in entries:
        if entry.file_size > max(RATIO_FROM_BYTES, MOST_RATIO * entry.compress_size):
            raise too_large(what, f"{_name(entry)} unpacks to more than {MOST_RATIO} times its size")
        if entry.flag_bits & _ENCRYPTED:
            raise encrypted(what)
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise malformed(what, f"{_name(entry)} is compressed with an unknown method")
    names = {entry.filename for entry in entries}
    if len(names) < len(entries):
        raise malformed(what, "two of its parts have the same name")
    if not names.intersection(parts):
        raise malformed(what, f"it contains no {' or '.join(parts)}")
    # Parts that share bytes let a small file unpack to any size.
    end = 0
    for entry in sorted(entries, key=lambda each: each.header_offset):
        if entry.header_offset < end:
            raise malformed(what, f"its parts overlap at {_name(entry)}")
        end = entry.header_offset + _LOCAL_HEADER + entry.compress_size


def _check_content(file: BinaryIO, archive: ZipFile, entry: ZipInfo, what: str) -> int:
    """Return the number of bytes of XML. Raises Trouble if the declared size is wrong or the XML could be a trap."""
    name = entry.filename.lower()
    size, before, is_xml = 0, b"", False
    for chunk in _unpack(file, archive, entry):
        if size == 0:
            plain = chunk[:400].removeprefix(b"\xef\xbb\xbf").replace(b"\0", b"").lstrip(b"\xff\xfe \t\r\n")
            if plain and not plain.startswith(b"<") and name.endswith((".xml", ".rels", ".vml")):
                raise malformed(what, f"{_name(entry)} is not XML")
            encoding = _ENCODING.match(plain)
            if encoding and encoding[1].lower() not in _ENCODINGS:
                raise malformed(what, f"{_name(entry)} has an unsupported encoding")
            is_xml = plain.startswith(b"<") and not name.endswith(".svg")
        size += len(chunk)
        if size > entry.file_size:
            break
        if is_xml and _DECLARATION.search(before + chunk):
            raise malformed(what, f"{_name(entry)} declares entities or a document type, which is not allowed")
        before = chunk[-_LONGEST_DECLARATION:]
    if size != entry.file_size:
        raise malformed(what, f"{_name(entry)} does not have its declared size")
    return size if is_xml else 0


def _unpack(file: BinaryIO, archive: ZipFile, entry: ZipInfo) -> Iterator[bytes]:
    """Yield all compressed data unpacked, whereas zipfile stops at the declared size."""
    with archive.open(entry):
        pass  # compares the entry's own header with the list
    file.seek(entry.header_offset)
    header = file.read(_LOCAL_HEADER)
    file.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
    left = entry.compress_size
    unpack = zlib.decompressobj(-zlib.MAX_WBITS) if entry.compress_type == zipfile.ZIP_DEFLATED else None
    while left > 0 and (packed := file.read(min(CHUNK_BYTES, left))):
        left -= len(packed)
        if unpack is None:
            yield packed
            continue
        while packed:
            yield unpack.decompress(packed, CHUNK_BYTES)
            packed = unpack.unconsumed_tail
    if unpack is not None:
        yield unpack.flush()


def _name(entry: ZipInfo) -> str:
    return repr(entry.filename[:80])
