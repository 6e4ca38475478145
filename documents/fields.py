"""Fields of documents: the values of all sources, and people's corrections."""

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ade_understanding.vocabulary import FIELDS
from documents import duplicates, problems, reviewing, types
from documents.choosing import PAGE, RUN, Problem, choose, kind_of_source
from documents.models import Document, DocumentField, DocumentQuerySet, FieldCorrection
from documents.models.fields import LONGEST_REASON
from documents.types import TypeSpec

LONGEST_NAME = 100
# The length of a paragraph. A longer value would be text rather than a field, and the document's text is stored anyway.
LONGEST_VALUE = 5000
LONGEST_WORD = {"kind": 32, "source": 100, "reason": LONGEST_REASON}
# Values per document: as many as a page can show, and twice as many as ADE's own extractor reports.
MOST = 1000
_ROWS = 500
_BOX_NUMBERS = 4
# The largest value of the database column.
_LAST_PAGE = 2**31 - 1
_ORDER = {name: number for number, name in enumerate(FIELDS)}
_FLAGS = ("chosen", "in_conflict", "to_review", "also_found")


@dataclass(frozen=True)
class Correction:
    id: int
    value: str
    by: str
    at: datetime


@dataclass(frozen=True)
class SourceValue:
    """The value of a source that does not apply."""

    source: str
    value: str
    confidence: float | None = None
    page: int | None = None
    box: list[float] | None = None
    reason: str = ""


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
    reason: str = ""
    in_conflict: bool = False
    to_review: bool = False
    also_found: bool = False
    others: tuple[SourceValue, ...] = ()
    correction: Correction | None = None

    @property
    def value(self) -> str:
        """The value that applies: the correction if there is one, otherwise the chosen value."""
        return self.correction.value if self.correction else self.machine_value or ""

    @property
    def is_corrected(self) -> bool:
        return self.correction is not None

    @property
    def agrees(self) -> bool | None:
        """Whether person and machine agree. None if only one of them has given a value."""
        return None if self.correction is None or self.id is None else self.correction.value == self.machine_value


def of_document(document_id: int) -> list[FieldRow]:
    """Return the fields in the order of the vocabulary, then fields with other names, then what was also found.

    A field that a person corrected counts as a field, even if its type does not have it.
    """
    corrections = {
        row.name: Correction(row.pk, row.value, row.corrected_by, row.corrected_at)
        for row in FieldCorrection.objects.filter(document=document_id).order_by("name")
    }
    chosen: list[DocumentField] = []
    others: dict[str, list[SourceValue]] = {}
    for row in DocumentField.objects.filter(document=document_id).order_by("id"):
        if row.chosen:
            chosen.append(row)
        else:
            value = SourceValue(row.source, row.value, row.confidence, row.page, row.box, row.reason)
            others.setdefault(row.name, []).append(value)
    rows = [
        FieldRow(
            name=row.name,
            id=row.pk,
            machine_value=row.value,
            kind=row.kind,
            confidence=row.confidence,
            page=row.page,
            box=row.box,
            source=row.source,
            reason=row.reason,
            in_conflict=row.in_conflict,
            to_review=row.to_review and row.name not in corrections,
            also_found=row.also_found and row.name not in corrections,
            others=tuple(others.get(row.name, ())),
            correction=corrections.pop(row.name, None),
        )
        for row in chosen
    ]
    rows.sort(key=lambda row: (row.also_found, _ORDER.get(row.name, len(_ORDER))))
    added = [FieldRow(name=name, correction=correction) for name, correction in corrections.items()]
    split = next((number for number, row in enumerate(rows) if row.also_found), len(rows))
    return [*rows[:split], *added, *rows[split:]]


def keep(document_id: int, fields: Iterable[Mapping[str, Any]], spec: TypeSpec, found: Iterable[Problem] = ()) -> None:
    """Replace the values of all sources but runs, choose among them, and store the problems of the document.

    The caller must have opened a transaction. Texts are cut to their limits, because a document can make them
    arbitrarily long. Raises ValueError for values that no document can cause.
    """
    _store(document_id, _surest(document_id, fields), spec, found, is_replaced=lambda source: not is_run(source))


def publish_run(document_id: int, source: str, replaces: Sequence[str], fields: Iterable[Mapping[str, Any]]) -> None:
    """Store the findings of a run as values of its document, instead of the values of the sources in `replaces`.

    The caller must have opened a transaction. A name that a run reported several times keeps its surest value.
    """
    spec = _spec_of(Document.objects.select_for_update().filter(pk=document_id))
    rows = _surest(document_id, ({**field, "source": source} for field in fields))
    _store(document_id, rows, spec, None, is_replaced={source, *replaces}.__contains__)


def replace(document_id: int, source: str, fields: Iterable[Mapping[str, Any]], spec: TypeSpec) -> None:
    """Replace the values of one source. The caller must have locked the document."""
    rows = [row_of(document_id, field) for field in fields]
    _store(document_id, rows, spec, None, is_replaced=lambda each: each == source)


def refresh(document_id: int, spec: TypeSpec) -> None:
    """Choose again among the values of a document whose type has changed. The caller must have opened a transaction."""
    _store(document_id, [], spec, None, is_replaced=lambda source: False)


def judge(document_id: int) -> None:
    """Choose again and look for problems again. The caller must have opened a transaction."""
    refresh(document_id, _spec_of(Document.objects.filter(pk=document_id)))


def is_run(source: str) -> bool:
    return kind_of_source(source) == RUN


def clean_value(text: str) -> str:
    """Normalise line breaks, strip outer spaces, and remove control characters and lone surrogates.

    People cannot see control characters, and databases refuse lone surrogates.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs")).strip()


def clean_name(text: str) -> str:
    return " ".join(clean_value(text).split())


def _spec_of(document: DocumentQuerySet) -> TypeSpec:
    """Return the type of the one document of this query."""
    row = document.values("workspace_id", "type").get()
    return types.of_workspace(row["workspace_id"]).get(row["type"])


def _surest(document_id: int, fields: Iterable[Mapping[str, Any]]) -> list[DocumentField]:
    """Return one row per name and source: the surest, or the first of equals."""
    best: dict[tuple[str, str], DocumentField] = {}
    for field in fields:
        row = row_of(document_id, field)
        other = best.get((row.name, row.source))
        if other is None or (other.confidence or 0) < (row.confidence or 0):
            best[row.name, row.source] = row
    return list(best.values())[:MOST]


def _store(
    document_id: int,
    new: list[DocumentField],
    spec: TypeSpec,
    found: Iterable[Problem] | None,
    *,
    is_replaced: Callable[[str], bool],
) -> None:
    """Replace the values of some sources, and update the flags of the others.

    `found` are the problems that the reader found; None keeps the stored ones.
    """
    kept: list[DocumentField] = []
    gone: list[int] = []
    for row in DocumentField.objects.filter(document=document_id).order_by("id"):
        if is_replaced(row.source):
            gone.append(row.pk)
        else:
            kept.append(row)
    before = [[getattr(row, flag) for flag in _FLAGS] for row in kept]
    of_fields = choose([*kept, *new], spec)
    changed = [row for row, flags in zip(kept, before, strict=True) if [getattr(row, flag) for flag in _FLAGS] != flags]
    for start in range(0, len(gone), _ROWS):
        DocumentField.objects.filter(pk__in=gone[start : start + _ROWS]).delete()
    # First the rows that are no longer chosen, because only one row per name may be.
    DocumentField.objects.bulk_update([row for row in changed if not row.chosen], _FLAGS, batch_size=_ROWS)
    DocumentField.objects.bulk_update([row for row in changed if row.chosen], _FLAGS, batch_size=_ROWS)
    DocumentField.objects.bulk_create(new, batch_size=_ROWS)
    problems.replace(document_id, found, [*of_fields, *duplicates.find(document_id, [*kept, *new])])
    reviewing.update(document_id)


def row_of(document_id: int, field: Mapping[str, Any]) -> DocumentField:
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
        source=words["source"] or PAGE,
        reason=words["reason"],
    )


def _share(name: str, what: str, number: Any) -> float:
    is_number = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
    if not is_number or not 0 <= number <= 1:
        raise ValueError(f"{what} of field {name!r} must be between 0 and 1, not {number!r}.")
    return float(number)
