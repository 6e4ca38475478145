"""Finds labels, the words next to or above a value. Add the words of further languages here."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from layout import Box, Layout, Line

# A phrase matches all ways to join its words: "invoice no" also matches "Invoice-No.:" and "InvoiceNo". A percentage
# may stand between two words, as in "total incl. 19 % VAT".
STRONG = {
    "invoice_number": [
        "invoice number", "invoice no", "invoice nr", "invoice id", "invoice #", "inv no", "tax invoice no",
        "rechnungsnummer", "rechnungs nr", "rechnung nr", "rechnung nummer", "rechnung #", "re nr", "rg nr",
        "belegnummer", "beleg nr", "numéro de facture", "facture n", "facture no", "facture numéro", "n de facture",
        "factuurnummer", "factuur nr", "número de factura", "factura n", "nº de factura", "numero fattura", "fattura n",
    ],
    "invoice_date": [
        "invoice date", "date of invoice", "date of issue", "issue date", "issued on", "issued",
        "billed on", "tax point",
        "rechnungsdatum", "datum der rechnung", "rechnung vom", "ausstellungsdatum", "belegdatum",
        "date de facture", "date de facturation", "date d'émission", "factuurdatum", "fecha de factura",
        "fecha de emisión", "data fattura",
    ],
    "due_date": [
        "due date", "payment due", "due on", "due by", "date due", "pay by", "payable by", "payment due date",
        "please pay by", "fällig am", "fällig", "fälligkeit", "fälligkeitsdatum", "zahlbar bis", "zahlungsziel",
        "zu zahlen bis", "bitte zahlen sie bis", "date d'échéance", "échéance", "vervaldatum", "te betalen voor",
        "fecha de vencimiento", "vencimiento", "data di scadenza", "scadenza",
    ],
    "net_total": [
        "net total", "total net", "net amount", "net", "subtotal", "sub total", "total excl vat", "total excl tax",
        "total before tax", "total before vat", "amount excl vat", "nettobetrag", "netto", "nettosumme", "summe netto",
        "gesamt netto", "gesamtbetrag netto", "zwischensumme", "rechnungsbetrag netto", "total ht", "sous total",
        "montant ht", "subtotaal", "totaal excl btw", "base imponible", "imponibile", "totale imponibile",
    ],
    "tax_total": [
        "vat", "vat amount", "total vat", "tax", "sales tax", "total tax", "tax amount", "gst", "mwst", "ust",
        "umsatzsteuer", "mehrwertsteuer", "zzgl mwst", "zzgl ust", "mwst betrag", "steuerbetrag", "tva", "montant tva",
        "total tva", "btw", "btw bedrag", "iva",
    ],
    "gross_total": [
        "total due", "amount due", "balance due", "total amount", "total amount due", "grand total", "gross total",
        "total gross", "gross amount", "gross", "invoice total", "invoice amount", "total payable", "amount payable",
        "total incl vat", "total including vat", "total incl tax", "total inc vat", "please pay", "gesamtbetrag",
        "gesamtsumme", "rechnungsbetrag", "rechnungssumme", "endbetrag", "endsumme", "zahlbetrag", "bruttobetrag",
        "brutto", "summe brutto", "gesamt brutto", "gesamtbetrag brutto", "zu zahlen", "zu zahlender betrag",
        "gesamt inkl mwst", "gesamtbetrag inkl mwst", "summe inkl mwst", "total ttc", "montant ttc", "net à payer",
        "totaal incl btw", "totaal te betalen", "te betalen", "total a pagar", "totale da pagare", "totale fattura",
    ],
    "seller": [
        "from", "seller", "supplier", "vendor", "issued by", "bill from", "rechnungssteller", "verkäufer", "lieferant",
        "absender", "von", "émetteur", "vendeur", "fournisseur", "leverancier", "emisor", "proveedor", "fornitore",
    ],
    "account_holder": ["account holder", "account name", "beneficiary", "kontoinhaber", "titulaire", "begunstigde"],
    "buyer": [
        "bill to", "billed to", "invoice to", "invoiced to", "sold to", "buyer", "customer", "client", "rechnung an",
        "rechnungsempfänger", "rechnungsadresse", "käufer", "kunde", "empfänger", "facturé à", "destinataire",
        "acheteur", "factuur aan", "klant", "cliente", "destinatario", "spett.le", "to", "an",
    ],
    "buyer_vat_id": [
        "your vat id", "your vat no", "customer vat id", "customer vat no", "client vat no", "buyer vat id",
        "ihre ust idnr", "ihre ust id", "ust idnr des kunden", "kunden ust idnr",
    ],
}  # fmt: skip
# These only count at the start of a cell.
WEAK = {
    "invoice_number": ["invoice", "tax invoice", "rechnung", "facture", "factuur", "factura", "fattura", "number",
    "no", "nr"],
    "invoice_date": ["date", "datum", "fecha", "data", "le"],
    "due_date": ["due"],
    "gross_total": ["total", "gesamt", "summe", "betrag", "amount", "totaal", "totale", "importe total"],
}  # fmt: skip
# Other labels on invoices. Each ends the value of the previous label.
OTHER = [
    "customer number", "customer no", "customer id", "customer ref", "client no", "account number", "account no",
    "order number", "order no", "order id", "order date", "order", "purchase order", "po number", "po no", "po",
    "your reference", "our reference", "your order", "reference", "ref", "delivery note", "delivery note no",
    "delivery date",
    "date of delivery", "date of supply", "service date", "period", "shipping date", "page", "phone", "tel",
    "telephone",
    "mobile", "fax", "email", "e mail", "web", "vat id", "vat no", "vat number", "vat reg no", "vat registration no",
    "tax id", "tax no", "tax number", "company no", "registration no", "reg no", "iban", "bic", "swift", "sort code",
    "bank",
    "vat rate", "tax rate", "total hours", "total quantity", "quotation no", "contract no", "project", "ship to",
    "deliver to",
    "kundennummer", "kunden nr", "kd nr", "auftragsnummer", "auftrags nr", "auftrag", "auftragsdatum", "bestellnummer",
    "bestell nr", "bestellung", "bestelldatum", "lieferschein", "lieferschein nr", "lieferscheinnummer", "lieferdatum",
    "leistungsdatum", "leistungszeitraum", "lieferadresse", "ihr zeichen", "unser zeichen", "ihre bestellung",
    "ansprechpartner", "seite", "telefon", "mobil", "telefax", "steuernummer", "steuer nr", "st nr", "ust id",
    "ust idnr",
    "ust id nr", "uid", "uid nr", "hrb", "handelsregister", "amtsgericht", "geschäftsführer", "konto", "konto nr",
    "blz",
    "vertragsnummer", "projekt", "angebot", "angebots nr", "steuersatz", "n client", "numéro client", "n tva",
    "tva intracom",
    "siret", "siren", "rcs", "klantnummer", "ordernummer", "btw nummer", "btw nr", "kvk", "kvk nummer", "nif", "cif",
    "pedido", "codice fiscale", "partita iva", "p iva",
]  # fmt: skip

_BETWEEN = r"[.:]?[ -]?(?:\(?\d+(?:[.,]\d+)? ?%\)? )?\(?"
_AFTER = r"[.:#°º)]*"
# The largest distance between a label and a value below it, in heights of the label.
_BELOW = 3.0
# Allowed in the cell of a label that stands alone: punctuation, a percentage, a currency.
_NOTHING = re.compile(r"(?:[\s:.,/|()*-]|\d+(?:[.,]\d+)? ?%|\b(?:in|EUR|USD|GBP|CHF)\b|[€$£])*")

# The kind of each phrase, and whether it is strong.
_KINDS = (
    dict.fromkeys(OTHER, ("other", True))
    | {phrase: (kind, False) for kind, phrases in WEAK.items() for phrase in phrases}
    | {phrase: (kind, True) for kind, phrases in STRONG.items() for phrase in phrases}
)
# Longest first, so that "invoice date" is tried before "invoice".
_PHRASES = sorted(_KINDS, key=len, reverse=True)
_GROUPS = (f"(?P<p{place}>{_BETWEEN.join(map(re.escape, phrase.split()))})" for place, phrase in enumerate(_PHRASES))
_PATTERN = re.compile(rf"(?<![\w-])(?:{'|'.join(_GROUPS)})(?!\w){_AFTER}", re.IGNORECASE)
# These are everyday words too, so they only count with a colon or alone in a cell.
_EVERYDAY = {"seller", "buyer"}


@dataclass(frozen=True)
class Place:
    """A part of a line that may contain the value of a label."""

    line: Line
    start: int
    end: int
    how: str

    @property
    def text(self) -> str:
        return self.line.text[self.start : self.end]


@dataclass(frozen=True)
class Label:
    kind: str
    is_strong: bool
    line: Line
    start: int
    end: int
    # Where the next label starts or the line ends.
    until: int

    @property
    def text(self) -> str:
        return self.line.text[self.start : self.end].strip(" :.#(")

    @property
    def box(self) -> Box:
        return self.line.box_of(self.start, self.end)

    def places(self, layout: Layout) -> Iterator[Place]:
        """Yield the places to search for the value: next to the label and, for one like a column heading, below it."""
        yield Place(self.line, self.end, self.until, f"next to “{self.text}”")
        if self.stands_alone():
            yield from self.places_below(layout)

    def stands_alone(self) -> bool:
        cell_end = self.line.text.find("  ", self.end)
        rest = self.line.text[self.end : self.until if cell_end < 0 else min(cell_end, self.until)]
        return _NOTHING.fullmatch(rest) is not None

    def places_below(self, layout: Layout) -> Iterator[Place]:
        box = self.box
        for line in layout.page_of(self.line).below(self.line):
            if line.box.top > box.bottom + _BELOW * box.height:
                return
            start = 0
            for cell in line.cells:
                end = start + len(cell.text)
                if cell.box.beside(box) < 0:
                    yield Place(line, start, end, f"below “{self.text}”")
                    return
                start = end + 2


class Labels:
    """All labels of a document by kind, except in the headings of tables."""

    def __init__(self, layout: Layout, table_heads: list[Line]) -> None:
        self.layout = layout
        self._labels = [label for line in layout.lines if line not in table_heads for label in labels_in(line)]

    def of(self, kind: str) -> list[Label]:
        return [label for label in self._labels if label.kind == kind]

    def places_of(self, kind: str) -> Iterator[tuple[Label, Place]]:
        for label in self.of(kind):
            for place in label.places(self.layout):
                yield label, place

    def beside(self, kind: str, page: int | None, box: Box | None) -> Label | None:
        """Return the label of this kind at the height of the box."""
        if box is None:
            return None
        lines = ((label, label.line) for label in self.of(kind) if label.line.page == page)
        return next((label for label, line in lines if line.box.top <= box.middle <= line.box.bottom), None)

    def before(self, line: Line, start: int) -> Label | None:
        """Return the label of a value that starts at this position."""
        earlier = [label for label in self._labels if label.line is line and label.start < start]
        return earlier[-1] if earlier else None


def labels_in(line: Line) -> list[Label]:
    matches = []
    for match in _PATTERN.finditer(line.text):
        assert match.lastgroup is not None
        kind, is_strong = _KINDS[_PHRASES[int(match.lastgroup[1:])]]
        begins_cell = match.start() == 0 or line.text[: match.start()].endswith("  ")
        rest = line.text[match.end() :]
        if kind in _EVERYDAY:
            is_label = begins_cell and (match[0].endswith(":") or rest.startswith(("  ", ":")) or not rest)
        else:
            is_label = begins_cell or is_strong
        if is_label:
            matches.append((kind, is_strong, *match.span()))
    ends = [*(start for _, _, start, _ in matches[1:]), len(line.text)]
    return [
        Label(kind, is_strong, line, start, end, until)
        for (kind, is_strong, start, end), until in zip(matches, ends, strict=False)
    ]
