"""The cash discount of an invoice, and its transfer as text for a bank's QR code."""

import re
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from invoice import Invoice

_PERCENT = r"(?P<percent>\d{1,2}(?:[.,]\d{1,2})?)\s?(?:%|percent|Prozent)"
_DAYS = r"(?P<days>\d{1,3})\s?(?:days?|Tagen?|jours|dagen|días|dias|giorni|dni)"
# Without one of these words, a percentage may also be interest on late payments.
_DISCOUNT = re.compile("discount|skonto|escompte|korting|descuento|desconto|sconto|rabat", re.IGNORECASE)
# "2 % within 10 days", "within 10 days: 2 %", the form that electronic invoices use, and "2 % discount, if paid within
# 10 days". A comma often separates the discount from the net term, so it comes last.
_TERMS = (
    re.compile(rf"{_PERCENT}[^\d%,;]{{1,60}}{_DAYS}", re.IGNORECASE),
    re.compile(rf"{_DAYS}[^\d%,;]{{1,40}}{_PERCENT}", re.IGNORECASE),
    re.compile(r"#SKONTO#TAGE=(?P<days>\d{1,3})#PROZENT=(?P<percent>\d{1,2}(?:\.\d{1,2})?)#"),
    re.compile(rf"{_PERCENT}[^\d%]{{1,60}}{_DAYS}", re.IGNORECASE),
)
_DUE = re.compile(_DAYS, re.IGNORECASE)


@dataclass(frozen=True)
class Discount:
    until: date
    total: Decimal
    confidence: float


class NotPayable(Exception):
    """The invoice lacks something that a transfer needs. The message is for people."""


def due_date(invoice: Invoice) -> tuple[date, float] | None:
    """Return the day that the terms of payment name by a number of days, and how sure that is."""
    issued = invoice.day("invoice_date")
    terms = invoice.text("payment_terms")
    found = _discount_in(terms)
    if found:
        terms = terms.replace(found[0], "")
    days = {int(match["days"]) for match in _DUE.finditer(terms)}
    if issued is None or len(days) != 1:
        return None
    return issued + timedelta(days=days.pop()), _sureness(invoice)


def discount(invoice: Invoice) -> Discount | None:
    """Return until when less is to be paid, and how much; None if the terms of payment say nothing of it."""
    match = _discount_in(invoice.text("payment_terms"))
    issued, total = invoice.day("invoice_date"), invoice.total
    if match is None or issued is None or total is None:
        return None
    percent = Decimal(match["percent"].replace(",", "."))
    return Discount(
        until=issued + timedelta(days=int(match["days"])),
        total=round(total * (100 - percent) / 100, 2),
        confidence=_sureness(invoice),
    )


def transfer(invoice: Invoice) -> str:
    """Return the text of a "Girocode" (EPC069-12), which banking apps read as a QR code. Raises NotPayable."""
    if invoice.type == "credit_note":
        raise NotPayable("a credit note is paid by the seller.")
    missing = [name for name in ("iban", "seller") if not invoice.text(name)]
    if missing:
        raise NotPayable(f"{' and '.join(missing)} missing.")
    if invoice.currency != "EUR":
        raise NotPayable(f"a SEPA transfer is in euros, not in {invoice.currency or 'an unknown currency'}.")
    if invoice.total is None or invoice.total <= 0:
        raise NotPayable("there is no amount to pay.")
    reference = " ".join(f"{invoice.number} {invoice.text('invoice_date')}".split())
    lines = [
        *("BCD", "002", "1", "SCT"),
        invoice.text("bic"),
        invoice.text("seller")[:70],
        invoice.text("iban"),
        f"EUR{invoice.total:.2f}",
        *("", "", reference[:140]),
    ]
    return "\n".join(lines) + "\n"


def _discount_in(terms: str) -> re.Match[str] | None:
    matches = (pattern.search(terms) for pattern in _TERMS if _DISCOUNT.search(terms))
    return next(filter(None, matches), None)


def _sureness(invoice: Invoice) -> float:
    return min(invoice.confidence("payment_terms"), invoice.confidence("invoice_date"))
