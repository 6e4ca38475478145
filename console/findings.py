"""The fields that a run reported, as its page shows them: a short value in the table, the full value below the table,
and the box on the page image.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from console import boxes, lists, pretty
from console.boxes import Box
from documents import previews
from documents.models.fields import UNSURE_BELOW
from documents.retention import purged_on
from runs.models import Run, RunField

SHORT = 300
MOST_WHOLE = 10_000
# Longer values are not indented, because there may be a hundred fields on a page.
MOST_INDENTED = 20_000


@dataclass(frozen=True)
class Finding:
    number: int
    name: str
    # `short` is truncated for the table; `whole` has the full value if it doesn't fit there.
    short: str
    whole: str
    confidence: float | None
    page: int | None
    box: Box | None

    @property
    def tone(self) -> str:
        return "warn" if self.confidence is not None and self.confidence < UNSURE_BELOW else "busy"

    @property
    def label(self) -> str:
        """Return the label of the box for screen readers."""
        return f"{self.name}: {self.short[: boxes.LONG]}"


@dataclass(frozen=True)
class Sheet:
    """One page of the document, on which the boxes of the page's fields are drawn."""

    number: int
    pages: Sequence[int]
    picture: str
    why_not: str
    lines: Sequence[Finding]
    # Whether the user chose this page. If so, the sheet is open when the page loads.
    is_chosen: bool


def findings_of(fields: Sequence[RunField]) -> list[Finding]:
    return [
        Finding(number, field.name, *_short_and_whole(field), field.confidence, field.page, boxes.box_of(field.box))
        for number, field in enumerate(fields, 1)
    ]


def sheet_of(request: HttpRequest, run: Run, findings: Sequence[Finding]) -> Sheet | None:
    """Return the chosen page or, by default, the first page with boxes. Return None if no field has a box, or if the
    document has no page images.
    """
    pages = sorted({each.page for each in findings if each.page and each.box})
    document = run.input_document
    if not pages or not (document.purged_at or previews.can_draw(document)):
        return None
    chosen = lists.number(request.GET.get("page"))
    number = chosen if chosen in pages else pages[0]
    is_gone = f"The document was {purged_on(document)}." if document.purged_at else ""
    return Sheet(
        number=number,
        pages=pages,
        picture=reverse("console:document_page", args=[document.pk, number]),
        why_not=is_gone or previews.failure_reason(document, number),
        lines=[each for each in findings if each.box and each.page == number],
        is_chosen=chosen is not None,
    )


def _short_and_whole(field: RunField) -> tuple[str, str]:
    if field.value is None:
        return "–", ""
    if isinstance(field.value, str):
        text = pretty.plain(field.value[: MOST_WHOLE + 1])
        return _cut(text, SHORT), _cut(text, MOST_WHOLE) if len(text) > SHORT else ""
    line = json.dumps(field.value, ensure_ascii=False)
    if not (isinstance(field.value, dict | list) and field.value):
        return _cut(line, SHORT), ""
    whole = pretty.indented(line, MOST_WHOLE) if len(line) <= MOST_INDENTED else None
    return _cut(pretty.plain(line[: SHORT + 1]), SHORT), pretty.plain(whole or _cut(line, MOST_WHOLE))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
