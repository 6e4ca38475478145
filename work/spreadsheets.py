"""Tables that people download and open in a spreadsheet, which would take some texts for formulas."""

import csv
import io
from collections.abc import Iterable

from django.http import HttpResponse

# Also as they are written full-width, which some programs take for the same.
_DANGEROUS = tuple("=+-@\t\r\n＝＋－＠")


def table(name: str, head: Iterable[str], rows: Iterable[Iterable[object]]) -> HttpResponse:
    """A CSV file, to be saved."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"', "Cache-Control": "private, no-store"}
    return HttpResponse(_written([head, *rows]), "text/csv; charset=utf-8", headers=headers)


def cell(value: object) -> str:
    """As text that no spreadsheet computes."""
    text = str(value).replace("\0", "")
    return f"'{text}" if text.startswith(_DANGEROUS) else text


def _written(rows: Iterable[Iterable[object]]) -> str:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows([cell(value) for value in row] for row in rows)
    return written.getvalue()
