"""Finds the number and the dates of an invoice, its bank accounts and its VAT IDs."""

import re
from collections.abc import Iterator
from datetime import date, timedelta

import checksums
import dates
from findings import Finding, Findings, at, best
from labels import Labels, Place
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
    candidates = []
    for label, place in labels.places_of("invoice_number"):
        line = place.line
        start = place.start + len(place.text) - len(place.text.lstrip(_BEFORE_NUMBER))
        match = _NUMBER.match(line.text, start, place.end)
        if match is None or len(match[0]) > _LONGEST_NUMBER or _AMOUNT_LIKE.fullmatch(match[0].rstrip(".")):
            continue
        if checksums.is_iban(match[0]) or any(each.start <= start < each.end for each in dates.find(line.text)):
            continue
        value = match[0].rstrip("./-,")
        number = at(line, start, start + len(value), value, 0.85 if label.is_strong else 0.6, place.how)
        if labels.layout.text.count(value) > 1:
            number = number.raised(0.4, "the same number appears elsewhere too")
        if len(value) < 3:
            candidates.append(number.lowered(0.3, "short for a number"))
        else:
            candidates.append(number.raised(0.3, "has the format of a number"))
    return best(candidates)


def find_invoice_date(labels: Labels, month_first: bool | None) -> Finding | None:
    candidates = list(_labelled_dates(labels, "invoice_date", month_first))
    if candidates:
        return best(candidates)
    for line in labels.layout.lines:
        for match in dates.find(line.text):
            follows_place = _PLACE_BEFORE_DATE.search(line.text[: match.start]) is not None
            if follows_place or labels.before(line, match.start) is None:
                why = "after the name of a place" if follows_place else "a date without a label"
                whole_line = Place(line, 0, len(line.text), why)
                candidates.append(_rate_date(whole_line, match, month_first, 0.6 if follows_place else 0.4))
    return best(candidates)


def find_due_date(labels: Labels, month_first: bool | None, invoice_date: Finding | None) -> Finding | None:
    due_date = best(list(_labelled_dates(labels, "due_date", month_first)))
    if due_date is None and invoice_date is not None:
        due_date = _date_by_terms(labels.layout, invoice_date.value)
    if due_date is None or invoice_date is None:
        return due_date
    if due_date.value < invoice_date.value:
        return due_date.lowered(0.5, f"before the invoice date, {invoice_date.value}")
    return due_date.raised(0.3, "not before the invoice date")


def find_ibans(layout: Layout) -> list[Finding]:
    ibans: dict[str, Finding] = {}
    for line in layout.lines:
        for start, end in _iban_spans(line.text):
            iban = checksums.compact(line.text[start:end])
            finding = at(line, start, end, iban, 0.8, "has the format of an IBAN")
            if checksums.is_iban(iban):
                finding = finding.raised(0.95, "its checksum is right")
            else:
                finding = finding.lowered(0.75, "its checksum is wrong, so at least one digit is wrong")
            ibans.setdefault(iban, finding)
    return list(ibans.values())


def find_vat_ids(layout: Layout) -> list[Finding]:
    vat_ids: dict[str, Finding] = {}
    for line in layout.lines:
        # No part of an IBAN is a VAT ID.
        text = line.text
        for start, end in _iban_spans(text):
            text = text[:start] + " " * (end - start) + text[end:]
        for match in _VAT_ID.finditer(text):
            if finding := _vat_id_in(line, match):
                vat_ids.setdefault(finding.value, finding)
    return list(vat_ids.values())


def number_and_dates(labels: Labels, month_first: bool | None) -> Findings:
    invoice_date = find_invoice_date(labels, month_first)
    findings = {
        "invoice_number": find_number(labels),
        "invoice_date": invoice_date,
        "due_date": find_due_date(labels, month_first, invoice_date),
    }
    return {name: finding for name, finding in findings.items() if finding}


def _labelled_dates(labels: Labels, kind: str, month_first: bool | None) -> Iterator[Finding]:
    for label, place in labels.places_of(kind):
        for match in dates.find(place.text)[:1]:
            yield _rate_date(place, match, month_first, 0.9 if label.is_strong else 0.75)


def _rate_date(place: Place, match: dates.DateMatch, month_first: bool | None, confidence: float) -> Finding:
    value = match.read(month_first=bool(month_first))
    finding = at(place.line, place.start + match.start, place.start + match.end, value, confidence, place.how)
    if not match.is_ambiguous:
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


def _vat_id_in(line: Line, candidate: re.Match[str]) -> Finding | None:
    """Return the longest VAT ID at the start of the candidate, because words may follow it."""
    start = candidate.start()
    ends = [start + space.start() for space in re.finditer(r" |$", candidate[1])]
    end = next((end for end in reversed(ends) if checksums.is_vat_format(candidate.string[start:end])), None)
    if end is None:
        return None
    vat_id = checksums.compact(line.text[start:end])
    finding = at(line, start, end, vat_id, 0.75, f"has the format of a VAT id of {vat_id[:2]}")
    match checksums.vat_checksum(vat_id):
        case True:
            return finding.raised(0.9, "its checksum is right")
        case False:
            return finding.lowered(0.7, "its checksum is wrong")
    return finding
