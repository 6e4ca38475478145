"""Lays out an e-invoice, or the texts of another XML file, on pages that people can read.

All texts are in Helvetica, whose widths are known, so that the place of each word is known too.
"""

import json
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ade_understanding.einvoice import fields
from ade_understanding.einvoice.model import Invoice

# A4 in points.
WIDTH, HEIGHT = 595.0, 842.0
MARGIN, LINE, SIZE, TITLE = 40.0, 12.0, 9.0, 14.0
_LABEL_WIDTH = 165.0
# The widths of the characters from space to tilde, in thousandths of the size.
_WIDTHS = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
)  # fmt: skip
_OTHER_WIDTH = 556
# What sections of an invoice hold, by the beginnings of names.
_SECTIONS = {
    "Seller": ("seller", "vat_id", "tax_number", "phone", "fax", "email", "tax_representative"),
    "Buyer": ("buyer", "customer_number"),
    "Delivery": ("recipient", "delivery", "period", "order", "receiving"),
    "Payment": ("payment", "payee", "iban", "bic", "account", "card", "mandate", "creditor", "debited", "due_date"),
    "Totals": ("line_total", "allowance", "charge", "net", "tax_total", "tax_base", "tax_amount", "gross", "prepaid",
               "rounding", "due_amount"),
}  # fmt: skip
_INVOICE = "Invoice"
# The shares of the width of a table that its columns take.
_SHARES = {"description": 5, "reason": 5, "exemption": 4, "article": 2, "position": 1.3, "unit": 1, "tax_rate": 1.2}
_SHARE = 1.6


class Text(NamedTuple):
    left: float
    # The base line, from the top.
    top: float
    text: str
    size: float = SIZE


@dataclass
class Sheet:
    number: int
    texts: list[Text] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The texts as lines; the cells of a row are separated by tabs."""
        rows: dict[float, list[str]] = {}
        for each in self.texts:
            rows.setdefault(each.top, []).append(each.text)
        return "\n".join("\t".join(row) for row in rows.values())

    def words_json(self) -> str:
        """Return the words with their places as fractions of the page."""
        words = []
        for each in self.texts:
            at = each.left
            for word in each.text.split(" "):
                end = at + width(word, each.size)
                top, bottom = each.top - 0.8 * each.size, each.top + 0.25 * each.size
                if word:
                    shares = (at / WIDTH, top / HEIGHT, end / WIDTH, bottom / HEIGHT)
                    words.append([word, *(round(min(max(share, 0.0), 1.0), 4) for share in shares)])
                at = end + width(" ", each.size)
        return json.dumps(words, ensure_ascii=False)


def draw(invoice: Invoice) -> list[Sheet]:
    """Lay out an invoice and, each on new pages, the others of its file."""
    layout = _Layout()
    _draw(layout, invoice)
    for other in invoice.others:
        layout.new_page()
        _draw(layout, other)
    return layout.sheets


def _draw(layout: "_Layout", invoice: Invoice) -> None:
    items = fields.items(invoice)
    number = next((item.value for item in items if item.name == "invoice_number"), "")
    layout.title(f"{'Credit note' if invoice.is_credit_note else 'Invoice'} {number}")
    sections: dict[str, list[fields.Item]] = {_INVOICE: [], **{name: [] for name in _SECTIONS}}
    for item in items:
        starts = (name for name, names in _SECTIONS.items() if item.name.startswith(names))
        sections[next(starts, _INVOICE)].append(item)
    for name, parts in sections.items():
        if parts and name == "Totals":
            for table in fields.tables(invoice):
                layout.table(table)
        if parts:
            layout.heading(name)
        for item in parts:
            layout.pair(fields.label_of(item.name), item.value)


def draw_texts(texts: Iterable[tuple[str, str]]) -> list[Sheet]:
    """Lay out names and texts of any XML file."""
    layout = _Layout()
    for name, text in texts:
        layout.pair(name, text)
    return layout.sheets


def width(text: str, size: float) -> float:
    return sum(_width_of(character) for character in text) * size / 1000


def _width_of(character: str) -> int:
    code = ord(character)
    if not 32 <= code <= 126:
        # A letter with an accent is as wide as the letter.
        code = ord(unicodedata.normalize("NFKD", character)[0])
    return _WIDTHS[code - 32] if 32 <= code <= 126 else _OTHER_WIDTH


class _Layout:
    def __init__(self) -> None:
        self.sheets = [Sheet(1)]
        self._top = MARGIN

    def new_page(self) -> None:
        self.sheets.append(Sheet(len(self.sheets) + 1))
        self._top = MARGIN

    def title(self, text: str) -> None:
        self._top += TITLE
        self._add([(MARGIN, line, TITLE) for line in [text[:60]]])

    def heading(self, text: str) -> None:
        self._top += LINE / 2
        self._add([(MARGIN, text, SIZE + 2)])

    def pair(self, label: str, value: str) -> None:
        room = WIDTH - 2 * MARGIN - _LABEL_WIDTH
        labels = list(_wrapped(label, _LABEL_WIDTH - 10))
        for index, line in enumerate(_wrapped(value, room)):
            first = [(MARGIN, labels[0], SIZE)] if index == 0 else []
            self._add([*first, (MARGIN + _LABEL_WIDTH, line, SIZE)])

    def table(self, table: dict[str, Any]) -> None:
        names = [column["name"] for column in table["columns"]]
        shares = [_SHARES.get(name, _SHARE) for name in names]
        widths = [share / sum(shares) * (WIDTH - 2 * MARGIN) for share in shares]
        self.heading(fields.label_of(table["name"]))
        self._row([column["label"] for column in table["columns"]], widths)
        for row in table["rows"]:
            self._row([cell["text"] for cell in row], widths)

    def _row(self, cells: list[str], widths: list[float]) -> None:
        columns = [list(_wrapped(cell, room - 6)) for cell, room in zip(cells, widths, strict=True)]
        for index in range(max(map(len, columns))):
            line, left = [], MARGIN
            for column, room in zip(columns, widths, strict=True):
                if index < len(column):
                    line.append((left, column[index], SIZE))
                left += room
            self._add(line)

    def _add(self, parts: list[tuple[float, str, float]]) -> None:
        if self._top + LINE > HEIGHT - MARGIN:
            self.new_page()
        self._top += LINE
        self.sheets[-1].texts += [Text(left, round(self._top, 1), text, size) for left, text, size in parts if text]


def _wrapped(text: str, room: float) -> Iterator[str]:
    """Yield lines that fit into the room. Longer words are cut."""
    for line in text.split("\n"):
        current = ""
        for word in line.split():
            while width(word, SIZE) > room:
                if current:
                    yield current
                    current = ""
                cut = next(end for end in range(len(word), 0, -1) if width(word[:end], SIZE) <= room or end == 1)
                yield word[:cut]
                word = word[cut:]
            longer = f"{current} {word}".strip()
            if width(longer, SIZE) > room:
                yield current
                current = word
            else:
                current = longer
        yield current
