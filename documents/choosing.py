"""Chooses one value per field from the values of all sources, and finds what needs review.

See docs/decisions/0036-one-value-with-many-sources.md. Does not use the database.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from ade_understanding.learning.spellings import folded
from ade_understanding.vocabulary import FIELDS, TAX_AMOUNT, TAX_BASE
from documents.models import DocumentField
from documents.types import TypeSpec

E_INVOICE, RUN, SENDER, SERVICE, PAGE = "e-invoice", "run", "sender", "service", "page"
# If several sources are sure, the first one applies.
ORDER = (E_INVOICE, RUN, SENDER, SERVICE, PAGE)
# A source that is less sure than this does not contradict another one.
CONTRADICTS_FROM = 0.75
# Texts that share at least this part of their words say the same.
ALIKE = 0.5
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_FORMS = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "amount": re.compile(r"-?\d+(?:\.\d+)?(?: [A-Z]{3})?"),
    "iban": re.compile(r"[A-Z]{2}\d\d[A-Z0-9]{10,30}"),
    "vat_id": re.compile(r"[A-Z]{2}[A-Z0-9+*.]{2,13}"),
    "email": re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"),
}


class Problem(NamedTuple):
    code: str
    field: str
    message: str


def kind_of_source(source: str) -> str:
    """Return `run` for the source "run 12", and the source itself for others."""
    return source.partition(" ")[0]


def choose(rows: Iterable[DocumentField], spec: TypeSpec) -> list[Problem]:
    """Set the flags of all values of one document, and return the problems of its fields."""
    by_name: dict[str, list[DocumentField]] = defaultdict(list)
    for row in rows:
        by_name[row.name].append(row)
    found: dict[str, DocumentField] = {}
    for name, same in by_name.items():
        threshold = spec.threshold_of(name)
        best = min(same, key=lambda row: _preference(row, threshold))
        also_found = not _is_field(name, same, spec)
        if not also_found:
            found[name] = best
        is_sure = best.confidence is None or best.confidence >= threshold
        in_conflict = not also_found and any(_contradicts(best, other, is_sure=is_sure) for other in same)
        for row in same:
            row.chosen = row is best
            row.also_found = also_found
            row.in_conflict = row is best and in_conflict
            row.to_review = row is best and not also_found and (not is_sure or in_conflict)
    return [*_missing(found, spec), *_malformed(found, spec)]


def normal(value: str, kind: str) -> str:
    """Return a form in which equal values are equal texts."""
    if kind == "amount" and (number := _NUMBER.search(value)):
        try:
            return str(Decimal(number[0]).normalize())
        except InvalidOperation:  # pragma: no cover  # the pattern allows only numbers
            return number[0]
    if kind in ("number", "iban", "vat_id", "phone"):
        return folded(value)
    return " ".join(value.split()).casefold()


def _preference(row: DocumentField, threshold: float) -> tuple[bool, float, int, int]:
    """Order values by preference: sure ones by their source, then the others by their confidence."""
    confidence = 1.0 if row.confidence is None else row.confidence
    kind, _, number = row.source.partition(" ")
    rank = ORDER.index(kind) if kind in ORDER else len(ORDER)
    is_unsure = confidence < threshold
    # The latest run applies.
    return is_unsure, -confidence if is_unsure else 0, rank, -int(number) if kind == RUN else 0


def _contradicts(best: DocumentField, other: DocumentField, *, is_sure: bool) -> bool:
    if other is best or (other.confidence is not None and other.confidence < CONTRADICTS_FROM):
        return False
    # Two runs of one document do not contradict each other: the later one applies.
    if kind_of_source(best.source) == RUN and kind_of_source(other.source) == RUN:
        return False
    # Where the value stands on documents of this sender, a person has shown already.
    if best.source == SENDER and other.source == PAGE and is_sure:
        return False
    kind = best.kind
    one, two = normal(best.value, kind), normal(other.value, kind)
    if kind == "amount":
        currencies = {value.partition(" ")[2] for value in (best.value, other.value)} - {""}
        return one != two or len(currencies) > 1
    if one == two:
        return False
    if kind != "text" or len(one) <= 3:
        return True
    words, others = set(re.findall(r"\w+", one)), set(re.findall(r"\w+", two))
    shorter = min(len(words), len(others))
    return not shorter or len(words & others) / shorter < ALIKE


def _is_field(name: str, rows: Sequence[DocumentField], spec: TypeSpec) -> bool:
    """Return whether this is a field of the type. A value that a person asked for always is."""
    if spec.has(name) or any(kind_of_source(row.source) != PAGE for row in rows):
        return True
    return not spec.name and (name in FIELDS or name.startswith((TAX_BASE, TAX_AMOUNT)))


def _missing(found: dict[str, DocumentField], spec: TypeSpec) -> list[Problem]:
    return [
        Problem(
            "field_missing",
            each.name,
            f"The field {each.name} is missing. A document of the type {spec.label} needs it.",
        )
        for each in spec.required
        if each.name not in found or not found[each.name].value
    ]


def _malformed(found: dict[str, DocumentField], spec: TypeSpec) -> list[Problem]:
    """Find values that do not have the form that the type of the workspace demands."""
    if spec.is_built_in:
        return []
    return [
        Problem(
            "field_malformed",
            name,
            f"The field {name} should be of the kind {kind}, but its value is “{row.value[:100]}”.",
        )
        for name, row in found.items()
        if (kind := spec.kind_of(name)) in _FORMS and not _FORMS[kind].fullmatch(row.value)
    ]
