"""Fields of documents: machine-read values and people's corrections."""

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from documents.models import DocumentField, FieldCorrection

LONGEST_NAME = 100
# The length of a paragraph. A longer value would be text rather than a field, and the document's text is stored anyway.
LONGEST_VALUE = 5000
LONGEST_WORD = {"kind": 32, "source": 100}
# Fields per document: as many as a page can show, and twice as many as ADE's own extractor reports.
MOST = 1000
_ROWS = 500
_BOX_NUMBERS = 4
# The largest value of the database column.
_LAST_PAGE = 2**31 - 1


@dataclass(frozen=True)
class Correction:
    id: int
    value: str
    by: str
    at: datetime


@dataclass(frozen=True)
class FieldRow:
    """One field of a document. It has no `id` if only a person, and no machine, has given it a value."""

    name: str
    id: int | None = None
    machine_value: str | None = None
    kind: str = ""
    confidence: float | None = None
    page: int | None = None
    box: list[float] | None = None
    source: str = ""
    correction: Correction | None = None

    @property
    def value(self) -> str:
        """The value that applies: the correction if there is one, otherwise the machine's value."""
        return self.correction.value if self.correction else self.machine_value or ""

    @property
    def is_corrected(self) -> bool:
        return self.correction is not None

    @property
    def agrees(self) -> bool | None:
        """Whether person and machine agree. None if only one of them has given a value."""
        return None if self.correction is None or self.id is None else self.correction.value == self.machine_value


def of_document(document_id: int) -> list[FieldRow]:
    """Return the machine-read fields in document order, followed by corrections of fields that no machine found."""
    corrections = {
        row.name: Correction(row.pk, row.value, row.corrected_by, row.corrected_at)
        for row in FieldCorrection.objects.filter(document=document_id).order_by("name")
    }
    read = [
        FieldRow(
            name=field.name,
            id=field.pk,
            machine_value=field.value,
            kind=field.kind,
            confidence=field.confidence,
            page=field.page,
            box=field.box,
            source=field.source,
            correction=corrections.pop(field.name, None),
        )
        for field in DocumentField.objects.filter(document=document_id).order_by("id")
    ]
    return read + [FieldRow(name=name, correction=correction) for name, correction in corrections.items()]


def keep(document_id: int, fields: Iterable[Mapping[str, Any]]) -> None:
    """Replace the document's machine-read fields; corrections stay. The caller must have opened a transaction.

    Texts are cut to their limits, because a document can make them arbitrarily long. Raises ValueError for values that
    no document can cause.
    """
    best: dict[str, DocumentField] = {}
    for field in fields:
        row = _row(document_id, field)
        other = best.get(row.name)
        if other is None or (other.confidence or 0) < (row.confidence or 0):
            best[row.name] = row
    DocumentField.objects.filter(document=document_id).delete()
    DocumentField.objects.bulk_create(list(best.values())[:MOST], batch_size=_ROWS)


def clean_value(text: str) -> str:
    """Normalise line breaks, strip outer spaces, and remove control characters and lone surrogates.

    People cannot see control characters, and databases refuse lone surrogates.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs")).strip()


def clean_name(text: str) -> str:
    return " ".join(clean_value(text).split())


def _row(document_id: int, field: Mapping[str, Any]) -> DocumentField:
    name, value = clean_name(str(field["name"]))[:LONGEST_NAME].strip(), clean_value(str(field["value"]))
    if not name:
        raise ValueError(f"A field must have a name, not {field['name']!r}.")
    confidence, page, box = field.get("confidence"), field.get("page"), field.get("box")
    if confidence is not None:
        confidence = _share(name, "The confidence", confidence)
    is_page = isinstance(page, int) and not isinstance(page, bool) and 1 <= page <= _LAST_PAGE
    if page is not None and not is_page:
        raise ValueError(f"The page of field {name!r} must be from 1 to {_LAST_PAGE:,}, not {page!r}.")
    if box is not None:
        if not isinstance(box, Sequence) or isinstance(box, str) or len(box) != _BOX_NUMBERS:
            raise ValueError(f"The box of field {name!r} must be {_BOX_NUMBERS} numbers, not {box!r}.")
        box = [None if number is None else _share(name, "Each number in the box", number) for number in box]
    words = {word: clean_name(str(field.get(word) or ""))[:most] for word, most in LONGEST_WORD.items()}
    return DocumentField(
        document_id=document_id,
        name=name,
        value=value[:LONGEST_VALUE],
        kind=words["kind"] or "text",
        confidence=confidence,
        page=page,
        box=box,
        source=words["source"],
    )


def _share(name: str, what: str, number: Any) -> float:
    is_number = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
    if not is_number or not 0 <= number <= 1:
        raise ValueError(f"{what} of field {name!r} must be between 0 and 1, not {number!r}.")
    return float(number)
