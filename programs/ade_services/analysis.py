"""Converts an analysis of Azure Document Intelligence into pages in the format of ADE's own extractor."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from azure.ai.documentintelligence.models import (
    AnalyzeResult,
    BoundingRegion,
    DocumentField,
    DocumentPage,
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


def pages_of(result: AnalyzeResult, old_pages: Sequence[dict[str, Any]], source: str) -> list[dict[str, Any]]:
    """Return the old pages, with text, words, tables and fields replaced by the analysis.

    Raises Trouble if the analysis lacks one of the pages.
    """
    pages = {page.page_number: page for page in result.pages}
    missing = [page["number"] for page in old_pages if page["number"] not in pages]
    if missing:
        message = (
            f"The analysis has only {len(old_pages) - len(missing)} of {len(old_pages)} pages:"
            f" page {missing[0]} is missing. The free tier reads only two pages."
        )
        raise Trouble("incomplete", message, permanent=True)
    tables: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for table in result.tables or ():
        number, box = _place(table.bounding_regions, pages)
        if number is None:
            continue
        if not 0 <= table.row_count * table.column_count <= MOST_CELLS:
            raise ValueError(f"a table has {table.row_count} rows and {table.column_count} columns")
        rows = [[""] * table.column_count for _ in range(table.row_count)]
        for cell in table.cells:
            rows[cell.row_index][cell.column_index] = clean(cell.content)
        tables[number].append({"rows": rows, "box": box})
    fields: dict[int, list[Fields]] = defaultdict(list)
    for number, field in _fields(result, pages):
        if number is not None and field["name"] and field["value"]:
            fields[number].append(field | {"source": "service", "reason": f"Read by {source}"})
    # The offsets at which paragraphs start, leaving out paragraphs inside tables.
    inside = [(span.offset, span.offset + span.length) for table in result.tables or () for span in table.spans]
    offsets = (paragraph.spans[0].offset for paragraph in result.paragraphs or () if paragraph.spans)
    starts = {start for start in offsets if not any(first < start < last for first, last in inside)}
    new_pages = []
    for page in old_pages:
        number = page["number"]
        new_page = pages[number]
        text = ""
        for line in new_page.lines or ():
            starts_paragraph = line.spans and line.spans[0].offset in starts
            text += ("\n\n" if starts_paragraph else "\n") * bool(text) + clean(line.content)
        words = new_page.words or ()
        # Keep ADE's own image count and its page size in points. Only the size in pixels comes from the service,
        # because it may have rotated the image.
        size = {"width": new_page.width, "height": new_page.height} if new_page.unit == "pixel" else {}
        content = {
            "text": text,
            "has_text": bool(text.strip()),
            "words": [[clean(word.content), *box] for word in words if (box := _box(word.polygon, new_page))],
            "tables": tables[number],
            "fields": fields[number][:MOST_FIELDS_PER_PAGE],
        }
        new_pages.append({**page, **size, **content})
    return new_pages


def _fields(result: AnalyzeResult, pages: dict[int, DocumentPage]) -> Iterator[tuple[int | None, Fields]]:
    """Yield the fields of all documents and all key-value pairs, each with its page."""
    for document in result.documents or ():
        for name, field in (document.fields or {}).items():
            for path, each in _leaves(_WORDS.sub(" ", name), field, 1):
                confidence = document.confidence if each.confidence is None else each.confidence
                yield _field(path, _value(each), confidence, each.bounding_regions, pages)
    for pair in result.key_value_pairs or ():
        regions = (pair.value.bounding_regions if pair.value else None) or pair.key.bounding_regions
        value = pair.value.content if pair.value else ""
        # The content of a key includes its trailing colon.
        yield _field(pair.key.content.strip().rstrip(":"), (value, "text"), pair.confidence, regions, pages)


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
    value_and_kind: tuple[str | None, str],
    confidence: float,
    regions: Sequence[BoundingRegion] | None,
    pages: dict[int, DocumentPage],
) -> tuple[int | None, Fields]:
    number, box = _place(regions, pages)
    value, kind = value_and_kind
    # The label in lower case with underscores, as ADE's own extractor names a field with this label.
    label = clean(label).strip()
    letters = unicodedata.normalize("NFKC", label).casefold().translate(_TRANSLITERATED)
    plain = unicodedata.normalize("NFKD", letters).encode("ascii", "ignore").decode()
    return number, {
        "name": (_NOT_IN_NAMES.sub("_", plain).strip("_") or label)[:LONGEST_NAME],
        "value": clean(value or "").strip(),
        "kind": kind,
        "confidence": _share(confidence, 1),
        "page": number,
        "box": box,
    }


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
