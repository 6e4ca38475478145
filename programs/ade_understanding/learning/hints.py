"""Words in labels that say which field a value belongs to, in German and English.

A value is often printed in several places. On the next document these places may hold different values, so the places
whose label fits the field count more.
"""

from collections.abc import Mapping, Sequence

from ade_understanding.vocabulary import TAX_AMOUNT, TAX_BASE

# Beginnings of words, without spaces and punctuation.
HINTS: Mapping[str, tuple[str, ...]] = {
    "invoice_number": ("rechnungsnummer", "rechnungsnr", "rechnung", "invoice", "beleg", "gutschrift", "re"),
    "order_number": ("bestell", "auftrag", "order", "po"),
    "customer_number": ("kunde", "debitor", "customer", "client"),
    "contract_number": ("vertrag", "contract", "police", "versicherungsschein"),
    "delivery_note_number": ("lieferschein", "deliverynote"),
    "date": ("datum", "date"),
    "invoice_date": ("rechnungsdatum", "datum", "invoicedate", "date", "belegdatum", "vom"),
    "due_date": ("fällig", "zahlbar", "zahlungsziel", "due", "payable", "zahlung", "bis"),
    "delivery_date": ("liefer", "leistung", "delivery", "supply"),
    "order_date": ("bestell", "auftrag", "order"),
    "net_total": ("netto", "net", "zwischensumme", "subtotal", "summenetto", "warenwert", "bemessung"),
    "tax_total": ("umsatzsteuer", "mehrwertsteuer", "mwst", "ust", "steuer", "vat", "tax"),
    "gross_total": ("brutto", "rechnungsbetrag", "gesamt", "endbetrag", "gross", "total", "rechnungssumme", "summe"),
    "due_amount": ("zahlbetrag", "fällig", "zahlen", "überweis", "offen", "due", "payable", "zahlender", "balance"),
    "prepaid_amount": ("anzahlung", "abschlag", "vorauszahlung", "prepaid", "paid", "bereits"),
    TAX_BASE: ("netto", "bemessung", "basis", "net", "base"),
    TAX_AMOUNT: ("steuer", "umsatzsteuer", "mwst", "ust", "vat", "tax"),
}
# A word that decides between totals, wherever it stands in the label.
_DECISIVE = {
    **dict.fromkeys(("netto", "ohne", "excl", "exkl", "without", "zzgl"), ("net_total", TAX_BASE)),
    **dict.fromkeys(("brutto", "inkl", "incl", "including", "einschl"), ("gross_total",)),
}
_TOTALS = frozenset({"net_total", "gross_total", "tax_total", "due_amount", TAX_BASE})
_OWN, _NONE, _OTHER = 2.0, 1.0, 0.5


def factor(field: str, words: Sequence[str]) -> float:
    """Return how well a label fits a field: more than 1 if it names the field, less if it names only another one."""
    if field not in HINTS:
        field = next((prefix for prefix in (TAX_BASE, TAX_AMOUNT) if field.startswith(prefix)), field)
    if field not in HINTS or not words:
        return _NONE
    if field in _TOTALS:
        decided = {name for word in words for name in _DECISIVE.get(word, ())}
        if decided:
            return _OWN if field in decided else _OTHER
    label = "".join(words)
    if _longest(HINTS[field], words, label) >= max(
        (_longest(hints, words, label) for name, hints in HINTS.items() if name != field), default=0
    ):
        return _OWN if _longest(HINTS[field], words, label) else _NONE
    return _OTHER


def _longest(hints: Sequence[str], words: Sequence[str], label: str) -> int:
    """Return the length of the longest hint that a word of the label, or the whole label, begins with."""
    return max((len(hint) for hint in hints if label.startswith(hint) or _begins(words, hint)), default=0)


def _begins(words: Sequence[str], hint: str) -> bool:
    return any(word.startswith(hint) if len(hint) > 2 else word == hint for word in words)
