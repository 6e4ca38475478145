"""Recognises labels, the words next to or above a value. Add the words of further languages here."""

import re
import unicodedata
from typing import NamedTuple

LONGEST_NAME = 100
# Name and kind of a value, with its labels in lower case and without punctuation. For example, "invoice no" also
# matches "Invoice No.:" and "Invoice-No".
_KNOWN = {
    ("invoice_number", "number"): """invoice number, invoice no, invoice nr, invoice id, tax invoice no, inv no,
        rechnungsnummer, rechnungs nr, rechnungsnr, rechnung nr, rechnung nummer, re nr, rg nr, belegnummer,
        beleg nr""",
    ("order_number", "number"): """order number, order no, order nr, order id, purchase order, purchase order number,
        purchase order no, po number, po no, your order, your order no, bestellnummer, bestell nr, bestellnr,
        auftragsnummer, auftrags nr, auftragsnr, ihre bestellung, ihre bestellnummer""",
    ("customer_number", "number"): """customer number, customer no, customer nr, customer id, client number, client no,
        client id, kundennummer, kunden nr, kundennr, kd nr, ihre kundennummer""",
    ("delivery_note_number", "number"): """delivery note number, delivery note no, lieferscheinnummer, lieferschein nr,
        lieferscheinnr""",
    ("contract_number", "number"): "contract number, contract no, contract id, vertragsnummer, vertrags nr, vertragsnr",
    ("tax_number", "number"): "tax number, tax no, steuernummer, steuer nr, steuernr, st nr",
    ("bic", "number"): "bic, swift, swift bic, bic swift, swift code, bic code",
    ("invoice_date", "date"): """invoice date, date of invoice, date of issue, issue date, issued on, issued,
        rechnungsdatum, datum der rechnung, rechnung vom, ausstellungsdatum, belegdatum""",
    ("due_date", "date"): """due date, payment due, payment due date, due on, due by, date due, pay by, payable by,
        please pay by, fällig am, fällig bis, fällig, fälligkeit, fälligkeitsdatum, zahlbar bis, zahlungsziel,
        zu zahlen bis, bitte zahlen sie bis""",
    ("delivery_date", "date"): """delivery date, date of delivery, date of supply, lieferdatum, leistungsdatum,
        liefertermin""",
    ("order_date", "date"): "order date, date of order, bestelldatum, auftragsdatum, bestellt am",
    ("net_total", "amount"): """net total, total net, net amount, subtotal, sub total, total excl vat, total excl tax,
        total before tax, total before vat, nettobetrag, netto, nettosumme, summe netto, gesamt netto,
        gesamtbetrag netto, zwischensumme, rechnungsbetrag netto""",
    ("tax_total", "amount"): """vat, vat amount, total vat, tax, sales tax, total tax, tax amount, gst, plus vat, mwst,
        ust, umsatzsteuer, mehrwertsteuer, zzgl mwst, zzgl ust, zzgl umsatzsteuer, zzgl mehrwertsteuer, mwst betrag,
        ust betrag, steuerbetrag""",
    ("gross_total", "amount"): """total due, amount due, balance due, total amount, total amount due, grand total,
        gross total, total gross, gross amount, invoice total, invoice amount, total payable, amount payable,
        total incl vat, total including vat, total incl tax, total inc vat, please pay, gesamtbetrag, gesamtsumme,
        rechnungsbetrag, rechnungssumme, endbetrag, endsumme, zahlbetrag, bruttobetrag, brutto, summe brutto,
        gesamt brutto, gesamtbetrag brutto, zu zahlen, zu zahlender betrag, gesamt inkl mwst, gesamtbetrag inkl mwst,
        summe inkl mwst, gesamt inkl ust""",
    ("iban", "iban"): "iban, bank account, iban nr, iban no",
    ("vat_id", "vat_id"): """vat id, vat no, vat number, vat reg no, vat registration no, vat registration number,
        ust id, ust idnr, ust id nr, ustid, ustidnr, umsatzsteuer id,
        umsatzsteuer identifikationsnummer, uid, uid nr""",
    ("email", "email"): "email, e mail, mail, email address, e mail address, e mail adresse",
    ("phone", "phone"): """phone, phone no, phone number, telephone, tel, telefon, tel nr, telefonnummer, fon,
        mobile, mobil""",
    ("fax", "phone"): "fax, telefax, fax no, fax nr",
}  # fmt: skip
# These only count at the start of a cell. Their value must be in the same row, unless the whole row consists of labels.
_WEAK = {
    ("invoice_number", "number"): "invoice, tax invoice, rechnung",
    ("order_number", "number"): "order, po, bestellung, auftrag",
    ("customer_number", "number"): "customer, kunde",
    ("date", "date"): "date, datum, dated, vom",
    ("due_date", "date"): "due",
    ("net_total", "amount"): "net",
    ("gross_total", "amount"): "total, gross, gesamt, summe, betrag, amount",
}

_WORD = re.compile(r"[^\W\d_]+")
_SHARE = r"\d{1,2}(?:[.,]\d{1,2})? ?%"
_SHARE_FIRST = re.compile(rf"{_SHARE} ")
# Up to six words, with what may separate them, as in "zzgl. 19 % MwSt".
_PHRASE = re.compile(rf"[^\W\d_]+(?:(?:[.]? (?:{_SHARE} )?|[.’'/-]|[.]-| - | / )[^\W\d_]+){{0,5}}")
_LAST_PHRASE = re.compile(r"[^\W\d_]+(?:(?:[.]? |[.’'/-])[^\W\d_]+){0,3}[.]?$")
_LAST_CHARACTERS = 60
_SEVERAL = 20
_LONGEST_LABEL = 5
# What still belongs to a label: punctuation, a word for "number", a percentage.
_AFTER = re.compile(rf"(?:[ .:#°º№)(/@-]|no\b|nr\b|{_SHARE})*", re.IGNORECASE)
_NUMBER_SIGN = re.compile(r"[#№º]|n[or]\b", re.IGNORECASE)
# An unknown label: a few words up to a colon, the first one capitalised.
_SHAPE = re.compile(r"(?=[^\W\d_])(?![a-zäöüß])[\w.'’/&()°º#-]+(?: [\w.'’/&()°º#-]+){0,5} ?:(?=\s|$)\s*")
_LONGEST_SHAPE = 60
_TRANSLITERATED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "oe", "œ": "oe", "ł": "l"})
_NOT_IN_NAMES = re.compile("[^a-z0-9]+")


class Label(NamedTuple):
    name: str
    kind: str
    # Where the label starts, and where its value may start, in the text of the cell.
    start: int
    end: int
    is_known: bool = True
    is_weak: bool = False
    has_colon: bool = False


def at_start(text: str) -> Label | None:
    """Return the label at the start of the text, preferring known labels."""
    share = _SHARE_FIRST.match(text) if "%" in text else None
    first = _WORD.match(text, share.end() if share else 0)
    if first is None:
        return None
    most = _MOST_WORDS.get(first[0].lower())
    if most and (label := _known(text, first.start(), most)):
        return label
    shape = _SHAPE.match(text[: _LONGEST_SHAPE + 1]) if ":" in text else None
    if shape is None or not (name := name_of(shape[0])):
        return None
    return Label(name, "text", 0, shape.end(), is_known=False, has_colon=True)


def within(text: str) -> list[Label]:
    """Return the known labels after the first one, each with its colon, as in "No: 12 Date: 1.2.2026"."""
    others: list[Label] = []
    colon = text.find(":")
    for _ in range(_SEVERAL):
        colon = text.find(":", colon + 1)
        if colon < 0:
            break
        begin = max(colon - _LAST_CHARACTERS, 0)
        if last := _LAST_PHRASE.search(text[begin:colon]):
            # Try the longest phrase of the last words first.
            starts = [begin + last.start() + word.start() for word in _WORD.finditer(last[0])]
            labels = (_known(text, start, _LONGEST_LABEL) for start in starts)
            others += [label for label in labels if label and label.has_colon and label.end > colon][:1]
    return others


def name_of(label: str) -> str:
    """Return the label in lower-case ASCII with underscores, or "" if nothing of it can be written so."""
    plain = unicodedata.normalize("NFKC", label).casefold().translate(_TRANSLITERATED)
    ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return _NOT_IN_NAMES.sub("_", ascii_only)[:LONGEST_NAME].strip("_")


def _known(text: str, start: int, most: int) -> Label | None:
    phrase = _PHRASE.match(text, start)
    assert phrase is not None
    words = list(_WORD.finditer(phrase[0]))[:most]
    texts = [word[0].lower() for word in words]
    for count in range(len(words), 0, -1):
        if entry := _PHRASES.get(" ".join(texts[:count])):
            name, kind, is_weak = entry
            begin = start + words[count - 1].end()
            after = _AFTER.match(text, begin)
            assert after is not None
            # A bracket or a minus may be part of the value.
            end = begin + len(after[0].rstrip("(-/"))
            is_weak = is_weak and not _NUMBER_SIGN.search(after[0])
            return Label(name, kind, start, end, is_weak=is_weak, has_colon=":" in after[0])
    return None


# The name and kind of each phrase, and whether it is weak.
_PHRASES = {
    " ".join(phrase.split()): (name, kind, is_weak)
    for table, is_weak in ((_WEAK, True), (_KNOWN, False))
    for (name, kind), phrases in table.items()
    for phrase in phrases.split(",")
}
# The length of the longest phrase by its first word.
_MOST_WORDS = {
    first: max(len(phrase.split()) for phrase in _PHRASES if phrase.split()[0] == first)
    for first in {phrase.split()[0] for phrase in _PHRASES}
}
