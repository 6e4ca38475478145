"""Checks uploads: the body must be a form with one file of an allowed size in the right field."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest

from api.errors import Problem
from documents import intake, uploads

FORM = "multipart/form-data"
# Django pages add this field to every form.
_OF_PAGES = {"csrfmiddlewaretoken"}


def problem_of(request: HttpRequest, places: Iterable[Sequence[Any]]) -> Problem | None:
    """Explain why the file is missing at one of these places in the request. Return None if it simply was not sent."""
    if not any(place and place[0] == "file" for place in places):
        return None
    if request.content_type != FORM:
        message = f"Unsupported content type {request.content_type or '(none)'}. Use {FORM}."
        return Problem("unsupported_media_type", message)
    return too_large() if uploads.was_too_large(request) else None


def check(request: HttpRequest, *names: str) -> None:
    """Raise Problem unless the form has exactly one file, in the field `file`, and no values except those with these
    names.
    """
    if uploads.was_too_large(request):
        raise too_large()
    file_fields = [name for name, files in request.FILES.lists() for _ in files]
    if file_fields != ["file"]:
        message = f"The form must have exactly one file, in the field file. Files found: {len(file_fields)}."
        raise Problem("invalid_request", message, {"files": file_fields[:20]})
    if unknown := sorted(set(request.POST) - {*names, *_OF_PAGES}):
        message = f"Unknown field {unknown[0]!r}. Known fields: {', '.join(names)}."
        raise Problem("invalid_request", message, {"unknown": unknown[:20]})


def sha256_of(file: "UploadedFile[bytes]", *values: object) -> str:
    """Return a hash of the file and the values that were sent with it."""
    digest = hashlib.sha256(repr((file.name, file.content_type, *values)).encode())
    for data in file.chunks():
        digest.update(data)
    return digest.hexdigest()


def too_large() -> Problem:
    return Problem("too_large", str(intake.too_large()))
