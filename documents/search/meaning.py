"""Chunks whose meaning is near that of what is looked for: by an index of PostgreSQL, elsewhere by looking at all."""

from collections.abc import Callable
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL
from django.utils.module_loading import import_string

from documents.models import DocumentChunk
from documents.models.columns import as_text, has_vectors
from documents.search.scope import Scope
from documents.vectors import Model

# How many neighbours the index follows: among 100,000 it finds so 96 of 100 of the nearest ten, with 100 of them 88.
EF_SEARCH = 500
# Id of a chunk and its nearness, the nearest first.
Near = list[tuple[int, float]]


def nearest(vector: bytes, model: Model, scope: Scope, most: int) -> Near:
    if has_vectors(connection):
        return _nearest_by_index(vector, model, scope, most)
    # It needs numpy, which takes memory and time to import.
    look: Callable[..., Near] = import_string("documents.search.matrix.nearest")
    return look(vector, model, scope, most)


def _nearest_by_index(vector: bytes, model: Model, scope: Scope, most: int) -> Near:
    rows = scope.chunks().filter(embedding_model=model.name, embedding__isnull=False)
    with transaction.atomic(), connection.cursor() as cursor:
        # Relaxed: in an order that is nearly right, which is put right below.
        cursor.execute(
            "SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'relaxed_order', true)",
            [str(EF_SEARCH)],
        )
        found = _ask(rows, vector, model, most, "")
        if len(found) < most:
            # The index gives up when its neighbours are refused too often: then there are few to compare one by one.
            found = _ask(rows, vector, model, most, " + 0")
    return sorted(((id, 1 - distance) for id, distance in found), key=lambda each: (-each[1], each[0]))


def _ask(rows: QuerySet[DocumentChunk], vector: bytes, model: Model, most: int, past_the_index: str) -> list[Any]:
    column = model.expression.replace("embedding", "document_chunks.embedding")
    distance = RawSQL(f"({column} <=> %s::{model.kind}({model.dimensions})){past_the_index}", [as_text(vector)])  # noqa: S611  # own words
    return list(rows.annotate(distance=distance).order_by("distance").values_list("pk", "distance")[:most])
