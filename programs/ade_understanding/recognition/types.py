"""Decides what kind of document it is, from its titles and from what else was found."""

from collections import defaultdict
from typing import Any

from ade_understanding.recognition.page import PageFindings
from ade_understanding.recognition.sums import value_of

TYPES = ("invoice", "credit_note", "receipt", "order", "delivery_note", "letter", "contract", "statement", "other")
# Points of evidence. A title alone at the top is nearly enough.
_TITLE_ALONE, _TITLE_WITHIN, _TOP, _FIELD, _SIGN = 3.0, 0.7, 1.0, 1.5, 0.7
_ENOUGH = 1.4
_MOST_SIGNS = 3
# Only what was paid on the spot has change.
_FIELDS_POINTS = {"tendered": 3.0}
# Fields that only occur in some types.
_FIELDS = {
    "invoice_number": ("invoice",),
    "due_date": ("invoice",),
    "due_amount": ("invoice",),
    "tendered": ("receipt",),
    "gross_total": ("invoice", "receipt"),
    "net_total": ("invoice",),
    "tax_total": ("invoice", "receipt"),
}


def recognise(found: list[PageFindings]) -> dict[str, Any] | None:
    points: dict[str, float] = defaultdict(float)
    why: dict[str, str] = {}
    names = {candidate.name for page in found for candidate in page.candidates if candidate.how != "form"}
    for page in found[:3]:
        best: dict[str, float] = {}
        for title in page.titles:
            value = _TITLE_ALONE if title.is_alone else _TITLE_WITHIN
            value += _TOP if title.is_alone and title.cell.top < 0.4 else 0
            value *= 1.0 if page.number == 1 else 0.5
            if value > best.get(title.type, 0):
                best[title.type] = value
                why.setdefault(title.type, f"Its title is ‘{title.text}’")
        for name, value in best.items():
            points[name] = max(points[name], value)
    for page in found:
        for name, words in page.signs.items():
            points[name] += _SIGN * min(len(words), _MOST_SIGNS) if page.number == 1 else 0
            why.setdefault(name, f"It says ‘{sorted(words)[0]}’")
    for name in names:
        for each in _FIELDS.get(name, ()):
            points[each] += _FIELDS_POINTS.get(name, _FIELD if each == "invoice" else _FIELD / 2)
            why.setdefault(each, "It has the fields of one")
    totals = {
        value_of(each) for page in found for each in page.candidates if each.name in ("gross_total", "due_amount")
    }
    if "invoice_number" not in names and any(totals & page.run_sums for page in found):
        points["receipt"] += _FIELD
        why.setdefault("receipt", "Its total is the sum of amounts above it")
    if points["credit_note"] >= _TITLE_ALONE:
        points["credit_note"] += points["invoice"] / 2
    if not points:
        return None
    name = max(TYPES[:-1], key=lambda each: points[each])
    if points[name] < _ENOUGH:
        return {"name": "other", "confidence": 0.5, "reason": "Nothing shows another type."}
    others = sum(value for each, value in points.items() if each != name)
    confidence = min(0.99, points[name] / (points[name] + 0.4 * others + 0.4))
    return {"name": name, "confidence": round(confidence, 3), "reason": f"{why[name]}."}
