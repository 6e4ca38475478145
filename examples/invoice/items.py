"""Finds the line items of an invoice: what was sold, how many, and at what price."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import amounts
from labels import labels_in
from layout import Box, Cell, Layout, Line, Page

COLUMNS = {
    "position": ["pos", "position", "item no", "no", "nr", "#", "art nr", "artikelnr", "article no", "sku", "ref",
    "réf"],
    "description": [
        "description", "item", "service", "services", "product", "details", "article", "beschreibung", "bezeichnung",
        "artikel",
        "leistung", "produkt", "désignation", "libellé", "omschrijving", "descripción", "concepto", "descrizione",
    ],
    "quantity": [
        "qty", "quantity", "hours", "units", "menge", "anzahl", "stunden", "stück", "quantité", "qté", "aantal",
        "cantidad",
        "quantità", "q.tà",
    ],
    "unit": ["unit", "einheit", "unité", "eenheid", "unidad", "unità"],
    "unit_price": [
        "unit price", "price", "rate", "unit cost", "einzelpreis", "preis", "e-preis", "stückpreis", "stundensatz",
        "prix unitaire", "p.u.", "prix", "prijs", "precio", "prezzo", "price per unit",
    ],
    "tax_rate": ["vat", "vat %", "tax", "mwst", "ust", "steuer", "tva", "btw", "iva"],
    "amount": [
        "amount", "total", "line total", "net amount", "betrag", "gesamt", "gesamtpreis", "summe", "g-preis",
        "montant", "total ht",
        "bedrag", "totaal", "importe", "importo", "totale", "net",
    ],
}  # fmt: skip
_COLUMN_OF = {word: column for column, words in COLUMNS.items() for word in words}
_WORDS = "|".join(re.escape(word) for word in sorted(_COLUMN_OF, key=len, reverse=True))
_HEAD = re.compile(rf"(?<![\w-])(?:{_WORDS})(?!\w)", re.IGNORECASE)
_GOODS = {"description", "quantity"}
_TOTALS = {"net_total", "tax_total", "gross_total"}
_NUMBER = re.compile(r"\d[\d.,'’]*")
# Largest distances in line heights: from a line to the continuation of its description, and from one row to the next.
_CONTINUES, _ROW_GAP = 0.8, 8
_CENT = Decimal("0.01")


@dataclass
class Item:
    page: int
    box: Box
    description: str = ""
    position: str = ""
    unit: str = ""
    quantity: Decimal | None = None
    unit_price: Decimal | None = None
    tax_rate: Decimal | None = None
    amount: Decimal | None = None

    def multiplies(self) -> bool | None:
        """Return whether quantity × unit price is the amount, or None if one of them is missing."""
        if self.quantity is None or self.unit_price is None or self.amount is None:
            return None
        return abs(self.quantity * self.unit_price - self.amount) <= _CENT


@dataclass
class Head:
    """The line with the column headings of a table."""

    line: Line
    columns: dict[str, Box]

    def column_of(self, cell: Cell) -> str:
        return min(self.columns, key=lambda name: cell.box.beside(self.columns[name]))


def find_heads(layout: Layout) -> list[Head]:
    heads = []
    for line in layout.lines:
        columns: dict[str, Box] = {}
        for match in _HEAD.finditer(line.text):
            columns.setdefault(_COLUMN_OF[match[0].lower()], line.box_of(*match.span()))
        has_numbers = any(character.isdigit() for character in line.text)
        if has_numbers or len(columns) < 3 or "amount" not in columns or columns.keys().isdisjoint(_GOODS):
            continue
        # The texts of descriptions are longer than their heading, so the column extends to the next one.
        if wide := columns.get("description"):
            right = min((box.left for box in columns.values() if box.left > wide.left), default=wide.right)
            columns["description"] = Box(wide.left, wide.top, max(wide.right, right - wide.height), wide.bottom)
        heads.append(Head(line, columns))
    return heads


def find_items(layout: Layout, heads: list[Head], decimal_mark: str) -> list[Item]:
    items = [item for head in heads for item in _rows_below(layout.page_of(head.line), head, decimal_mark)]
    if items:
        return items
    # In a table without headings, an item is a line in which two numbers multiply to the last one.
    for line in layout.lines:
        matches = amounts.find(line.text, decimal_mark)
        pairs = [(a, b) for place, a in enumerate(matches[:-1]) for b in matches[place + 1 : -1]]
        for a, b in pairs:
            if matches[-1].has_cents and a.value * b.value == matches[-1].value:
                quantity, price = (b, a) if a.has_cents and not b.has_cents else (a, b)
                before_numbers = re.sub(r"^\d+\s+(?=\D)", "", line.text[: a.start]).strip()
                item = Item(line.page, line.box, before_numbers or line.text[a.end : b.start].strip())
                item.quantity, item.unit_price, item.amount = quantity.value, price.value, matches[-1].value
                items.append(item)
                break
    return items


def total_of(items: list[Item]) -> Decimal:
    return sum((item.amount for item in items if item.amount is not None), Decimal())


def _rows_below(page: Page, head: Head, decimal_mark: str) -> Iterator[Item]:
    item, last = None, head.line.box
    for line in page.below(head.line):
        if _ends_table(line) or line.box.top - last.bottom > _ROW_GAP * line.box.height:
            break
        row = _read_row(line, head, decimal_mark)
        if row.amount is not None:
            if item:
                yield item
            item, last = row, line.box
        elif item and row.description and line.box.top - last.bottom < _CONTINUES * line.box.height:
            item.description, last = f"{item.description} {row.description}".strip(), line.box
    if item:
        yield item


def _ends_table(line: Line) -> bool:
    labels = labels_in(line)
    if not labels or labels[0].kind not in _TOTALS or len(amounts.find(line.text, ".")) > 3:
        return False
    # With more than a label and amounts, the line is an item: it may be called “Total station hire”.
    first = line.cells[0].text
    return not first.isdigit() and len(first.split()) <= 6


def _read_row(line: Line, head: Head, decimal_mark: str) -> Item:
    texts: dict[str, str] = {}
    for cell in line.cells:
        column = head.column_of(cell)
        texts[column] = f"{texts.get(column, '')} {cell.text}".strip()
    amount_matches = amounts.find(texts.get("amount", ""), decimal_mark)
    return Item(
        page=line.page,
        box=line.box,
        description=texts.get("description", ""),
        position=texts.get("position", ""),
        unit=texts.get("unit", "") or _NUMBER.sub("", texts.get("quantity", "")).strip(),
        quantity=_number(texts.get("quantity"), decimal_mark),
        unit_price=_number(texts.get("unit_price"), decimal_mark),
        tax_rate=_number(texts.get("tax_rate"), decimal_mark),
        amount=amount_matches[-1].value if amount_matches else None,
    )


def _number(text: str | None, decimal_mark: str) -> Decimal | None:
    match = _NUMBER.search(text or "")
    return amounts.parse(match[0].rstrip(".,'’"), decimal_mark) if match else None
