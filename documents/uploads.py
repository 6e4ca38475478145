"""Limits uploads: a web process keeps no more bytes of a request than the largest document may have."""

from typing import Any

from django.conf import settings
from django.core.files.uploadhandler import FileUploadHandler, SkipFile
from django.http import HttpRequest

_TOO_LARGE = "_ade_upload_was_too_large"


class Limit(FileUploadHandler):
    """Counts the bytes of all files in a request as they arrive, because the declared length cannot be trusted."""

    received_bytes = 0

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        self.received_bytes += len(raw_data)
        if self.received_bytes > settings.ADE_MAX_UPLOAD_BYTES:
            setattr(self.request, _TOO_LARGE, True)
            # Read and discard the rest, because browsers show no response before they have sent everything.
            raise SkipFile
        return raw_data

    def file_complete(self, file_size: int) -> Any:
        return None


def was_too_large(request: HttpRequest) -> bool:
    """Return whether a file was dropped from this request because it was too large."""
    return getattr(request, _TOO_LARGE, False)
