"""Divides documents without pages: at page breaks of the document, otherwise between paragraphs."""

from collections.abc import Iterator

from ade_extractor.limits import MOST_CELLS, MOST_CHARACTERS
from ade_extractor.pages import Page, Reading, Table
from ade_extractor.text import clean
from ade_extractor.trouble import too_large

# The text of a printed page.
PAGE_CHARACTERS = 3000
# Deeper tables are layout, and copying their text outwards at each level would cost quadratic time.
MOST_NESTED_TABLES = 20
_BORDERS = ("\n\n", "\n", ". ", " ")


class Paginator:
    def __init__(self) -> None:
        self._pages: list[Page] = []
        self._characters = 0
        self._cells = 0
        self._begin()

    def _begin(self) -> None:
        self._text: list[str] = []
        self._length = 0
        self._tables: list[Table] = []
        self._images = 0
        self._in_table = False

    def paragraph(self, text: str) -> None:
        self._in_table = False
        text = clean(text).strip("\n")
        if not text.strip():
            return
        for piece in pieces(text):
            self._add(piece, "\n\n")

    def row(self, cells: list[str]) -> None:
        """Add a row of a table. A row longer than a page is layout, so its text continues on the next pages."""
        cells = [clean(cell) for cell in cells]
        self._cells += len(cells)
        if self._cells > MOST_CELLS:
            raise too_large("This document", f"it has more than {MOST_CELLS:,} cells")
        line = "\t".join(cells).rstrip()
        if len(line) <= PAGE_CHARACTERS:
            self._make_room(line)
        separator = "\n" if self._in_table else "\n\n"
        if not self._in_table:
            self._tables.append(Table([]))
        self._tables[-1].rows.append(cells)
        self._in_table = True
        for piece in pieces(line):
            self._add(piece, separator)

    def end_table(self) -> None:
        self._in_table = False

    def image(self) -> None:
        self._images += 1

    def page_break(self) -> None:
        """Start a new page. Empty pages are left out."""
        if self._text or self._images:
            number = len(self._pages) + 1
            self._pages.append(Page(number, "".join(self._text), tables=self._tables, images=self._images))
        self._begin()

    def reading(self, first: int, last: int) -> Reading:
        self.page_break()
        pages = self._pages or [Page(1, "")]
        return Reading(len(pages), pages[max(first - 1, 0) : last])

    def _make_room(self, text: str) -> None:
        if self._text and self._length + len(text) > PAGE_CHARACTERS:
            self.page_break()

    def _add(self, text: str, separator: str) -> None:
        self._make_room(text)
        self._characters += len(text)
        if self._characters > MOST_CHARACTERS:
            raise too_large("This document", f"it has more than {MOST_CHARACTERS:,} characters of text")
        if self._text:
            self._text.append(separator)
        self._text.append(text)
        self._length += len(text) + len(separator)


class Flow:
    """Collects paragraphs and tables from markup, however deeply they are nested."""

    def __init__(self) -> None:
        self.pages = Paginator()
        self._words: list[str] = []
        self._tables: list[_OpenTable] = []
        self._too_deep = 0

    def text(self, text: str) -> None:
        self._words.append(text)

    def end_paragraph(self) -> None:
        text = "".join(self._words).strip()
        self._words = []
        if not text:
            return
        if self._tables and self._tables[-1].cell is not None:
            self._tables[-1].cell.append(text)
        else:
            self.pages.paragraph(text)

    def page_break(self) -> None:
        self.end_paragraph()
        if not self._tables:
            self.pages.page_break()

    def start_table(self) -> None:
        self.end_paragraph()
        if len(self._tables) < MOST_NESTED_TABLES:
            self._tables.append(_OpenTable())
        else:
            self._too_deep += 1

    def start_row(self) -> None:
        self.end_row()

    def start_cell(self) -> None:
        self.end_cell()
        if self._tables and not self._too_deep:
            self._tables[-1].cell = []

    def end_cell(self) -> None:
        self.end_paragraph()
        if self._tables and not self._too_deep and (cell := self._tables[-1].cell) is not None:
            self._tables[-1].row.append("\n".join(cell))
            self._tables[-1].cell = None

    def end_row(self) -> None:
        self.end_cell()
        if not self._tables or self._too_deep or not (row := self._tables[-1].row):
            return
        self._tables[-1].row = []
        if len(self._tables) == 1:
            self.pages.row(row)
        elif (outer := self._tables[-2].cell) is not None:
            outer.append("\t".join(row).strip())
        else:
            self.pages.paragraph("\t".join(row))

    def end_table(self) -> None:
        self.end_row()
        if self._too_deep:
            self._too_deep -= 1
        elif self._tables:
            self._tables.pop()
            if not self._tables:
                self.pages.end_table()

    def reading(self, first: int, last: int) -> Reading:
        while self._tables:
            self.end_table()
        self.end_paragraph()
        return self.pages.reading(first, last)


class _OpenTable:
    def __init__(self) -> None:
        self.row: list[str] = []
        # None between cells.
        self.cell: list[str] | None = None


def pieces(text: str) -> Iterator[str]:
    """Yield parts of at most a page, cut at the best border available."""
    start = 0
    while len(text) - start > PAGE_CHARACTERS:
        end = start + PAGE_CHARACTERS
        # Do not cut in the first half, because a short part would waste the page.
        cuts = (text.rfind(border, start + PAGE_CHARACTERS // 2, end) + len(border) for border in _BORDERS)
        cut = next((cut for cut in cuts if cut > start + PAGE_CHARACTERS // 2), end)
        yield text[start:cut].strip("\n")
        start = cut
    if text[start:].strip():
        yield text[start:].strip("\n")
