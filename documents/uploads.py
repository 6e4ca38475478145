"""How files come in by the web: no more of them is kept than a document may be large."""

from typing import Any

from django.conf import settings
from django.core.files.uploadhandler import FileUploadHandler, SkipFile
from django.http import HttpRequest

_TOO_LARGE = "_ade_upload_was_too_large"


class Limit(FileUploadHandler):
    """Counts what really comes, in all files of a request together; what its sender says of its length is not asked."""

    received_bytes = 0

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        self.received_bytes += len(raw_data)
        if self.received_bytes > settings.ADE_MAX_UPLOAD_BYTES:
            setattr(self.request, _TOO_LARGE, True)
            # The rest is read and thrown away: a browser shows no answer before it has sent everything.
            raise SkipFile
        return raw_data

    def file_complete(self, file_size: int) -> Any:
        return None


def was_too_large(request: HttpRequest) -> bool:
    """Whether a file is missing from this request because there was too much of it."""
    return getattr(request, _TOO_LARGE, False)
