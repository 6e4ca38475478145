"""Tables as files for spreadsheets and programs, with people's corrections."""

import csv
import io
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any
from xml.sax.saxutils import escape

from ade_understanding.tables import kinds
from documents import tables
from documents.models import DocumentTable
from documents.tables import Cell, Column, Row
from work.operations import spreadsheets

# A number with at most as many digits as spreadsheets keep, perhaps with a currency.
_NUMBER = re.compile(r"(-?\d{1,15}(?:\.\d{1,15})?)(?: ([A-Z]{3}))?")
_MOST_DIGITS = 15
# Days are counted from here. Spreadsheets count a day too much before the first date.
_DAY_ZERO, _FIRST_DATE = date(1899, 12, 30), date(1900, 3, 1)
# The formats in the styles below.
_PLAIN, _DATE, _SHARE, _BOLD = range(4)
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_PARTS = {
    "[Content_Types].xml": (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{_TYPE}.styles+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPE}.worksheet+xml"/></Types>'
    ),
    "_rels/.rels": (
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" Type="{_OFFICE}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>'
    ),
    "xl/_rels/workbook.xml.rels": (
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" Type="{_OFFICE}/worksheet" '
        f'Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="{_OFFICE}/styles" Target="styles.xml"/>'
        "</Relationships>"
    ),
    "xl/styles.xml": (
        f'<styleSheet xmlns="{_MAIN}">'
        '<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
        '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
        '<fills count="2"><fill><patternFill patternType="none"/></fill>'
        '<fill><patternFill patternType="gray125"/></fill></fills>'
        '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
        '<cellStyleXfs count="1"><xf/></cellStyleXfs>'
        '<cellXfs count="4"><xf xfId="0"/><xf numFmtId="14" xfId="0" applyNumberFormat="1"/>'
        '<xf numFmtId="10" xfId="0" applyNumberFormat="1"/><xf fontId="1" xfId="0" applyFont="1"/></cellXfs>'
        '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
    ),
}


@dataclass(frozen=True)
class TableFile:
    name: str
    content_type: str
    data: bytes


def file_of(table: DocumentTable, form: str) -> TableFile:
    """Return the table as a file. `form` is one of FORMS."""
    content_type, write = FORMS[form]
    return TableFile(f"document-{table.document_id}-{table.name}.{form}", content_type, write(table))


def as_csv(table: DocumentTable) -> bytes:
    """Return labels and texts; numbers and dates in their normal form. No spreadsheet takes a text for a formula."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow([spreadsheets.cell(column.title) for column in tables.columns_of(table)])
    for row in tables.rows_of(table):
        texts = [cell.text if cell.value is None else cell.value for cell in row.cells]
        writer.writerow([text if _NUMBER.fullmatch(text) else spreadsheets.cell(text) for text in texts])
    # Spreadsheets recognise UTF-8 by this mark.
    return file.getvalue().encode("utf-8-sig")


def as_json(table: DocumentTable) -> bytes:
    values = {
        "document_id": table.document_id,
        "name": table.name,
        "page": table.page,
        "columns": [asdict(column) for column in tables.columns_of(table)],
        "rows": [[_values_of(cell) for cell in row.cells] for row in tables.rows_of(table)],
        "rows_left_out": table.rows_left_out,
        "columns_left_out": table.columns_left_out,
    }
    return json.dumps(values, ensure_ascii=False, indent=1).encode()


def as_xlsx(table: DocumentTable) -> bytes:
    columns, rows = tables.columns_of(table), list(tables.rows_of(table))
    currencies = [_currency(column, [row.cells[index] for row in rows]) for index, column in enumerate(columns)]
    titles = [
        f"{column.title} ({currency})" if currency else column.title
        for column, currency in zip(columns, currencies, strict=True)
    ]
    head = "".join(_text_cell(title, _BOLD) for title in titles)
    body = "".join(f"<row>{_row(row, columns, currencies)}</row>" for row in rows)
    # Longer names of sheets are not allowed.
    sheets = f'<sheets><sheet name="{table.name[:31]}" sheetId="1" r:id="rId1"/></sheets>'
    parts = {
        **_PARTS,
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}">{sheets}</workbook>',
        "xl/worksheets/sheet1.xml": (
            f'<worksheet xmlns="{_MAIN}"><sheetData><row>{head}</row>{body}</sheetData></worksheet>'
        ),
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in parts.items():
            # Without the time, equal tables are equal files.
            archive.writestr(zipfile.ZipInfo(part), f"{_HEAD}{content}", zipfile.ZIP_DEFLATED)
    return file.getvalue()


FORMS: dict[str, tuple[str, Callable[[DocumentTable], bytes]]] = {
    "csv": ("text/csv; charset=utf-8", as_csv),
    "xlsx": (f"{_TYPE}.sheet", as_xlsx),
    "json": ("application/json", as_json),
}


def _values_of(cell: Cell) -> dict[str, Any]:
    corrected_by = cell.correction.by if cell.correction else None
    return {"text": cell.text, "value": cell.value, "machine_text": cell.machine_text, "corrected_by": corrected_by}


def _currency(column: Column, cells: Sequence[Cell]) -> str | None:
    """Return the currency of an amount column, "" if its amounts have none, and None if they differ."""
    if column.kind != kinds.AMOUNT:
        return ""
    found = {value.rpartition(" ")[2] for cell in cells if (value := cell.value) and " " in value}
    return (found.pop() if found else "") if len(found) < 2 else None


def _row(row: Row, columns: Sequence[Column], currencies: Sequence[str | None]) -> str:
    written = []
    for cell, column, currency in zip(row.cells, columns, currencies, strict=True):
        number = None if currency is None else _number(column.kind, cell.value)
        written.append(f'<c s="{number[0]}"><v>{number[1]}</v></c>' if number else _text_cell(cell.text, _PLAIN))
    return "".join(written)


def _number(kind: str, value: str | None) -> tuple[int, str] | None:
    """Return the format and the number of a cell, or None if it is a text."""
    if value is None or kind == kinds.TEXT:
        return None
    if kind == kinds.DATE:
        day = date.fromisoformat(value)
        return (_DATE, str((day - _DAY_ZERO).days)) if day >= _FIRST_DATE else None
    match = _NUMBER.fullmatch(value)
    if match is None or sum(map(str.isdigit, match[1])) > _MOST_DIGITS:
        return None
    if kind == kinds.PERCENTAGE:
        return _SHARE, f"{float(match[1]) / 100:.10g}"
    return _PLAIN, match[1]


def _text_cell(text: str, style: int) -> str:
    if not text:
        return f'<c s="{style}"/>'
    written = escape(_NOT_IN_XML.sub("", text))
    return f'<c s="{style}" t="inlineStr"><is><t xml:space="preserve">{written}</t></is></c>'
