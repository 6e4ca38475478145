"""Serves a page of a file as an image to users who may see the file."""

import structlog
from django.http import Http404, HttpResponse

from documents import previews
from documents.models import Document

# The image never changes, but it is cached only briefly, because the user's access may end.
CACHE_SECONDS = 300
RETRY_SECONDS = 3
# No document has more pages. This limits requests for documents whose number of pages is not known yet.
LAST_PAGE = 20_000
_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
# Shown instead of a missing image, with status 200: a browser logs errors of images only in its developer console,
# where users don't see them. The page explains the reason in words.
NO_PICTURE = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="400" viewBox="0 0 1000 400">'
    b'<rect width="1000" height="400" fill="#eef1f4"/>'
    b'<text x="500" y="210" fill="#535f6b" font-family="sans-serif" font-size="32" text-anchor="middle">'
    b"This page cannot be shown. Reload to see why.</text></svg>"
)

log = structlog.get_logger(__name__)


def document_response(document: Document, number: int) -> HttpResponse:
    last = LAST_PAGE if document.pages is None else document.pages
    if not previews.can_draw(document) or not 1 <= number <= last:
        raise Http404("No such page, or this file type has no page images.")
    return response(document, number)


def response(stored: previews.StoredFile, number: int) -> HttpResponse:
    """Return the response with the image of a page. The file must have a type that can be rendered."""
    if not 1 <= number <= LAST_PAGE:
        raise Http404("No such page.")
    try:
        content = previews.picture(stored, number)
        content_type, cache = "image/png", f"private, max-age={CACHE_SECONDS}"
    except previews.Busy:
        headers = {"Retry-After": str(RETRY_SECONDS), "Cache-Control": "no-store"}
        message = "Other pages are being drawn. Try again in a few seconds.\n"
        return HttpResponse(message, "text/plain", 503, headers=headers)
    except previews.NoSuchPage as error:
        raise Http404(str(error)) from error
    except previews.PreviewFailed as error:
        log.info("page_images.not_drawn", file=str(stored.file), page=number, reason=str(error))
        content, content_type, cache = NO_PICTURE, "image/svg+xml", "no-store"
    return HttpResponse(content, content_type, headers=_HEADERS | {"Cache-Control": cache})
