"""The fields of a document as pages show them: uncertain fields first, each with its box on the page image."""

from dataclasses import dataclass
from math import isfinite
from typing import Any

from ade_understanding.vocabulary import label_of
from documents import fields
from documents.fields import FieldRow

# Width and height of the SVG overlay, which the browser scales to the size of the page image.
SIDE = 1000
# Smallest size of a box, and the margin around it. Even a box as thin as a line can be seen and clicked, without
# covering its neighbours.
LEAST, AROUND = 6.0, 2.0
# Longer and multi-line values are edited in a larger input.
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
    # Position of the field in the document, whatever the order of the table.
    number: int
    row: FieldRow
    box: Box | None

    @property
    def key(self) -> str:
        """Return a key that stays the same when the page reloads its parts, so that a half-typed correction stays with
        its field.
        """
        if self.row.id is not None:
            return f"f{self.row.id}"
        return f"c{self.row.correction.id}" if self.row.correction else f"n{self.number}"

    @property
    def is_unsure(self) -> bool:
        """Return whether the value is unsure or in conflict, and no person has corrected or confirmed it."""
        return self.row.to_review

    @property
    def other_count(self) -> int:
        return len(self.row.others)

    @property
    def tone(self) -> str:
        return "good" if self.row.is_corrected else "warn" if self.is_unsure else "busy"

    @property
    def is_long(self) -> bool:
        return is_long(self.row.value)

    @property
    def label(self) -> str:
        """Return the label of the box for screen readers."""
        return f"{label_of(self.row.name)}: {self.row.value[:LONG] or 'empty'}"


def is_long(text: str) -> bool:
    return len(text) > LONG or "\n" in text


def lines_of(document_id: int) -> tuple[list[Line], list[Line]]:
    """Return the fields of a document, uncertain ones first, and what was also found."""
    rows = fields.of_document(document_id)
    lines = [Line(number, row, box_of(row.box)) for number, row in enumerate(rows, 1)]
    found = [line for line in lines if not line.row.also_found]
    return sorted(found, key=lambda line: not line.is_unsure), lines[len(found) :]


def box_of(shares: Any) -> Box | None:
    """Return the box of a field, or None if the stored value is not valid."""
    if not isinstance(shares, list) or len(shares) != 4:
        return None
    if not all(isinstance(share, int | float) and isfinite(share) and 0 <= share <= 1 for share in shares):
        return None
    left, top, right, bottom = shares
    x, width = _along(min(left, right), max(left, right))
    y, height = _along(min(top, bottom), max(top, bottom))
    return Box(x, y, width, height)


def _along(first: float, last: float) -> tuple[str, str]:
    length = max((last - first) * SIDE + 2 * AROUND, LEAST)
    start = (first + last) / 2 * SIDE - length / 2
    return f"{start:.1f}", f"{length:.1f}"
