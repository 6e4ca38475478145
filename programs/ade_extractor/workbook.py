"""Reads workbooks of Excel and LibreOffice: each sheet is a page with a table and text."""

import datetime
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import python_calamine
from python_calamine import CalamineWorkbook, SheetTypeEnum

from ade_extractor import archives, limits
from ade_extractor.pages import Page, Reading, Table
from ade_extractor.text import clean
from ade_extractor.trouble import Trouble, malformed, reading, too_large

_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
MOST_OLD_BYTES = 128 << 20
# The encryption record follows the first record of the workbook. The library reads the oldest cipher as plain text.
_OLD_ENCRYPTED = re.compile(
    rb"(\x09\x08\x10\0\0\x06\x05\0.{12}|\x09\x08\x08\0\0\x05\x05\0.{4})(\x86\0\0\0)?\x2f\0", re.DOTALL
)
_EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument.spreadsheet"
_ENDINGS = {_EXCEL: ".xlsx", _OPEN_DOCUMENT: ".ods", "application/vnd.ms-excel": ".xls"}
_PARTS = {_EXCEL: ("xl/workbook.xml", "[Content_Types].xml"), _OPEN_DOCUMENT: ("content.xml",)}
_WHAT = {_EXCEL: "This Excel workbook", _OPEN_DOCUMENT: "This OpenDocument spreadsheet"}
_OLD = "This Excel workbook (xls)"


def read(path: Path, content_type: str, first: int, last: int) -> Reading:
    what = _WHAT.get(content_type, _OLD)
    if content_type in _PARTS:
        archives.examine(path, what, parts=_PARTS[content_type])
    else:
        if (size := path.stat().st_size) > MOST_OLD_BYTES:
            raise too_large(_OLD, f"it has {size:,} bytes (limit: {MOST_OLD_BYTES:,})")
        data = path.read_bytes()
        if not data.startswith(_COMPOUND):
            raise malformed(_OLD, "its header is missing", "Upload it with its own extension.")
        if archives.is_encrypted_package(data) or _OLD_ENCRYPTED.search(data):
            raise archives.encrypted(_OLD)
        del data  # the library reads the file itself
    # The library decides by the suffix; without one, it tries every format and hides the reason for the failure.
    with tempfile.TemporaryDirectory() as directory, _reading(what):
        link = Path(directory, f"workbook{_ENDINGS[content_type]}")
        link.symlink_to(path.absolute())
        workbook = CalamineWorkbook.from_path(link)
    sheets = enumerate(workbook.sheets_metadata)
    names = [(index, sheet.name) for index, sheet in sheets if sheet.typ == SheetTypeEnum.WorkSheet]
    if not names:
        raise malformed(what, "it has no sheets")

    def read_pages() -> Iterator[Page]:
        left = limits.MOST_CELLS
        for number in range(max(first, 1), min(last, len(names)) + 1):
            index, name = names[number - 1]
            with _reading(what):
                sheet = workbook.get_sheet_by_index(index)
            left -= sheet.height * sheet.width
            if left < 0:
                raise _too_many_cells(what)
            with reading(what):
                rows = [[_text(value) for value in row] for row in sheet.to_python(skip_empty_area=True)]
            lines = "\n".join("\t".join(row).rstrip("\t") for row in rows)
            yield Page(number, f"{clean(name)}\n\n{lines}" if rows else "", tables=[Table(rows)] if rows else [])

    return Reading(len(names), read_pages())


@contextmanager
def _reading(what: str) -> Iterator[None]:
    with reading(what):
        try:
            yield
        except python_calamine.PasswordError as error:
            raise archives.encrypted(what) from error
        except python_calamine.CalamineError as error:
            if "limit exceeded" not in str(error):
                raise
            raise _too_many_cells(what) from error


def _too_many_cells(what: str) -> Trouble:
    return too_large(what, f"it has more than {limits.MOST_CELLS:,} cells, including empty ones between others")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    return str(value)
