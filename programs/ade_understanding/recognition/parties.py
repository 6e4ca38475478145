"""Finds the seller and the buyer: by the heading of their section, above their address, or at the top of the page."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ade_understanding.recognition import values
from ade_understanding.recognition.candidates import Candidate
from ade_understanding.recognition.labelled import Labelled
from ade_understanding.recognition.labels import Label
from ade_understanding.recognition.languages import COUNTRIES, SALUTATIONS, SECTIONS, TITLES, WORD, normal, phrase
from ade_understanding.recognition.rows import Box, Cell, Word, around

PARTIES = ("seller", "buyer")
_LONGEST_HEADING = 60
_MOST_ROWS = 14
# Between two lines of a block, in multiples of their height; and how far their beginnings may be apart.
_LINE_GAP, _INDENT = 1.6, 0.03
_MOST_LINES = 8
# Between a label and its value, as a share of the page.
_WIDEST_PAIR = 0.4
_POSTCODE = re.compile(
    r"(?:[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}|(?:[A-Z]{1,3}[ -]{1,3})?"
    r"(?:\d{5}|\d{4}(?: ?[A-Z]{2})?|\d{2}-\d{3}|\d{4}-\d{3}|\d{3} \d{2}))[ ,]+"
    r"(?=[^\W\d_])[^\W\d_a-z]"
)
_POSTCODE_LAST = re.compile(r"(?:^|.*[ ,])(?:[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}|[A-Z]{2} \d{5})$")
_STREET = re.compile(r".*[^\W\d_]{3,}.*\d|^\d+[a-zA-Z]?,? .*[^\W\d_]{3,}")
# Between the name, the street and the city in the line of the sender.
_BETWEEN = re.compile(r"\s*[,;·•|–]\s*|\s+-\s+")
# Legal forms of companies, and words that only occur in the names of shops.
LEGAL_FORMS = re.compile(
    r"\b(?:AG|KG|OHG|UG|GbR|e\.? ?V\.?|e\.? ?K\.?|a\.G|eG|Company|Co|S\.?A\.?R\.?L|SAS|S\.?A\.?S|SA|S\.A|S\.?n\.?c"
    r"|S\.?a\.?s|B\.?V|N\.?V|V\.?O\.?F|S\.?L\.?U?|sp\. ?j|SDN|BHD|S/B|ENTERPRISES?|TRADING|RESTAURANT|RESTORAN|STORES?"
    r"|SUPERMARKET|HYPERMARKET|MARKET|HARDWARE|CAFE|BAKERY|STATIONERY|MART"
    r"|(?i:gmbh|mbh|ltd|limited|llp|llc|inc|corp|plc|sarl|eurl|s\.?p\.?a|s\.?r\.?l|lda|unipessoal)"
    r"|(?i:sp\. ?z ?o\. ?o))\b\.?"
)
_REGISTRATION = re.compile(r"\s*\((?=[^()]*\d)[\dA-Za-z .:-]{4,20}\)$")
_NOISE = re.compile(r"(?:GLN|ILN|Tel|Fax|www\.|https?:|\+?\d[\d /-]*$)", re.IGNORECASE)
# Fields that may stand within the section of a party.
_PARTY_LABELS = frozenset(
    {"vat_id", "buyer_vat_id", "tax_number", "email", "phone", "fax", "customer_number", "order_number"}
    | {"seller", "buyer", "iban", "bic"}
)


class Section(NamedTuple):
    name: str
    text: str
    row: int
    cell: Cell
    # The first row that no longer belongs to it, and its sides.
    end: int
    left: float
    right: float


class Block(NamedTuple):
    """Lines of an address, from the name to the city."""

    lines: list[Cell]
    first_row: int
    section: Section | None = None


class Parties:
    def __init__(self, labelled: Labelled) -> None:
        self.labelled, self.rows, self.page = labelled, labelled.rows, labelled.page
        self.sections = list(self._sections())

    def section_at(self, row: int, cell: Cell) -> Section | None:
        """Return the section that a cell belongs to."""
        for section in self.sections:
            if section.row <= row < section.end and section.left <= cell.left < section.right:
                return section
        return None

    def candidates(self) -> Iterator[Candidate]:
        for section in self.sections:
            if section.name in PARTIES:
                yield from self._of_section(section)
        for number, row in enumerate(self.rows.rows):
            sender = _sender(row) or next((parts for cell in row if (parts := _sender([cell]))), None)
            if sender and not self.section_at(number, row[0]):
                yield Candidate("seller", sender[0], "text", self.page, _box(row[:1]), "sender", "", _form(sender[0]))
                address = Candidate("seller_address", ", ".join(sender[1:]), "text", self.page, _box(row), "sender")
                address.owner = sender[0]
                yield address
                continue
            for cell in row:
                if _is_city(cell):
                    yield from self._of_block(self._block_above(number, cell))
        yield from self._letterhead()

    def _sections(self) -> Iterator[Section]:
        heads = [
            (number, cell, name)
            for number, row in enumerate(self.rows.rows)
            for cell in row
            if len(cell.text) <= _LONGEST_HEADING and (name := _heading(cell.text))
        ]
        for number, cell, name in heads:
            beside = [other for row, other, _ in heads if row == number and other.left > cell.left + _INDENT]
            right = min((other.left - _INDENT for other in beside), default=2.0)
            left = cell.left - _INDENT
            below = [
                row for row, other, _ in heads if row > number and (left <= other.left < right or other.left <= left)
            ]
            end = self._end(number, min([number + _MOST_ROWS, len(self.rows.rows), *below]), left, right)
            yield Section(name, cell.text.strip(" :"), number, cell, end, left, right)

    def _end(self, first: int, last: int, left: float, right: float) -> int:
        """Return where a section ends: below its city, before the first gap that is wider than those above it."""
        has_city, widest, before = False, 0.0, None
        for number in range(first, last):
            cell = next((each for each in self.rows.rows[number] if left <= each.left < right), None)
            if cell is None:
                continue
            if before is not None:
                gap = cell.top - before.bottom
                if has_city and gap > 1.4 * widest and gap > 0.5 * cell.height:
                    return number
                widest = max(widest, gap)
            has_city = has_city or any(_is_city(each) for each in self.rows.rows[number])
            before = cell
        return last

    def _of_section(self, section: Section) -> Iterator[Candidate]:
        lines = self._beside(section)
        named: list[Cell] = []
        last = section.cell
        for number in range(section.row + 1, section.end):
            row = self.rows.rows[number]
            cells = [cell for cell in row if section.left <= cell.left < section.right]
            if not cells or (abs(cells[0].left - last.left) > 3 * _INDENT and not self._continues(cells[0], lines)):
                # A row of another column.
                if row[0].top > last.bottom + 3 * last.height:
                    break
                continue
            if cells[0].top > last.bottom + 4 * max(last.height, section.cell.height):
                break
            last = cells[0]
            kinds = SECTIONS.get(phrase(last.text.partition(":")[0]), ())
            if len(cells) > 1 and cells[1].left - last.right < _WIDEST_PAIR and "party_name" in kinds:
                named = self._value(number, cells[1])
                continue
            if len(cells) > 1 and named and "party_address" in kinds:
                lines = self._value(number, cells[1])
                break
            known = self._label(number, last)
            is_part = not {"party_address", "party_number"}.isdisjoint(kinds)
            if known is not None and known.is_known and not is_part and not known.names() & _PARTY_LABELS:
                break
            if known is None and not _NOISE.match(last.text) and not (len(cells) > 1 and ":" in last.text):
                lines.append(last)
            if len(lines) >= _MOST_LINES or _is_city(last):
                break
        lines = named + lines if named else lines
        if lines:
            signs = {"city"} if any(map(_is_city, lines)) else set()
            signs |= {"named"} if named else set()
            yield from self._name_and_address(section.name, lines, "section", signs, section.text, len(named))

    def _beside(self, section: Section) -> list[Cell]:
        """Return the name that follows a heading in its row, as in "Bill to: Orchard Ltd"."""
        _, colon, after = section.cell.text.partition(":")
        words = section.cell.words
        first = next((at for at, word in enumerate(words) if ":" in word[0]), 0) + 1
        if not colon or not after.strip() or not words[first:]:
            return []
        return [Cell(after.strip(), words[first][1], words[-1][3], words[first:])]

    def _continues(self, cell: Cell, lines: list[Cell]) -> bool:
        return bool(lines) and abs(cell.left - lines[-1].left) <= _INDENT

    def _value(self, number: int, cell: Cell) -> list[Cell]:
        """Return the lines of a value: its label may be beside the first or beside the middle of them."""
        rows = self.rows.rows
        first, *others = rows[number - 1]
        lines = [cell]
        if not others and abs(first.left - cell.left) < _INDENT / 2 and cell.top - first.bottom < cell.height:
            lines.insert(0, first)
        for row in rows[number + 1 : number + 4]:
            if abs(row[0].left - cell.left) > _INDENT / 2 or row[0].top > lines[-1].bottom + _LINE_GAP * cell.height:
                break
            lines.append(row[0])
        return lines

    def _label(self, number: int, cell: Cell) -> Label | None:
        """Return the label of a cell, unless it may be the beginning of a name such as "Order of Saint John"."""
        label = self.labelled.labels.get((number, self.rows.rows[number].index(cell)))
        if label is None:
            return None
        rest = cell.text[label.end :]
        return label if label.stands_out or not rest or any(map(str.isdigit, rest)) else None

    def _block_above(self, number: int, city: Cell) -> Block:
        lines, row = [city], number
        for above in range(number - 1, max(number - _MOST_LINES, -1), -1):
            cell = next((each for each in self.rows.rows[above] if abs(each.left - lines[0].left) < _INDENT / 2), None)
            if cell is None:
                if lines[0].top - self.rows.rows[above][0].bottom > _LINE_GAP * lines[0].height:
                    break
                continue
            if lines[0].top - cell.bottom > _LINE_GAP * max(cell.height, lines[0].height) or _is_city(cell):
                break
            if _heading(cell.text) or self._label(above, cell) or _sender([cell]) or _sender(self.rows.rows[above]):
                break
            lines.insert(0, cell)
            row = above
            if phrase(cell.text) in SALUTATIONS:
                break
        return Block(lines, row, self.section_at(row, lines[0]))

    def _of_block(self, block: Block) -> Iterator[Candidate]:
        if block.section or len(block.lines) < 2:
            return
        first = block.lines[0]
        signs = set()
        if first.left < 0.2 and 0.08 < first.top < 0.4 and self.page == 1:
            signs.add("window")
        if first.top < 0.12:
            signs.add("top")
        if first.top > 0.75:
            signs.add("bottom")
        if normal(WORD.findall(first.text)[0] if WORD.findall(first.text) else "") in SALUTATIONS:
            signs.add("salutation")
        for name in PARTIES:
            yield from self._name_and_address(name, block.lines, "address", set(signs), "")

    def _letterhead(self) -> Iterator[Candidate]:
        """Yield lines at the top of the first page that may be the name of a company."""
        if self.page != 1:
            return
        heights = sorted(row[0].height for row in self.rows.rows)
        usual = heights[len(heights) // 2] if heights else 0.0
        seen = 0
        for number, row in enumerate(self.rows.rows):
            for cell in row:
                text = cell.text
                if not any(map(str.isalpha, text)) or len(text) > 80:
                    continue
                has_form = LEGAL_FORMS.search(text) is not None
                if seen >= 6 and not has_form:
                    continue
                seen += 1
                if self._label(number, cell) or phrase(text) in TITLES or _heading(text):
                    continue
                if _is_city(cell) or _sender(row) or next(values.dates(text, None), None) or _NOISE.match(text):
                    continue
                signs = {f"line {min(seen, 4)}"}
                signs |= {"legal form"} if has_form else set()
                signs |= {"large"} if usual and cell.height > 1.25 * usual else set()
                signs |= {"top"} if cell.top < 0.12 else {"bottom"} if cell.top > 0.8 else set()
                if has_form and len(WORD.findall(text)) > 9:
                    continue
                if self._is_only_form(text):
                    signs.add("only form")
                text = _REGISTRATION.sub("", text)
                name, *rest = _BETWEEN.split(text)
                # The street may follow the name.
                if has_form and rest and LEGAL_FORMS.search(name) and any(map(str.isdigit, rest[0])):
                    text = name
                yield self._party("seller", text, cell, "letterhead", signs)
                above = self.rows.rows[number - 1][0] if number and len(self.rows.rows[number - 1]) == 1 else None
                if has_form and above is not None and self._joins(above, cell):
                    value = f"{_REGISTRATION.sub('', above.text)} {text}"
                    if self._is_only_form(text):
                        signs.discard("only form")
                    yield Candidate(
                        "seller", value, "text", self.page, _box([above, cell]), "letterhead", "", {*signs, "two lines"}
                    )

    def _is_only_form(self, text: str) -> bool:
        """Return whether a line is only the legal form of the name above it."""
        return not any(map(str.isalpha, LEGAL_FORMS.sub("", text)))

    def _joins(self, above: Cell, cell: Cell) -> bool:
        """Return whether the name of a company begins in the line above its legal form."""
        near = cell.top - above.bottom < cell.height and abs(above.left - cell.left) < _INDENT / 2
        return near and not LEGAL_FORMS.search(above.text) and not any(map(str.isdigit, above.text)) and above.top < 0.2

    def _name_and_address(
        self, name: str, lines: list[Cell], how: str, signs: set[str], label: str, named: int = 0
    ) -> Iterator[Candidate]:
        lines = [line for line in lines if not _NOISE.match(line.text)][:_MOST_LINES]
        if not lines:
            return
        count = named or 1
        if len(lines) > 1 and not named:
            is_salutation = phrase(lines[0].text) in SALUTATIONS
            has_form = LEGAL_FORMS.search(lines[1].text) and not LEGAL_FORMS.search(lines[0].text)
            count = 2 if is_salutation or has_form else 1
        city = next((at for at, line in enumerate(lines) if _is_city(line)), None)
        if city == 1 and any(map(str.isdigit, lines[0].text)) and not LEGAL_FORMS.search(lines[0].text):
            # An address whose name stands elsewhere.
            yield self._address(name, lines[:3], 1, 0, how, signs, label)
            return
        head = lines[:count]
        value = " ".join(line.text for line in head).strip(" ,:")
        if LEGAL_FORMS.search(value):
            signs = signs | {"legal form"}
        if not any(map(str.isalpha, value)) or _is_city(lines[0]):
            return
        yield Candidate(name, value, "text", self.page, _box(head), how, label, set(signs))
        if city is not None and city >= count:
            address = self._address(name, lines, city, count, how, signs, label)
            address.owner = value
            yield address

    def _address(
        self, name: str, lines: list[Cell], city: int, count: int, how: str, signs: set[str], label: str
    ) -> Candidate:
        first = city - 1 if city > count or not count else city
        if first < city and not _STREET.match(lines[first].text):
            first = city
        last = city + 1
        if last < len(lines) and phrase(lines[last].text) in COUNTRIES:
            last += 1
        text = ", ".join(line.text.strip(" ,") for line in lines[first:last])
        box = _box(lines[first:last])
        owner = lines[0].text.strip(" ,:") if first else ""
        return Candidate(f"{name}_address", text, "text", self.page, box, how, label, set(signs), owner=owner)

    def _party(self, name: str, value: str, cell: Cell, how: str, signs: set[str]) -> Candidate:
        start = cell.text.index(value)
        if LEGAL_FORMS.search(value):
            signs = signs | {"legal form"}
        return Candidate(name, value, "text", self.page, cell.box(start, start + len(value)), how, "", signs)


def _box(cells: list[Cell]) -> Box | None:
    words: list[Word] = [word for cell in cells for word in cell.words]
    return around(words)


def _form(name: str) -> set[str]:
    return {"legal form"} if LEGAL_FORMS.search(name) else set()


def _sender(row: list[Cell]) -> list[str] | None:
    """Return the parts of a line with name, street and city, which stands above the address in a window."""
    parts = [part for cell in row for part in _BETWEEN.split(cell.text) if part]
    if not 3 <= len(parts) <= 6 or sum(map(len, parts)) > 150 or ":" in parts[0]:
        return None
    street = " ".join(parts[1:-1])
    has_street = any(map(str.isdigit, street)) and sum(map(str.isalpha, street)) > 2
    has_city = any(_POSTCODE.match(part) or _POSTCODE_LAST.match(part) for part in parts[2:])
    has_gap = any(right.left - left.right > _INDENT for left, right in pairwise(row))
    is_name = not any(map(str.isdigit, parts[0]))
    return parts if has_city and has_street and is_name and not has_gap else None


def _is_city(cell: Cell) -> bool:
    text = cell.text
    return len(text) < 70 and (_POSTCODE.match(text) is not None or _POSTCODE_LAST.match(text) is not None)


def _heading(text: str) -> str | None:
    """Return the section that a cell is the heading of."""
    head, colon, rest = text.partition(":")
    names = [name for name in SECTIONS.get(phrase(head), ()) if not name.startswith("party_")]
    if not names or any(map(str.isdigit, head)):
        return None
    # A label with its value is no heading, except "Bill to: Orchard Ltd".
    return names[0] if not rest.strip() or (colon and names[0] in PARTIES and not any(map(str.isdigit, rest))) else None
