"""CSV tables for download. Text that a spreadsheet would read as a formula is escaped."""

import csv
import io
from collections.abc import Iterable

from django.http import HttpResponse

# Includes full-width forms, because some programs treat them like the ASCII characters.
_FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")


def table(name: str, head: Iterable[str], rows: Iterable[Iterable[object]]) -> HttpResponse:
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows([cell(value) for value in row] for row in [head, *rows])
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"', "Cache-Control": "private, no-store"}
    return HttpResponse(file.getvalue(), "text/csv; charset=utf-8", headers=headers)


def cell(value: object) -> str:
    """Format the value as text that no spreadsheet evaluates."""
    text = str(value).replace("\0", "")
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
