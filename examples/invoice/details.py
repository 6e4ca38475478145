"""Finds the number and the dates of an invoice, its bank accounts and its VAT IDs."""

import re
from collections.abc import Iterator
from datetime import date, timedelta

import checksums
import dates
from findings import Finding, Findings, at, best
from labels import Label, Labels, Place
from layout import Layout, Line

_NUMBER = re.compile(r"(?:[A-Z]{1,6} (?=\d))?(?=\S*\d)[A-Za-z0-9][\w./-]*(?: ?/ ?\d+)*")
_AMOUNT_LIKE = re.compile(r"\d[\d.,']*[.,]\d{2}")
_BEFORE_NUMBER = " :.#°º–-\t"
_LONGEST_NUMBER = 30
# Matches may overlap: “DE136695976 IBAN DE89…” looks like an IBAN from its first letter on.
_IBANS = (rf"{country}[0-9]{{2}}(?: ?[A-Z0-9]){{{length - 4}}}" for country, length in checksums.IBAN_LENGTHS.items())
_IBAN = re.compile(rf"(?=\b({'|'.join(_IBANS)})\b)")
_IBAN_BEFORE = re.compile(r"IBAN[\s:.-]*$", re.IGNORECASE)
_VAT_ID = re.compile(r"(?=\b((?:[A-Z]{2}|ATU|CHE)(?:[ .-]?[A-Z0-9]{2,13}){1,5})\b)")
_DAYS = re.compile(
    r"(?:within|in|net|netto|innerhalb(?: von)?|innert|binnen|terms:?|à|zahlungsziel:?|sous)"
    r" (\d{1,3}) (?:days|tagen?|jours|dagen|giorni|días)"
    r"|(\d{1,3}) (?:days net|tage netto|days from)|\bnet (\d{2,3})\b",
    re.IGNORECASE,
)
_PLACE_BEFORE_DATE = re.compile(r"(?:^|  )[^\W\d]+(?:[ -][^\W\d]+){0,2},? (?:den |the |le )?$")


def find_number(labels: Labels) -> Finding | None:
    candidates = [
        _rate_number(label, place, match, labels.layout)
        for label, place in labels.places_of("invoice_number")
        if (match := _number_in(place))
    ]
    return best(candidates)


def find_invoice_date(labels: Labels, month_first: bool | None) -> Finding | None:
    labelled = list(_labelled_dates(labels, "invoice_date", month_first))
    return best(labelled or list(_unlabelled_dates(labels, month_first)))


def find_due_date(labels: Labels, month_first: bool | None, invoice_date: Finding | None) -> Finding | None:
    found = best(list(_labelled_dates(labels, "due_date", month_first)))
    if found is None and invoice_date is not None:
        found = _date_by_terms(labels.layout, invoice_date.value)
    if found is None or invoice_date is None:
        return found
    if found.value < invoice_date.value:
        return found.lowered(0.5, f"before the invoice date, {invoice_date.value}")
    return found.raised(0.3, "not before the invoice date")


def find_ibans(layout: Layout) -> list[Finding]:
    found: dict[str, Finding] = {}
    for line in layout.lines:
        for start, end in _iban_spans(line.text):
            iban = checksums.compact(line.text[start:end])
            found.setdefault(iban, _rate_iban(line, start, end, iban))
    return list(found.values())


def find_vat_ids(layout: Layout) -> list[Finding]:
    found: dict[str, Finding] = {}
    for line in layout.lines:
        for match in _VAT_ID.finditer(_without_ibans(line.text)):
            if span := _vat_span(match):
                vat_id = checksums.compact(line.text[slice(*span)])
                found.setdefault(vat_id, _rate_vat_id(line, span, vat_id))
    return list(found.values())


def number_and_dates(labels: Labels, month_first: bool | None) -> Findings:
    invoice_date = find_invoice_date(labels, month_first)
    found = {
        "invoice_number": find_number(labels),
        "invoice_date": invoice_date,
        "due_date": find_due_date(labels, month_first, invoice_date),
    }
    return {name: finding for name, finding in found.items() if finding}


def _number_in(place: Place) -> re.Match[str] | None:
    """Return the first match if it looks like a number and is neither a date nor an amount."""
    start = place.start + len(place.text) - len(place.text.lstrip(_BEFORE_NUMBER))
    match = _NUMBER.match(place.line.text, start, place.end)
    if match is None or len(match[0]) > _LONGEST_NUMBER or _AMOUNT_LIKE.fullmatch(match[0].rstrip(".")):
        return None
    is_date = any(found.start <= match.start() < found.end for found in dates.find(place.line.text))
    return None if is_date or checksums.is_iban(match[0]) else match


def _rate_number(label: Label, place: Place, match: re.Match[str], layout: Layout) -> Finding:
    value = match[0].rstrip("./-,")
    start = match.start()
    found = at(place.line, start, start + len(value), value, 0.85 if label.is_strong else 0.6, place.how)
    if layout.text.count(value) > 1:
        found = found.raised(0.4, "the same number appears elsewhere too")
    if len(value) < 3:
        return found.lowered(0.3, "short for a number")
    return found.raised(0.3, "has the format of a number")


def _labelled_dates(labels: Labels, kind: str, month_first: bool | None) -> Iterator[Finding]:
    for label, place in labels.places_of(kind):
        for found in dates.find(place.text)[:1]:
            yield _rate_date(place, found, month_first, 0.9 if label.is_strong else 0.75, place.how)


def _unlabelled_dates(labels: Labels, month_first: bool | None) -> Iterator[Finding]:
    for line in labels.layout.lines:
        for found in dates.find(line.text):
            follows_place = _PLACE_BEFORE_DATE.search(line.text[: found.start]) is not None
            if follows_place or labels.before(line, found.start) is None:
                why = "after the name of a place" if follows_place else "a date without a label"
                whole_line = Place(line, 0, len(line.text), why)
                yield _rate_date(whole_line, found, month_first, 0.6 if follows_place else 0.4, why)


def _rate_date(place: Place, found: dates.FoundDate, month_first: bool | None, confidence: float, why: str) -> Finding:
    value = found.read(month_first=bool(month_first))
    finding = at(place.line, place.start + found.start, place.start + found.end, value, confidence, why)
    if not found.is_ambiguous:
        return finding.raised(0.3, "can be read in only one way")
    order = "month" if month_first else "day"
    if month_first is None:
        return finding.lowered(0.4, f"day and month could be swapped; read with the {order} first")
    return finding.lowered(0.1, f"read with the {order} first, like other dates here")


def _date_by_terms(layout: Layout, invoice_date: date) -> Finding | None:
    for line in layout.lines:
        if match := _DAYS.search(line.text):
            days = int(next(group for group in match.groups() if group))
            due = invoice_date + timedelta(days=days)
            return at(line, match.start(), match.end(), due, 0.7, f"{days} days after the invoice date")
    return None


def _iban_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of all IBANs with a correct checksum or the label “IBAN”."""
    spans = [match.span(1) for match in _IBAN.finditer(text)]
    return [(a, b) for a, b in spans if checksums.is_iban(text[a:b]) or _IBAN_BEFORE.search(text[:a])]


def _without_ibans(text: str) -> str:
    """Replace IBANs with spaces, so that no part of one is taken for a VAT ID."""
    for start, end in _iban_spans(text):
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _rate_iban(line: Line, start: int, end: int, iban: str) -> Finding:
    found = at(line, start, end, iban, 0.8, "has the format of an IBAN")
    if checksums.is_iban(iban):
        return found.raised(0.95, "its checksum is right")
    return found.lowered(0.75, "its checksum is wrong, so at least one digit is wrong")


def _vat_span(match: re.Match[str]) -> tuple[int, int] | None:
    """Return the span of the longest VAT ID at the start of the match, because words may follow it."""
    start = match.start()
    ends = [start + space.start() for space in re.finditer(r" |$", match[1])]
    return next(((start, end) for end in reversed(ends) if checksums.is_vat_format(match.string[start:end])), None)


def _rate_vat_id(line: Line, span: tuple[int, int], vat_id: str) -> Finding:
    found = at(line, *span, vat_id, 0.75, f"has the format of a VAT id of {vat_id[:2]}")
    match checksums.vat_checksum(vat_id):
        case True:
            return found.raised(0.9, "its checksum is right")
        case False:
            return found.lowered(0.7, "its checksum is wrong")
    return found
