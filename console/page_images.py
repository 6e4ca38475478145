"""Serves a page of a file as an image to users who may see the file."""

import structlog
from django.http import Http404, HttpResponse

from documents import previews
from documents.models import Document

# The image never changes, but the user's access may end.
KEPT_SECONDS = 300
COME_AGAIN_SECONDS = 3
# Limit for documents whose number of pages is not known yet. No document has more pages.
LAST_PAGE = 20_000
_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
# Served with status 200: browsers only log the errors of images in the console, where users don't see them. The page
# explains the reason in words.
NO_PICTURE = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="400" viewBox="0 0 1000 400">'
    b'<rect width="1000" height="400" fill="#eef1f4"/>'
    b'<text x="500" y="210" fill="#535f6b" font-family="sans-serif" font-size="32" text-anchor="middle">'
    b"This page cannot be shown. Reload to see why.</text></svg>"
)

log = structlog.get_logger(__name__)


def answer(document: Document, number: int) -> HttpResponse:
    if not previews.has_looks(document) or not 1 <= number <= last_page(document):
        raise Http404("No such page, or this file type has no page images.")
    return drawn(document, number)


def drawn(stored: previews.Stored, number: int) -> HttpResponse:
    """Return the image of a page. The file must be of a type that has page images."""
    if not 1 <= number <= LAST_PAGE:
        raise Http404("No such page.")
    try:
        return _image(previews.picture(stored, number), "image/png", f"private, max-age={KEPT_SECONDS}")
    except previews.Busy:
        headers = {"Retry-After": str(COME_AGAIN_SECONDS), "Cache-Control": "no-store"}
        return HttpResponse(
            "Other pages are being drawn. Try again in a few seconds.\n", "text/plain", 503, headers=headers
        )
    except previews.NoSuchPage as error:
        raise Http404(str(error)) from error
    except previews.NotDrawn as error:
        log.info("page_images.not_drawn", file=str(stored.file), page=number, reason=str(error))
        return _image(NO_PICTURE, "image/svg+xml", "no-store")


def last_page(document: Document) -> int:
    return LAST_PAGE if document.pages is None else document.pages


def _image(content: bytes, content_type: str, keep: str) -> HttpResponse:
    return HttpResponse(content, content_type, headers=_HEADERS | {"Cache-Control": keep})
