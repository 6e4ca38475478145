"""Documents to search in, with vectors from the product's model."""

from ade_embedder.query import vectors_of
from documents import embedding
from documents.models import Document, DocumentChunk
from documents.search import matrix
from tests.factories import DocumentFactory, write


def published(workspace, *texts, model=None, **columns):
    """Create a document with a chunk for each text, as publishing leaves it."""
    # IDs repeat after the rollback of a test, which never happens in production.
    matrix.cache.clear()
    vectors = vectors_of(list(texts))
    model = embedding.model() if model is None else model
    written = {name: columns.pop(name) for name in ("created_at",) if name in columns}
    document = DocumentFactory(workspace=workspace, **columns)
    write(document, embedding=vectors[0], embedding_model=model, **written)
    DocumentChunk.objects.bulk_create(
        DocumentChunk(
            document=document,
            workspace_id=document.workspace_id,
            position=position,
            page=position + 1,
            text=text,
            embedding=vector if model else None,
            embedding_model=model,
        )
        for position, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    )
    return Document.objects.get(pk=document.pk)
