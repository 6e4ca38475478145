"""Copies a document's text, chunks and fields from a JSON Lines file into the database.

The first line has everything except tables and chunks; each further line is a part of a table, and then one chunk. A
document of a thousand pages has thousands of chunks, which must never all be in memory at once.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Any

from documents import fields, learning, senders, tables, types
from documents.choosing import Problem
from documents.embedding import Vectors
from documents.models import Document, DocumentChunk, FieldCorrection
from documents.type_recognition import recognise

# Rows per INSERT.
ROWS = 500


def write_file(digest: dict[str, Any], vectors: Vectors) -> IO[bytes]:
    """Return a file with the result of `extraction.digest` and the vectors of its chunks."""
    table_lines = list(tables.lines(digest["tables"]))
    head = {
        "chunks": len(digest["chunks"]),
        "fields": digest["fields"],
        "mean": _text_of(vectors.mean),
        "model": vectors.model,
        "pages": digest["pages"],
        "problems": digest.get("problems", []),
        "table_lines": len(table_lines),
        "tables": len(digest["tables"]),
        "text": digest["text"],
        "type": digest.get("type"),
    }
    file = TemporaryFile()  # noqa: SIM115  # the caller closes it
    file.write(_line(head))
    file.writelines(_line(line) for line in table_lines)
    for chunk, vector in zip(digest["chunks"], vectors.each, strict=True):
        file.write(_line(chunk | {"vector": _text_of(vector)}))
    file.seek(0)
    return file


def counts(file: IO[bytes]) -> dict[str, Any]:
    """Return the counts that the event of a finished stage records."""
    head = _head(file)
    named = {name: head[name] for name in ("chunks", "model", "pages")}
    return {**named, "fields": len(head["fields"]), "tables": head.get("tables", 0)}


def publish(
    document_id: int, file: IO[bytes], *, words_job: int | None = None, pages: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Replace everything that was published for this document before. Must run in a transaction.

    `words_job` is the job whose words of the document's `pages` are stored.
    """
    head = _head(file)
    documents = Document.objects.filter(pk=document_id)
    document = documents.values("workspace_id", "type", "type_chosen_by", "sender_id").get()
    workspace_id, vector = document["workspace_id"], base64.b64decode(head["mean"])
    known, name = types.of_workspace(workspace_id), document["type"]
    columns: dict[str, Any] = {"text": head["text"], "pages": head["pages"], "words_job": words_job}
    if not document["type_chosen_by"]:
        type = recognise(workspace_id, known, head["type"], head["text"], vector, head["model"])
        columns |= {"type": type.name, "type_confidence": type.confidence, "type_reason": type.reason}
        name = type.name
    columns["sender_id"] = senders.identify(workspace_id, head["fields"], pages=pages, current=document["sender_id"])
    documents.update(**columns, embedding=vector or None, embedding_model=head["model"])
    if document["sender_id"] not in (None, columns["sender_id"]):
        # What was corrected on this document says something about the new sender.
        FieldCorrection.objects.filter(document=document_id).update(learned_at=None)
    found = [Problem(each["code"], each["field"], each["message"]) for each in head["problems"]]
    # An output from before ADE kept tables has none.
    tables.keep(document_id, (json.loads(line) for line in islice(file, head.get("table_lines", 0))))
    # The document is locked by now, so whoever changes a lesson afterwards updates this document afterwards.
    learned = learning.values_for(columns["sender_id"], pages)
    fields.keep(document_id, [*head["fields"], *learned], known.get(name), found)
    DocumentChunk.objects.filter(document_id=document_id).delete()
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
