"""Opens workbooks and CSV files as sheets whose rows can be read several times."""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import python_calamine

Row = list[Any]

DELIMITERS = ",;\t|"
LINES_TO_SNIFF = 50
_CHUNK_BYTES = 1 << 20
# The first bytes of an OLE file (xls) and a ZIP file (xlsx, ods).
_WORKBOOK_SIGNATURES = (b"\xd0\xcf\x11\xe0", b"PK\x03\x04")
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Excel writes this line to declare the delimiter.
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n?")


class Unreadable(Exception):
    """The file is neither a workbook nor a CSV file. The message is for people."""


@dataclass(frozen=True)
class Sheet:
    name: str
    # How the sheet was read, for the report.
    how: str
    rows: Callable[[], Iterator[Row]]
    # None if the number is unknown before reading.
    height: int | None


def open_sheets(path: Path, name: str) -> list[Sheet]:
    with path.open("rb") as file:
        beginning = file.read(_CHUNK_BYTES)
    if not beginning.startswith(_WORKBOOK_SIGNATURES):
        return [_csv_sheet(path, Path(name).stem, beginning)]
    try:
        workbook = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(path.read_bytes()))
        return [_workbook_sheet(workbook, name) for name in workbook.sheet_names]
    except python_calamine.PasswordError as error:
        raise Unreadable("the workbook is encrypted. Save it without a password.") from error
    except python_calamine.CalamineError as error:
        raise Unreadable(f"the file cannot be opened as a workbook (xlsx, xls or ods): {error}") from error


def _workbook_sheet(workbook: python_calamine.CalamineWorkbook, name: str) -> Sheet:
    sheet = workbook.get_sheet_by_name(name)
    if sheet.start is None:
        return Sheet(name, "workbook", lambda: iter(()), 0)
    first_row, first_column = sheet.start

    def rows() -> Iterator[Row]:
        """Yield the rows, padded on the left with empty columns, so that places match what people see."""
        return ([""] * first_column + row for row in sheet.iter_rows())

    return Sheet(name, "workbook", rows, first_row + sheet.height)


def _csv_sheet(path: Path, name: str, beginning: bytes) -> Sheet:
    encoding = sniff_encoding(path, beginning)
    with _opened(path, encoding) as file:
        lines = [line for line, _ in zip(file, range(LINES_TO_SNIFF), strict=False)]
    separator = _SEPARATOR_LINE.fullmatch(lines[0]) if lines else None
    delimiter = separator[1] if separator else sniff_delimiter(lines)
    csv.field_size_limit(10 * _CHUNK_BYTES)

    def rows() -> Iterator[Row]:
        with _opened(path, encoding) as file:
            if separator:
                next(file)
            yield from csv.reader(file, delimiter=delimiter)

    return Sheet(name, f"{encoding}, delimiter {delimiter!r}", rows, None)


def _opened(path: Path, encoding: str) -> io.TextIOWrapper:
    return path.open(encoding=encoding, errors="replace", newline="")


def sniff_encoding(path: Path, beginning: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if beginning.startswith(mark):
            return encoding
    if nulls := beginning.count(0):
        # UTF-16 without a mark: in a Western language, every second byte is zero.
        at_odd_places = beginning[1::2].count(0)
        if nulls < 0.3 * len(beginning) or not (at_odd_places < 0.1 * nulls or at_odd_places > 0.9 * nulls):
            raise Unreadable("the file is neither a workbook nor a CSV file: it contains zero bytes.")
        return "utf-16-le" if at_odd_places > nulls / 2 else "utf-16-be"
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "windows-1252"
    return "utf-8"


def sniff_delimiter(lines: list[str]) -> str:
    """Return the delimiter that splits most lines into the same number of fields, at least two."""

    def score(delimiter: str) -> tuple[float, int]:
        widths = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if len(row) > 1)
        width, count = widths.most_common(1)[0] if widths else (0, 0)
        return count / max(1, len(lines)), width

    return max(DELIMITERS, key=score)
