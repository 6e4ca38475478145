"""Reads CSV with any delimiter, as one page with a table and text."""

import csv
import io
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ade_extractor import limits
from ade_extractor.pages import Page, Reading, Table
from ade_extractor.text import decode
from ade_extractor.trouble import reading, too_large

WHAT = "This CSV file"
DELIMITERS = ",;\t|"
# Enough to detect the delimiter.
SAMPLE_ROWS = 100
SAMPLE_CHARACTERS = 64 << 10
MOST_FIELD_CHARACTERS = 1_000_000


def read(path: Path, content_type: str, first: int, last: int) -> Reading:
    size = path.stat().st_size
    if size > limits.MOST_TEXT_BYTES:
        raise too_large(WHAT, f"it has {size:,} bytes (limit: {limits.MOST_TEXT_BYTES:,})")
    text = decode(path.read_bytes())
    sample = text[:SAMPLE_CHARACTERS]
    # The delimiter with the most rows of equal width, then with the widest. csv.Sniffer hangs on some files.
    delimiter = max(DELIMITERS, key=lambda each: _fitness(sample, each))
    rows = list(_rows(text, delimiter))
    lines = "\n".join("\t".join(row) for row in rows)
    return Reading(1, [Page(1, lines, tables=[Table(rows)] if rows else [])][max(first - 1, 0) : last])


def _fitness(sample: str, delimiter: str) -> tuple[float, int]:
    try:
        rows = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
        widths = Counter(len(row) for row in islice(rows, SAMPLE_ROWS) if row)
    except csv.Error:
        return 0, 0
    several = {width: count for width, count in widths.items() if width > 1}
    if not several:
        return 0, 0
    width = max(several, key=lambda width: (several[width], width))
    return several[width] / widths.total(), width


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    csv.field_size_limit(MOST_FIELD_CHARACTERS)
    cells = 0
    with reading(WHAT):
        try:
            for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
                cells += len(row)
                if cells > limits.MOST_CELLS:
                    raise too_large(WHAT, f"it has more than {limits.MOST_CELLS:,} values")
                if row:
                    yield row
        except csv.Error as error:
            if "field limit" not in str(error):
                raise
            problem = f"a value has more than {MOST_FIELD_CHARACTERS:,} characters, or a quotation mark is not closed"
            raise too_large(WHAT, problem, "Correct or split it.") from error
