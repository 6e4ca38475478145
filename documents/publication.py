"""Copies a document's text, chunks and fields from a JSON Lines file into the database.

The first line has everything except the chunks; each further line is one chunk. A document of a thousand pages has
thousands of chunks, which must never all be in memory at once.
"""

import base64
import json
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Any

from documents import fields
from documents.embedding import Vectors
from documents.models import Document, DocumentChunk

# Rows per INSERT.
ROWS = 500


def write_file(digest: dict[str, Any], vectors: Vectors) -> IO[bytes]:
    """Return a file with the result of `extraction.digest` and the vectors of its chunks."""
    head = {
        "chunks": len(digest["chunks"]),
        "fields": digest["fields"],
        "mean": _text_of(vectors.mean),
        "model": vectors.model,
        "pages": digest["pages"],
        "text": digest["text"],
    }
    file = TemporaryFile()  # noqa: SIM115  # the caller closes it
    file.write(_line(head))
    for chunk, vector in zip(digest["chunks"], vectors.each, strict=True):
        file.write(_line(chunk | {"vector": _text_of(vector)}))
    file.seek(0)
    return file


def counts(file: IO[bytes]) -> dict[str, Any]:
    """Return the counts that the event of a finished stage records."""
    head = _head(file)
    return {"chunks": head["chunks"], "fields": len(head["fields"]), "model": head["model"], "pages": head["pages"]}


def publish(document_id: int, file: IO[bytes]) -> None:
    """Replace everything that was published for this document before. Must run in a transaction."""
    head = _head(file)
    documents = Document.objects.filter(pk=document_id)
    documents.update(
        text=head["text"],
        pages=head["pages"],
        embedding=base64.b64decode(head["mean"]) or None,
        embedding_model=head["model"],
    )
    fields.keep(document_id, head["fields"])
    DocumentChunk.objects.filter(document_id=document_id).delete()
    workspace_id = documents.values_list("workspace_id", flat=True).get()
    while lines := list(islice(file, ROWS)):
        DocumentChunk.objects.bulk_create(
            _chunk(json.loads(line), document_id=document_id, workspace_id=workspace_id, embedding_model=head["model"])
            for line in lines
        )


def _chunk(values: dict[str, Any], **columns: Any) -> DocumentChunk:
    vector = base64.b64decode(values["vector"])
    return DocumentChunk(
        position=values["position"],
        page=values["page"],
        text=values["text"],
        # A vector of zeros has no direction, so its similarity to others is undefined.
        embedding=vector if vector.strip(b"\0") else None,
        **columns,
    )


def _head(file: IO[bytes]) -> dict[str, Any]:
    file.seek(0)
    head: dict[str, Any] = json.loads(file.readline())
    return head


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _text_of(vector: bytes) -> str:
    return base64.b64encode(vector).decode()
