"""Decides the type of a document, and lets people choose another one.

A person's choice stays when the document is processed again, and teaches ADE: documents that are very similar get the
same type.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from operator import mul
from typing import Any, NamedTuple

from django.db import transaction

from documents import fields, history, types
from documents.embedding.outcome import numbers
from documents.models import Document
from documents.types import WorkspaceTypes

# A type whose words all occur. They are chosen by people, but may also occur in other documents.
WORDS_CONFIDENCE = 0.9
# The similarity from which a document has the same type as another one. Invoices of two sellers are less similar.
ALIKE_FROM = 0.9
# The latest documents with a chosen type that a new document is compared with.
MOST_TAUGHT = 200


class Recognised(NamedTuple):
    name: str
    confidence: float | None
    reason: str


class UnknownType(Exception):
    """The workspace has no such type; the message names its types."""


def recognise(
    workspace_id: int, known: WorkspaceTypes, read: Mapping[str, Any] | None, text: str, vector: bytes, model: str
) -> Recognised:
    """Return the type of a document whose type no person has chosen.

    `read` is the type that the reader recognised. An e-invoice says its type itself. Otherwise, a very similar document
    whose type a person chose decides, then the words of the workspace's own types, then the reader.
    """
    by_reader = Recognised("", None, "")
    if read and str(read["name"]) in known:
        by_reader = Recognised(str(read["name"]), float(read["confidence"]), str(read["reason"])[:500])
    if by_reader.confidence == 1:
        return by_reader
    return _taught(workspace_id, known, vector, model) or _by_words(known, text) or by_reader


def choose(document_id: int, name: str, *, actor: str) -> bool | None:
    """Set the type of a document to the one that a person chose. The empty name lets ADE decide again.

    Return False if the document has that type by a person's choice already, and None if there is no such document.
    Raises UnknownType.
    """
    with transaction.atomic():
        documents = Document.objects.select_for_update().filter(pk=document_id, purged_at__isnull=True)
        columns = ("workspace_id", "type", "type_chosen_by", "text", "embedding", "embedding_model")
        document = documents.values(*columns).first()
        if document is None:
            return None
        known = types.of_workspace(document["workspace_id"])
        if name and name not in known:
            names = ", ".join(spec.name for spec in known.all())
            raise UnknownType(f"Unknown type {name!r}. Known types: {names}.")
        if bool(document["type_chosen_by"]) == bool(name) and name in ("", document["type"]):
            return False
        if name:
            chosen_by = actor[: Document._meta.get_field("type_chosen_by").max_length]
            recognised = Recognised(name, None, f"Chosen by {chosen_by}.")
            message = f"Type: {known.get(name).label}."
        else:
            chosen_by = ""
            vector, model = bytes(document["embedding"] or b""), document["embedding_model"]
            recognised = recognise(document["workspace_id"], known, None, document["text"], vector, model)
            message = "ADE decides the type again."
        data = {"before": document["type"], "type": recognised.name}
        history.choose_type(
            document_id,
            message,
            data,
            actor=actor,
            type=recognised.name,
            type_confidence=recognised.confidence,
            type_reason=recognised.reason,
            type_chosen_by=chosen_by,
        )
        fields.refresh(document_id, known.get(recognised.name))
    return True


def _taught(workspace_id: int, known: WorkspaceTypes, vector: bytes, model: str) -> Recognised | None:
    """Return the type of the most similar document whose type a person chose, if it is similar enough."""
    if not vector:
        return None
    taught = Document.objects.filter(workspace=workspace_id, type_chosen_by__gt="", embedding_model=model)
    rows = taught.order_by("-id").values_list("pk", "type", "type_chosen_by", "embedding")[:MOST_TAUGHT]
    own = numbers(vector)
    similar = [
        (_similarity(own, numbers(bytes(other))), id, name, by)
        for id, name, by, other in rows
        if other and name in known
    ]
    if not similar:
        return None
    similarity, id, name, by = max(similar)
    if similarity < ALIKE_FROM:
        return None
    return Recognised(name, round(min(similarity, 0.99), 3), f"Like document {id}, whose type {by} chose.")


def _similarity(one: Sequence[float], two: Sequence[float]) -> float:
    """Return the cosine of the angle between two vectors."""
    lengths = sqrt(sum(map(mul, one, one)) * sum(map(mul, two, two)))
    return sum(map(mul, one, two)) / lengths if lengths else 0.0


def _by_words(known: WorkspaceTypes, text: str) -> Recognised | None:
    """Return the type with the most words of those whose words all occur in the text."""
    folded = " ".join(text.casefold().split())
    matching = [
        spec for spec in known.with_words() if all(" ".join(word.casefold().split()) in folded for word in spec.words)
    ]
    if not matching:
        return None
    spec = max(matching, key=lambda each: len(each.words))
    words = ", ".join(f"“{word}”" for word in spec.words[:3])
    return Recognised(spec.name, WORDS_CONFIDENCE, f"Contains {words}."[:500])
