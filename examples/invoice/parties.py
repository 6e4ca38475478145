"""Finds the seller and the buyer."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from findings import Finding, Findings, best
from labels import Labels
from layout import Cell, Layout, Line, Page

_LEGAL_FORM = re.compile(
    r"(?<![\w.])(?:GmbH|AG|KG|OHG|GbR|UG|e\. ?K\.|e\. ?V\.|eG|SE|Ltd|Limited|LLP|LLC|PLC|Inc|Corp|B\.?V\.?|N\.?V\.?"
    r"|SARL|SASU?|EURL|S\.?A\.?|S\.?[Rr]\.?[Ll]\.?|S\.?p\.?A\.?|S\.?L\.?|Oy|AB|A/S|ApS|sp\. z o\.o\.)(?![\w/])"
)
_POSTCODE = re.compile(
    r"(?:^|[ ,·•|-])(?:[A-Z]{1,2}-)?\d{4,5} [A-ZÀ-Ý][\w.-]+"  # 01069 Dresden, 1010 Wien, A-1010 Wien
    r"|\b\d{4} ?[A-Z]{2} [A-Z]\w+"  # 1012 AB Amsterdam
    r"|\b[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}\b"  # SW1A 1AA
    r"|\b[A-Z]{2} \d{5}(?:-\d{4})?\b"  # NY 10001
)
_SENDER_SEPARATORS = re.compile(r"\s+[·•|–*-]\s+|, ")
_STREET = re.compile(r"\d+ ?[a-z]?$|^\d+[a-z]? |^(?:P\.? ?O\.? Box|Postfach)", re.IGNORECASE)
_TITLES = re.compile(
    r"^(?:tax )?invoice|^(?:sammel|abschlags|schluss)?rechnung\b|^facture|^factuur|^fattura", re.IGNORECASE
)
# The upper part of a page, which contains letterheads and addresses.
_TOP = 0.45
_ALIGNED = 3.0
_CLOSE = 0.9
_LONGEST_NAME = 80


@dataclass
class Block:
    """Cells below each other with the same left or right edge and little distance, such as an address."""

    page: int
    cells: list[tuple[Line, Cell]]

    def takes(self, line: Line, cell: Cell) -> bool:
        above = self.cells[-1][1].box
        is_close = cell.box.top - above.bottom < _CLOSE * min(above.height, cell.box.height)
        is_aligned = min(abs(above.left - cell.box.left), abs(above.right - cell.box.right)) < _ALIGNED
        return is_aligned and line.page == self.page and cell.box.top >= above.top and is_close

    def holds(self, finding: Finding | None) -> bool:
        if finding is None or finding.box is None or finding.page != self.page:
            return False
        box = finding.box
        return any(
            cell.box.left <= box.left and box.right <= cell.box.right and cell.box.middle == box.middle
            for _, cell in self.cells
        )


def find_parties(labels: Labels) -> Findings:
    layout = labels.layout
    blocks = list(_blocks(layout))
    buyer_by_label = best(list(_labelled(labels, "buyer")))
    sellers = [
        *_labelled(labels, "seller"),
        *(replace(each, confidence=0.75) for each in _labelled(labels, "account_holder")),
        *_senders_and_companies(layout),
        *_letterheads(layout, blocks),
    ]
    seller = best([each for each in sellers if not _same(each, buyer_by_label)])
    buyer = buyer_by_label or best(list(_addressed(layout, blocks, seller)))
    findings = {"seller_name": seller, "buyer_name": buyer}
    return {name: finding for name, finding in findings.items() if finding}


def assign_vat_ids(labels: Labels, buyer: Finding | None, vat_ids: list[Finding]) -> Iterator[tuple[str, Finding]]:
    """Yield each VAT ID with a field name.

    The buyer's ID has its own label or is in the address; all others are the seller's.
    """
    addresses = [block for block in _blocks(labels.layout) if block.holds(buyer)]
    for finding in vat_ids:
        if label := labels.beside("buyer_vat_id", finding.page, finding.box):
            yield "buyer_vat_id", finding.raised(0.3, f"next to “{label.text}”")
        elif any(block.holds(finding) for block in addresses):
            yield "buyer_vat_id", finding.lowered(0.1, "in the buyer's address")
        else:
            yield "seller_vat_id", finding.lowered(0.1, "not in the buyer's address")


def _labelled(labels: Labels, kind: str) -> Iterator[Finding]:
    """Yield names below a label that stands alone, otherwise next to it."""
    for label in labels.of(kind):
        places = list(label.places(labels.layout))
        for place in reversed(places):
            start = place.start + len(place.text) - len(place.text.lstrip(" :"))
            name = place.line.text[start : place.end].split("  ")[0].strip()
            if name and _is_name(name):
                yield _name_in(place.line, name, start, 0.85, place.how)
                break


def _name_in(line: Line, name: str, start: int, confidence: float, because: str) -> Finding:
    return Finding(name, confidence, (because,), line.page, line.box_of(start, start + len(name)))


def _senders_and_companies(layout: Layout) -> Iterator[Finding]:
    """Yield names with the legal form of a company, and names from return address lines.

    These have the name, street and town of the sender in one small line.
    """
    for line in layout.lines:
        for cell in line.cells:
            parts = _SENDER_SEPARATORS.split(cell.text)
            if not _is_name(parts[0]):
                continue
            if len(parts) >= 3 and _POSTCODE.search(cell.text):
                yield _of_cell(line, cell, parts[0], 0.8, "at the start of a sender's line")
            if _LEGAL_FORM.search(parts[0]):
                near_edge = not _TOP < cell.box.middle / layout.page_of(line).height < 0.85
                confidence = 0.6 if near_edge else 0.4
                yield _of_cell(line, cell, parts[0], confidence, "a name with the legal form of a company")


def _letterheads(layout: Layout, blocks: list[Block]) -> Iterator[Finding]:
    """Yield the name in the largest letters at the top, and the name of the first address."""
    first_page = layout.pages[0]
    cells = [(line, cell) for line in first_page.lines for cell in line.cells if _is_high(first_page, cell)]
    names = [(line, cell) for line, cell in cells if _is_name(cell.text)]
    if names:
        line, cell = max(names, key=lambda each: each[1].box.height)
        yield _of_cell(line, cell, cell.text, 0.4, "in the largest letters at the top")
    for block in blocks[:1]:
        line, cell = block.cells[0]
        if _is_address(block) and _is_name(cell.text):
            yield _of_cell(line, cell, cell.text, 0.5, "the first address of the page")


def _addressed(layout: Layout, blocks: list[Block], seller: Finding | None) -> Iterator[Finding]:
    """Yield the names of addresses at the top of the first page, except the seller."""
    for block in blocks:
        lines = [(line, cell) for line, cell in block.cells if not _is_sender(cell)]
        if block.page == 1 and lines and _is_address(block) and _is_high(layout.pages[0], lines[0][1]):
            line, cell = lines[0]
            buyer = _of_cell(line, cell, cell.text, 0.7, "the first line of an address")
            if _is_name(cell.text) and not _same(buyer, seller):
                yield buyer.raised(0.4, "below the sender's line") if len(lines) < len(block.cells) else buyer


def _of_cell(line: Line, cell: Cell, name: str, confidence: float, because: str) -> Finding:
    start = line.text.index(cell.text)
    return _name_in(line, name, start, confidence, because)


def _blocks(layout: Layout) -> Iterator[Block]:
    for page in layout.pages:
        blocks: list[Block] = []
        for line in page.lines:
            for cell in line.cells:
                taker = next((block for block in reversed(blocks) if block.takes(line, cell)), None)
                if taker:
                    taker.cells.append((line, cell))
                else:
                    blocks.append(Block(page.number, [(line, cell)]))
        yield from blocks


def _is_high(page: Page, cell: Cell) -> bool:
    return cell.box.bottom < _TOP * page.height


def _is_sender(cell: Cell) -> bool:
    return len(_SENDER_SEPARATORS.split(cell.text)) >= 3


def _is_address(block: Block) -> bool:
    own_lines = [cell.text for _, cell in block.cells if not _is_sender(cell)]
    return len(own_lines) >= 2 and any(_POSTCODE.search(text) for text in own_lines[1:])


def _is_name(text: str) -> bool:
    """Return whether the text may be a name: not a title, street, town, label or sentence."""
    if not 2 < len(text) <= _LONGEST_NAME or not text[0].isalnum() or "@" in text:
        return False
    is_sentence = text.endswith((".", ":")) and not _LEGAL_FORM.search(text)
    has_number = sum(character.isdigit() for character in text) > 4
    return not (is_sentence or has_number or any(other.search(text) for other in (_TITLES, _STREET, _POSTCODE)))


def _same(finding: Finding, other: Finding | None) -> bool:
    return other is not None and finding.value.casefold() == other.value.casefold()
