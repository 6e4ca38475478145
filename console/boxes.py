"""The fields of a document as a page shows them: what somebody should look at first, and where on its page each is."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from documents import fields
from documents.fields import FieldRow
from documents.models.fields import UNSURE_BELOW

# Of the drawing, which lies over a page of any size.
SIDE = 1000
# So that what is as thin as a line can be seen and hit, and what is beside it not covered.
LEAST, AROUND = 6.0, 2.0
# Longer values, and those of several lines, are written into a larger box.
LONG = 60
MOST_SHOWN = 100


@dataclass(frozen=True)
class Box:
    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True)
class Line:
    # In the order of the document: it stays the same while the line moves up or down in the table.
    number: int
    row: FieldRow
    box: Box | None

    @property
    def key(self) -> str:
        """Of this field and no other, in any version of the page: what is being written of it stays with it."""
        if self.row.id is not None:
            return f"f{self.row.id}"
        return f"c{self.row.correction.id}" if self.row.correction else f"n{self.number}"

    @property
    def is_unsure(self) -> bool:
        """What the machine doubts, and nobody has looked at."""
        sure = self.row.confidence
        return self.row.correction is None and sure is not None and sure < UNSURE_BELOW

    @property
    def tone(self) -> str:
        return "good" if self.row.is_corrected else "warn" if self.is_unsure else "busy"

    @property
    def is_long(self) -> bool:
        return len(self.row.value) > LONG or "\n" in self.row.value

    @property
    def said(self) -> str:
        """Of its box, for whoever does not see it."""
        return f"{self.row.name}: {self.row.value[:LONG] or 'nothing'}"


def lines_of(document_id: int) -> list[Line]:
    """Those that somebody should look at come first."""
    rows = fields.of_document(document_id)
    lines = [Line(number, row, box_of(row.box)) for number, row in enumerate(rows, 1)]
    return sorted(lines, key=lambda line: not line.is_unsure)


def on_page(lines: Sequence[Line], page: int) -> list[Line]:
    return [line for line in lines if line.box and line.row.page == page]


def box_of(shares: Any) -> Box | None:
    """As a database may hold it; None for what is no box."""
    if not isinstance(shares, list) or len(shares) != 4 or not all(map(_is_share, shares)):
        return None
    left, top, right, bottom = shares
    x, width = _along(min(left, right), max(left, right))
    y, height = _along(min(top, bottom), max(top, bottom))
    return Box(x, y, width, height)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and isfinite(value) and 0 <= value <= 1


def _along(first: float, last: float) -> tuple[str, str]:
    length = max((last - first) * SIDE + 2 * AROUND, LEAST)
    start = (first + last) / 2 * SIDE - length / 2
    return f"{start:.1f}", f"{length:.1f}"
