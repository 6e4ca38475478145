"""Converts an analysis of Azure Document Intelligence into pages in the format of ADE's own extractor."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from azure.ai.documentintelligence.models import (
    AnalyzedDocument,
    AnalyzeResult,
    BoundingRegion,
    DocumentField,
    DocumentKeyValuePair,
    DocumentPage,
    DocumentTable,
)

from ade_services.trouble import Trouble, clean

# Cells per table. The size that a table declares is allocated before its cells are read, so it needs a limit.
MOST_CELLS = 100_000
MOST_FIELDS_PER_PAGE = 1000
# Values nested deeper than this are not split; they stay part of the field that contains them.
MOST_NESTED = 4
LONGEST_NAME = 100
KINDS = {"number": "number", "integer": "number"}
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TRANSLITERATED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "oe", "œ": "oe", "ł": "l"})
_NOT_IN_NAMES = re.compile("[^a-z0-9]+")

Box = list[float]
Fields = dict[str, Any]


def pages_of(result: AnalyzeResult, read: Sequence[dict[str, Any]], source: str) -> list[dict[str, Any]]:
    """Return the pages of `read`, with text, words, tables and fields replaced by the analysis.

    Raises Trouble if the analysis lacks one of the pages.
    """
    pages = {page.page_number: page for page in result.pages}
    missing = [page["number"] for page in read if page["number"] not in pages]
    if missing:
        found = f"The analysis has only {len(read) - len(missing)} of {len(read)} pages: page {missing[0]} is missing."
        raise Trouble("incomplete", f"{found} The free tier reads only two pages.", permanent=True)
    tables, fields, starts = _tables(result, pages), _fields(result, pages), _starts(result)
    return [
        _page(pages[page["number"]], page, starts)
        | {
            "tables": tables[page["number"]],
            "fields": [field | {"source": source} for field in fields[page["number"]][:MOST_FIELDS_PER_PAGE]],
        }
        for page in read
    ]


def _page(page: DocumentPage, read: dict[str, Any], starts: set[int]) -> dict[str, Any]:
    text = _text(page, starts)
    words = [[clean(word.content), *box] for word in page.words or () if (box := _box(word.polygon, page))]
    # Keep ADE's own image count and its page size in points. Only the size in pixels comes from the service, because it
    # may have rotated the image.
    size = {"width": page.width, "height": page.height} if page.unit == "pixel" else {}
    return {**read, **size, "text": text, "has_text": bool(text.strip()), "words": words}


def _text(page: DocumentPage, starts: set[int]) -> str:
    text = ""
    for line in page.lines or ():
        starts_anew = line.spans and line.spans[0].offset in starts
        text += ("\n\n" if starts_anew else "\n") * bool(text) + clean(line.content)
    return text


def _starts(result: AnalyzeResult) -> set[int]:
    """Return the offsets at which paragraphs start, leaving out paragraphs inside tables."""
    inside = [(span.offset, span.offset + span.length) for table in result.tables or () for span in table.spans]
    found = (paragraph.spans[0].offset for paragraph in result.paragraphs or () if paragraph.spans)
    return {start for start in found if not any(first < start < last for first, last in inside)}


def _tables(result: AnalyzeResult, pages: dict[int, DocumentPage]) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for table in result.tables or ():
        number, box = _place(table.bounding_regions, pages)
        if number is not None:
            found[number].append({"rows": _rows(table), "box": box})
    return found


def _rows(table: DocumentTable) -> list[list[str]]:
    if not 0 <= table.row_count * table.column_count <= MOST_CELLS:
        raise ValueError(f"a table has {table.row_count} rows and {table.column_count} columns")
    rows = [[""] * table.column_count for _ in range(table.row_count)]
    for cell in table.cells:
        rows[cell.row_index][cell.column_index] = clean(cell.content)
    return rows


def _fields(result: AnalyzeResult, pages: dict[int, DocumentPage]) -> dict[int, list[Fields]]:
    found: dict[int, list[Fields]] = defaultdict(list)
    for number, field in _all_fields(result, pages):
        if number is not None and field["name"] and field["value"]:
            found[number].append(field)
    return found


def _all_fields(result: AnalyzeResult, pages: dict[int, DocumentPage]) -> Iterator[tuple[int | None, Fields]]:
    for document in result.documents or ():
        yield from _of_document(document, pages)
    for pair in result.key_value_pairs or ():
        yield _of_pair(pair, pages)


def _of_pair(pair: DocumentKeyValuePair, pages: dict[int, DocumentPage]) -> tuple[int | None, Fields]:
    regions = (pair.value.bounding_regions if pair.value else None) or pair.key.bounding_regions
    value = pair.value.content if pair.value else ""
    # The content of a key includes its trailing colon.
    return _field(pair.key.content.strip().rstrip(":"), (value, "text"), pair.confidence, regions, pages)


def _of_document(document: AnalyzedDocument, pages: dict[int, DocumentPage]) -> Iterator[tuple[int | None, Fields]]:
    for name, field in (document.fields or {}).items():
        for path, each in _leaves(_WORDS.sub(" ", name), field, 1):
            confidence = document.confidence if each.confidence is None else each.confidence
            yield _field(path, _value(each), confidence, each.bounding_regions, pages)


def _value(field: DocumentField) -> tuple[str | None, str]:
    """Return the value of a field and its kind.

    Dates and amounts use ADE's formats, so that they can be compared and added.
    """
    if field.value_date is not None:
        return field.value_date.isoformat(), "date"
    if field.value_currency is not None:
        currency = field.value_currency
        if not isfinite(currency.amount):
            raise ValueError(f"an amount is not a number: {currency.amount}")
        return f"{currency.amount:.2f} {currency.currency_code or ''}".strip(), "amount"
    return field.content, KINDS.get(field.type, "text")


def _leaves(name: str, field: DocumentField, depth: int) -> Iterator[tuple[str, DocumentField]]:
    """Yield the values inside a nested field with their paths, such as `Items 1 Amount` in a list of objects."""
    inner = field.value_object or {str(number): each for number, each in enumerate(field.value_array or (), 1)}
    if not inner or depth == MOST_NESTED:
        yield name, field
        return
    for each, value in inner.items():
        yield from _leaves(f"{name} {_WORDS.sub(' ', each)}", value, depth + 1)


def _field(
    label: str,
    said: tuple[str | None, str],
    confidence: float,
    regions: Sequence[BoundingRegion] | None,
    pages: dict[int, DocumentPage],
) -> tuple[int | None, Fields]:
    number, box = _place(regions, pages)
    value, kind = said
    return number, {
        "name": _name(clean(label).strip()),
        "value": clean(value or "").strip(),
        "kind": kind,
        "confidence": _share(confidence, 1),
        "page": number,
        "box": box,
    }


def _name(label: str) -> str:
    """Return the label in lower case with underscores, as ADE's own extractor names a field with this label."""
    letters = unicodedata.normalize("NFKC", label).casefold().translate(_TRANSLITERATED)
    plain = unicodedata.normalize("NFKD", letters).encode("ascii", "ignore").decode()
    return (_NOT_IN_NAMES.sub("_", plain).strip("_") or label)[:LONGEST_NAME]


def _place(regions: Sequence[BoundingRegion] | None, pages: dict[int, DocumentPage]) -> tuple[int | None, Box | None]:
    """Return the page and the box of the first region: a value that spans several pages is shown on its first page."""
    if not regions:
        return None, None
    number = regions[0].page_number
    return number, _box(regions[0].polygon, pages[number])


def _box(polygon: Sequence[float] | None, page: DocumentPage) -> Box | None:
    """Return left, top, right and bottom as fractions of the page; polygons use inches, or the pixels of an image."""
    if not polygon or not page.width or not page.height:
        return None
    if not all(map(isfinite, polygon)):
        raise ValueError("a coordinate is not a number")
    xs, ys = polygon[0::2], polygon[1::2]
    ends = (min(xs), page.width), (min(ys), page.height), (max(xs), page.width), (max(ys), page.height)
    return [_share(value, whole) for value, whole in ends]


def _share(value: float, whole: float) -> float:
    share = value / whole
    if not isfinite(share):
        raise ValueError(f"{value} of {whole} is not a number")
    return round(min(max(share, 0.0), 1.0), 4)
