"""Writes the beginning of one page, sized for a screen: rows of its first table, or some of its text.

For types that are drawn, only the number of pages is written.
"""

import json
from pathlib import Path

from ade_extractor import DRAWN, PEEK, PEEKED_COLUMNS, PEEKED_ROWS, READERS
from ade_extractor.pages import Page, Reading

LONGEST_CELL = 200
MOST_TEXT = 64 << 10


def write(reading: Reading, content_type: str, directory: Path) -> None:
    page = None if content_type in DRAWN else next(iter(reading.pages), None)
    page = page or Page(1, "")
    rows = page.tables[0].rows if page.tables else []
    # The first line of a sheet is its name.
    is_sheet = READERS[content_type] == "ade_extractor.workbook"
    data = {
        "pages": reading.pages_total,
        "title": page.text.partition("\n")[0][:LONGEST_CELL] if is_sheet else "",
        "rows": [
            [cell if len(cell) <= LONGEST_CELL else f"{cell[: LONGEST_CELL - 1]}…" for cell in row[:PEEKED_COLUMNS]]
            for row in rows[:PEEKED_ROWS]
        ],
        "rows_total": len(rows),
        "columns_total": max(map(len, rows), default=0),
        "text": page.text[:MOST_TEXT],
    }
    (directory / PEEK).write_text(json.dumps(data, ensure_ascii=False), "utf-8", "surrogatepass")
