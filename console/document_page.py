"""One page of a document: image, fields and text."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from console import lists
from console.boxes import Line
from documents import previews
from documents.models import Document, DocumentChunk

MOST_CHUNKS = 40


@dataclass(frozen=True)
class DocumentPage:
    number: int
    # Number of the last page; None if not known yet.
    last: int | None
    # URL of the page image; empty for documents without images.
    picture: str
    # Why there is no image, if known.
    why_not: str
    lines: Sequence[Line]
    chunks: Sequence[DocumentChunk]
    has_more: bool

    @property
    def before(self) -> int:
        return self.number - 1

    @property
    def after(self) -> int:
        """Return the number of the next page, or 0 after the last one."""
        return self.number + 1 if self.number < (self.last or 1) else 0


def page_of(request: HttpRequest, document: Document, lines: Sequence[Line]) -> DocumentPage:
    """Return the requested page, or the nearest existing one."""
    requested = lists.number(request.GET.get("page")) or 1
    number = max(1, min(requested, document.pages or 1))
    why_not = previews.failure_reason(document, number) if (has_looks := previews.can_draw(document)) else ""
    rows = DocumentChunk.objects.filter(document=document.pk, page=number).order_by("position")
    chunks = list(rows.only("position", "page", "text", "embedding_model")[: MOST_CHUNKS + 1])
    return DocumentPage(
        number=number,
        last=document.pages,
        picture=reverse("console:document_page", args=[document.pk, number]) if has_looks and not why_not else "",
        why_not=why_not,
        lines=[line for line in lines if line.box and line.row.page == number],
        chunks=chunks[:MOST_CHUNKS],
        has_more=len(chunks) > MOST_CHUNKS,
    )
