"""Prepares the working directory of one run, which holds its input, temporary files and artifacts.

The directory's name contains the claim token, so that a late engine of an earlier claim writes elsewhere.
"""

import json
import mimetypes
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from ade_engine.runner import INPUT
from documents.models import Document
from documents.retention import purged_on


class NoDocument(Exception):
    """The document or its file is gone."""


def root() -> Path:
    return Path(settings.VAR_DIR, "engines")


def lay_out(
    directory: Path, document: Document, run_id: int | None = None, understood: Mapping[str, str] | None = None
) -> None:
    """Write the engine's input files. `understood` has the names of those that exist already. Raises NoDocument."""
    if document.purged_at:
        raise NoDocument(f"The content of document {document.name!r} was {purged_on(document)}.")
    values: dict[str, Any] = {
        "id": document.pk,
        "name": document.name,
        "content_type": document.content_type,
        "size_bytes": document.size_bytes,
        "sha256": document.sha256,
        "pages": document.pages,
        "status": document.status,
        "type": {"name": document.type, "confidence": document.type_confidence} if document.type else None,
        **(understood or {}),
    }
    if document.file:
        # Libraries depend on the file extension, so keep it. The rest of the name matters only to people.
        suffix = Path(document.name).suffix.lower()
        if not suffix[1:].isascii() or not suffix[1:].isalnum() or len(suffix) > 8:
            suffix = mimetypes.guess_extension(document.content_type) or ""
        values["file"] = f"document{suffix}"
        try:
            source = document.file.open("rb")
        except FileNotFoundError as error:
            raise NoDocument(f"The stored file of document {document.name!r} is missing.") from error
        with source, open(directory / values["file"], "wb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
    if document.text:
        values["text"] = "document-text.txt"
        (directory / values["text"]).write_text(document.text, "utf-8", newline="")
    (directory / INPUT).write_text(json.dumps({"run": run_id, "document": values}))
