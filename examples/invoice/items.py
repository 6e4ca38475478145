"""Finds the line items of an invoice: what was sold, how many, and at what price."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
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
    columns: dict[str, Box] = field(default_factory=dict)

    def column_of(self, cell: Cell) -> str:
        return min(self.columns, key=lambda name: cell.box.beside(self.columns[name]))


def find_heads(layout: Layout) -> list[Head]:
    heads = [Head(line, _columns(line)) for line in layout.lines]
    return [head for head in heads if _is_head(head)]


def find_items(layout: Layout, heads: list[Head], decimal_mark: str) -> list[Item]:
    items = [item for head in heads for item in _rows_below(layout.page_of(head.line), head, decimal_mark)]
    return items or list(_rows_by_arithmetic(layout, decimal_mark))


def total_of(items: list[Item]) -> Decimal:
    return sum((item.amount for item in items if item.amount is not None), Decimal())


def _columns(line: Line) -> dict[str, Box]:
    columns: dict[str, Box] = {}
    for match in _HEAD.finditer(line.text):
        columns.setdefault(_COLUMN_OF[match[0].lower()], line.box_of(*match.span()))
    return _with_wide_description(columns)


def _with_wide_description(columns: dict[str, Box]) -> dict[str, Box]:
    """Extend the description column to the next column, because its texts are longer than its heading."""
    if wide := columns.get("description"):
        right = min((box.left for box in columns.values() if box.left > wide.left), default=wide.right)
        columns["description"] = Box(wide.left, wide.top, max(wide.right, right - wide.height), wide.bottom)
    return columns


def _is_head(head: Head) -> bool:
    names = head.columns.keys()
    has_numbers = any(character.isdigit() for character in head.line.text)
    return len(names) >= 3 and bool(names & {"description", "quantity"}) and "amount" in names and not has_numbers


def _rows_below(page: Page, head: Head, decimal_mark: str) -> Iterator[Item]:
    item, last = None, head.line.box
    for line in page.below(head.line):
        if _ends_table(line) or line.box.top - last.bottom > _ROW_GAP * line.box.height:
            break
        row = _row(line, head, decimal_mark)
        if row.amount is not None:
            if item:
                yield item
            item, last = row, line.box
        elif item and row.description and line.box.top - last.bottom < _CONTINUES * line.box.height:
            item.description, last = f"{item.description} {row.description}".strip(), line.box
    if item:
        yield item


def _ends_table(line: Line) -> bool:
    found = labels_in(line)
    return (
        bool(found) and found[0].kind in _TOTALS and len(amounts.find(line.text, ".")) <= 3 and not _has_two_texts(line)
    )


def _has_two_texts(line: Line) -> bool:
    """Return whether the line has more than a label and amounts: an item may be called “Total station hire”."""
    first = line.cells[0].text
    return first.isdigit() or len(first.split()) > 6


def _row(line: Line, head: Head, decimal_mark: str) -> Item:
    texts: dict[str, str] = {}
    for cell in line.cells:
        column = head.column_of(cell)
        texts[column] = f"{texts.get(column, '')} {cell.text}".strip()
    return Item(
        page=line.page,
        box=line.box,
        description=texts.get("description", ""),
        position=texts.get("position", ""),
        unit=texts.get("unit", "") or _NUMBER.sub("", texts.get("quantity", "")).strip(),
        quantity=_number(texts.get("quantity"), decimal_mark),
        unit_price=_number(texts.get("unit_price"), decimal_mark),
        tax_rate=_number(texts.get("tax_rate"), decimal_mark),
        amount=_amount(texts.get("amount"), decimal_mark),
    )


def _number(text: str | None, decimal_mark: str) -> Decimal | None:
    match = _NUMBER.search(text or "")
    return amounts.parse(match[0].rstrip(".,'’"), decimal_mark) if match else None


def _amount(text: str | None, decimal_mark: str) -> Decimal | None:
    found = amounts.find(text or "", decimal_mark)
    return found[-1].value if found else None


def _rows_by_arithmetic(layout: Layout, decimal_mark: str) -> Iterator[Item]:
    """Yield items of a table without headings: lines in which two numbers multiply to the last one."""
    for line in layout.lines:
        found = amounts.find(line.text, decimal_mark)
        pairs = [(a, b) for place, a in enumerate(found[:-1]) for b in found[place + 1 : -1]]
        product = next(((a, b) for a, b in pairs if found[-1].has_cents and a.value * b.value == found[-1].value), None)
        if product:
            yield _multiplied(line, *product, found[-1].value)


def _multiplied(line: Line, a: amounts.FoundAmount, b: amounts.FoundAmount, amount: Decimal) -> Item:
    quantity, price = (b, a) if a.has_cents and not b.has_cents else (a, b)
    description = re.sub(r"^\d+\s+(?=\D)", "", line.text[: a.start]).strip() or line.text[a.end : b.start].strip()
    return Item(line.page, line.box, description, quantity=quantity.value, unit_price=price.value, amount=amount)
