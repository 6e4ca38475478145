"""Turns texts into vectors, with the local model or with an external service, depending on the settings.

Vectors of different models are never compared, so each vector is stored with the name of its model.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from django.conf import settings

from documents.children import Run
from documents.embedding import local, openai
from documents.embedding.outcome import EmbeddingFailed as EmbeddingFailed
from documents.embedding.outcome import Vectors as Vectors
from documents.embedding.outcome import numbers as numbers
from documents.embedding.outcome import pack as pack
from work.processes.supervise import CannotStart, Child


def is_local() -> bool:
    """Return whether ADE's own program computes the vectors. That program can be kept warm."""
    return bool(settings.ADE_EMBEDDER == "local")


def model() -> str:
    """Return the name of the model that computes new vectors."""
    return local.MODEL if is_local() else openai.model()


def dimensions() -> int:
    return local.DIMENSIONS if is_local() else openai.dimensions()


def embed(
    texts: Sequence[str],
    directory: Path,
    *,
    stop: Callable[[], str | None],
    on_start: Callable[[Child], None],
    run: Run,
) -> Vectors:
    """Return the vectors of the texts.

    Raises EmbeddingFailed and CannotStart, and Interrupted if `stop` returns a reason.
    """
    if is_local():
        return local.embed(texts, directory, stop=stop, on_start=on_start, run=run)
    return openai.embed(texts, directory, stop=stop, on_start=on_start)


def of_query(text: str) -> bytes:
    """Return the current model's vector for a search query. Raises EmbeddingFailed."""
    try:
        return local.of_query(text) if is_local() else openai.of_query(text)
    except CannotStart as error:
        raise EmbeddingFailed(str(error)) from error
