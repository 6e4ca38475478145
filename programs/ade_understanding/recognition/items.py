"""Finds the lines of an invoice: a table with known columns, from its headings and the places of its words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from ade_understanding.recognition.labelled import Labelled
from ade_understanding.recognition.languages import COLUMNS, SECTIONS, WORD, normal
from ade_understanding.recognition.rates import HIGHEST_RATE, TOLERANCE
from ade_understanding.recognition.rows import Box, Cell, Word, around
from ade_understanding.recognition.values import only_currency, without_currencies
from ade_understanding.vocabulary import LINE_COLUMNS, LINE_ITEMS

MOST_ITEMS = 2_000
_FEWEST_COLUMNS = 3
_LONGEST_HEADING = 5
# Between the lines of a heading, in multiples of their height; and the most lines of one item.
_HEADING_GAP, _MOST_LINES = 1.2, 12
_NUMBERS = ("quantity", "unit_price", "tax_rate", "amount")
_NUMBER = re.compile(
    r"(?<![\w.,])(?P<minus>[-−–(])? ?(?P<digits>(?:\d{1,3}(?:[.,' ]\d{3})*|\d+)(?:[.,]\d{1,4})?)(?![\d.,])"
)
_CENTS = re.compile(r"(?<![\d.,])\d{1,3}(?:[., ]\d{3})*([.,])\d{2}(?![\d.,])")
# Labels that end the lines: what follows are totals.
_ENDS = frozenset({"net_total", "gross_total", "tax_total", "due_amount", "line_total", "payment_terms"})
_END_SECTIONS = frozenset({"totals", "payment"})
# A text over so many columns is a sentence, not a line.
_SENTENCE_COLUMNS = 3
# A line of a text that ends so near to the next column goes on in the next line.
_WRAPPED = 0.06


class Column(NamedTuple):
    name: str
    label: str
    left: float
    right: float


@dataclass(slots=True)
class Item:
    page: int
    # The cells of each column, in the order of their lines.
    cells: dict[str, list[Cell]] = field(default_factory=dict)
    lines: int = 0


@dataclass(slots=True)
class ItemTable:
    columns: list[Column]
    items: list[Item]
    mark: str
    currency: str

    def numbers(self) -> Iterator[Cell]:
        """Yield the cells of the columns with numbers."""
        for item in self.items:
            for name in _NUMBERS:
                yield from item.cells.get(name, ())


def item_tables(labelled: Labelled) -> Iterator[ItemTable]:
    """Yield the tables of one page."""
    rows = labelled.rows.rows
    number = 0
    while number < len(rows):
        columns, after = _heading(rows, number)
        if columns is None:
            number += 1
            continue
        mark = _decimal_mark(labelled.rows.text)
        items, number = _items(labelled, columns, after, mark)
        if items:
            yield ItemTable(columns, items, mark, only_currency(labelled.rows.text))


def _decimal_mark(text: str) -> str:
    marks = [match[1] for match in _CENTS.finditer(text)]
    return "," if marks.count(",") >= marks.count(".") else "."


def _heading(rows: list[list[Cell]], number: int) -> tuple[list[Column] | None, int]:
    """Return the columns of a heading that starts in this row, and the row after it."""
    found = _columns_in(rows[number], [])
    if not found:
        return None, number
    end = number + 1
    while end < min(number + 4, len(rows)):
        last = rows[end - 1][0]
        more = _columns_in(rows[end], found) if rows[end][0].top < last.bottom + _HEADING_GAP * last.height else []
        if not more and not _belongs(rows[end], found):
            break
        found += more
        end += 1
    names = {column.name for column in found}
    has_numbers = "amount" in names or "unit_price" in names
    if len(names) < _FEWEST_COLUMNS or not has_numbers or not names & {"description", "article", "quantity"}:
        return None, number
    return sorted(found, key=lambda column: column.left), end


def _belongs(row: list[Cell], found: list[Column]) -> bool:
    """Return whether a row without known words is a part of a heading: short, and without digits."""
    text = "".join(cell.text for cell in row)
    return len(row) < len(found) and len(row[0].text) < 12 and not any(map(str.isdigit, text))


def _columns_in(row: list[Cell], known: list[Column]) -> list[Column]:
    if any(map(str.isdigit, "".join(cell.text for cell in row))):
        return []
    taken = {column.name for column in known}
    found: list[Column] = []
    for cell in row:
        for label, left, right in _phrases(cell):
            over = next((each for each in known + found if each.left < right and left < each.right), None)
            name = next((each for each in COLUMNS[_key(label)] if each not in taken), None)
            if name and over is None:
                taken.add(name)
                found.append(Column(name, label, left, right))
    return found


def _key(label: str) -> str:
    return " ".join(map(normal, WORD.findall(label)))


def _phrases(cell: Cell) -> Iterator[tuple[str, float, float]]:
    """Yield the names of columns in a cell, which may hold several, with their sides."""
    if _key(cell.text) in COLUMNS:
        yield cell.text, cell.left, cell.right
        return
    words = list(cell.words)
    at = 0
    while at < len(words):
        for count in range(min(_LONGEST_HEADING, len(words) - at), 0, -1):
            label = " ".join(word[0] for word in words[at : at + count])
            if _key(label) in COLUMNS:
                yield label, words[at][1], words[at + count - 1][3]
                at += count - 1
                break
        at += 1


def _items(labelled: Labelled, columns: list[Column], first: int, mark: str) -> tuple[list[Item], int]:
    """Return the items below a heading, and the row after them."""
    rows = labelled.rows.rows
    items: list[Item] = []
    # Lines before the first numbers belong to the first item.
    waiting: list[dict[str, list[Cell]]] = []
    number = first
    for number in range(first, len(rows)):
        row = rows[number]
        if _ends(labelled, number, mark) or _heading(rows, number)[0]:
            return items, number
        cells = _assigned(row, columns)
        numbers = {
            name for name in _NUMBERS if any(_number(cell.text, mark) is not None for cell in cells.get(name, []))
        }
        is_new = bool(numbers) and (not items or any(_has(items[-1].cells, name, mark) for name in numbers))
        if is_new:
            if len(items) == MOST_ITEMS:
                return items, number
            items.append(Item(labelled.page))
            for each in waiting:
                _add(items[-1], each)
            waiting = []
        if items:
            if items[-1].lines < _MOST_LINES:
                _add(items[-1], cells)
        elif len(waiting) < 3:
            waiting.append(cells)
    return items, number + 1


def _has(cells: dict[str, list[Cell]], name: str, mark: str) -> bool:
    return any(_number(cell.text, mark) is not None for cell in cells.get(name, []))


def _add(item: Item, cells: dict[str, list[Cell]]) -> None:
    item.lines += 1
    for name, each in cells.items():
        item.cells.setdefault(name, []).extend(each)


def _ends(labelled: Labelled, number: int, mark: str) -> bool:
    row = labelled.rows.rows[number]
    labels = [labelled.labels.get((number, column)) for column in range(len(row))]
    if sum(1 for label in labels if label is not None and label.names() & _ENDS) > 1:
        # Totals side by side, with their amounts below.
        return True
    for column, (cell, label) in enumerate(zip(row, labels, strict=True)):
        if not _END_SECTIONS.isdisjoint(SECTIONS.get(_key(cell.text), ())) and len(row) == 1:
            return True
        if label is None or not label.names() & _ENDS:
            continue
        has_amount = any(_number(other.text, mark) is not None for other in row[column + 1 :])
        is_strong = not label.meanings[0].is_weak and label.end >= len(cell.text)
        if label.has_colon or is_strong or (has_amount and column == 0):
            return True
    return False


def _assigned(row: list[Cell], columns: list[Column]) -> dict[str, list[Cell]]:
    """Return the cells of a row by the columns that they are in."""
    found: dict[str, list[Cell]] = {}
    for cell in (part for whole in row for part in _parts(whole, columns)):
        column = max(columns, key=lambda each: _fit(cell, each))
        found.setdefault(column.name, []).append(cell)
    return found


def _parts(cell: Cell, columns: list[Column]) -> Iterator[Cell]:
    """Yield a cell, cut where the columns are so close that their words run into each other."""
    over = [each for each in columns if each.left < cell.right and cell.left < each.right]
    if len(over) >= _SENTENCE_COLUMNS and sum(map(str.isalpha, cell.text)) > len(cell.text) / 2:
        return
    if len(over) < 2 or len(cell.words) < 2:
        yield cell
        return
    groups: dict[str, list[Word]] = {}
    for word in cell.words:
        piece = Cell(word[0], word[1], word[3], [word])
        column = max(over, key=lambda each: _fit(piece, each))
        groups.setdefault(column.name, []).append(word)
    for words in groups.values():
        yield Cell(" ".join(word[0] for word in words), words[0][1], words[-1][3], words)


def _fit(cell: Cell, column: Column) -> float:
    """Return how well a cell fits a column: by how much they overlap, otherwise by how near they are."""
    overlap = min(cell.right, column.right) - max(cell.left, column.left)
    if overlap > 0:
        return 1 + overlap
    return overlap


def _number(text: str, mark: str) -> Decimal | None:
    """Return the number that a cell begins with, perhaps after a currency."""
    match = _NUMBER.match(without_currencies(text).strip())
    if match is None:
        return None
    other = "." if mark == "," else ","
    digits = match["digits"].replace(other, "").replace("'", "").replace(" ", "").replace(mark, ".")
    value = Decimal(digits)
    return -value if match["minus"] else value


def to_table(tables: list[ItemTable]) -> dict[str, Any] | None:
    """Return the lines of all pages as one table of the digest."""
    if not tables:
        return None
    rows: list[dict[str, dict[str, Any]]] = []
    labels: dict[str, str] = {}
    for table in tables:
        labels = {column.name: column.label for column in table.columns} | labels
        for item in table.items:
            row = {name: cell for name, cell in _cells(item, table) if cell["text"]}
            if "amount" in row or {"quantity", "unit_price"} <= row.keys():
                rows.append(row)
    if not rows:
        return None
    names = [name for name in LINE_COLUMNS if any(name in row for row in rows)]
    empty = {"text": "", "value": None, "page": None, "box": None}
    first = tables[0].items[0]
    boxes = [["", *cell["box"]] for row in rows for cell in row.values() if cell["box"] and cell["page"] == first.page]
    return {
        "name": LINE_ITEMS,
        "page": first.page,
        "box": around(boxes),
        "columns": [{"name": name, "label": labels.get(name, ""), "kind": LINE_COLUMNS[name]} for name in names],
        "rows": [[row.get(name, empty) for name in names] for row in rows[:MOST_ITEMS]],
    }


def _cells(item: Item, table: ItemTable) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, cells in item.cells.items():
        if name not in _NUMBERS:
            part = _whole(cells, name, table.columns)
            yield name, _cell(item, part, " ".join(cell.text for cell in part), None)
            continue
        numbered = [(cell, value) for cell in cells if (value := _number(cell.text, table.mark)) is not None]
        if not numbered:
            continue
        cell, value = numbered[0]
        if name == "unit_price" and len(numbered) > 1:
            # Beside the price, there may be the number of pieces in a pack.
            cell, value = next((each for each in numbered if _multiplies(item, each[1], table.mark)), numbered[0])
        if name == "tax_rate" and not 0 <= value <= HIGHEST_RATE:
            continue
        yield name, _cell(item, [cell], cell.text, _value(name, value, table.currency))
        match = _NUMBER.match(cell.text)
        unit = cell.text[match.end() :].strip(" .x×") if match else ""
        if name == "quantity" and unit and "unit" not in item.cells and not any(map(str.isdigit, unit)):
            yield "unit", _cell(item, [cell], unit, None)


def _multiplies(item: Item, price: Decimal, mark: str) -> bool:
    """Return whether quantity and price make the amount."""
    quantities, amounts = (
        [value for cell in item.cells.get(name, []) if (value := _number(cell.text, mark)) is not None]
        for name in ("quantity", "amount")
    )
    return bool(quantities and amounts) and abs(quantities[0] * price - amounts[0]) <= TOLERANCE


def _whole(cells: list[Cell], name: str, columns: list[Column]) -> list[Cell]:
    """Return the first line of a text, with the lines that it goes on in. Further lines are remarks."""
    left = min(cell.left for cell in cells)
    end = min((column.left for column in columns if column.left > left and column.name != name), default=1.0)
    part = cells[:1]
    for cell in cells[1:]:
        if name != "description" or part[-1].right < end - _WRAPPED or ":" in cell.text:
            break
        part.append(cell)
    return part


def _value(name: str, value: Decimal, currency: str) -> str:
    plain = f"{value.normalize():f}"
    if LINE_COLUMNS[name] != "amount":
        return plain
    decimals = len(plain.partition(".")[2])
    return f"{value:.{max(decimals, 2)}f} {currency}".strip()


def _cell(item: Item, cells: list[Cell], text: str, value: str | None) -> dict[str, Any]:
    words: list[Word] = [word for cell in cells for word in cell.words]
    box: Box | None = around(words)
    return {"text": text, "value": text if value is None else value, "page": item.page, "box": box}


def total(table: dict[str, Any] | None) -> Decimal | None:
    """Return the sum of the amounts of all lines, or None if one has no amount."""
    if table is None:
        return None
    names = [column["name"] for column in table["columns"]]
    if "amount" not in names:
        return None
    values = [row[names.index("amount")]["value"] for row in table["rows"]]
    return None if None in values else sum((Decimal(value.partition(" ")[0]) for value in values), Decimal())
