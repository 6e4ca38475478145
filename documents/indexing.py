"""Creates the indexes that searches need, for workers and for `manage.py document index`."""

from typing import Any

import structlog
from django.db import connection, transaction

from documents import embedding, fulltext, vectors
from documents.models import DocumentChunk
from documents.models.columns import has_vectors
from documents.vectors import Model

# Indexing this many vectors takes seconds. Indexing more keeps the server busy, so an operator chooses when to do it.
FEW_CHUNKS = 10_000

log = structlog.get_logger(__name__)


def index_vectors(_owner: str = "") -> int:
    """Create the vector index for the current model if it is missing and the database supports it."""
    model = current_model()
    if not has_vectors(connection) or vectors.indexes().get(model.index):
        return 0
    if len(DocumentChunk.objects.filter(embedding_model=model.name).values_list("pk")[: FEW_CHUNKS + 1]) > FEW_CHUNKS:
        log.warning("indexing.missing", model=model.name, advice="run `manage.py document index`")
    elif vectors.make_index_concurrently(model):
        log.info("indexing.made", model=model.name)
    return 0


def create_indexes(*, rebuild: bool) -> dict[str, Any]:
    """Create the indexes that searches need, and return which ones exist afterwards.

    Only the index of words is created in a transaction: converting and indexing a large table of vectors takes minutes.
    """
    with transaction.atomic():
        (fulltext.rebuild if rebuild else fulltext.make)()
    model = current_model()
    if connection.vendor == "postgresql" and vectors.make_extension():
        vectors.keep_as_vectors()
        vectors.make_index_concurrently(model)
    return {
        "words": "an index" if fulltext.has_index() else "no index",
        "vectors": "pgvector" if has_vectors(connection) else "bytes",
        "model": model.name,
        "is_indexed": has_vectors(connection) and bool(vectors.indexes().get(model.index)),
    }


def current_model() -> Model:
    return Model(embedding.model(), embedding.dimensions())
