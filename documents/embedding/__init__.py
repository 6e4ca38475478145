"""The meaning of texts as vectors: by the model of this machine, or by a service that the settings name.

Vectors of two models are never compared: each is kept with the name of its own.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from django.conf import settings

from documents.children import Run
from documents.embedding import local, openai
from documents.embedding.outcome import EmbeddingFailed as EmbeddingFailed
from documents.embedding.outcome import Vectors as Vectors
from documents.embedding.outcome import numbers as numbers
from documents.embedding.outcome import packed as packed
from work.supervise import CannotStart, Child


def is_local() -> bool:
    """Whether who embeds is a program of ADE's own, that is kept warm."""
    return bool(settings.ADE_EMBEDDER == "local")


def model() -> str:
    """By which model vectors are made now."""
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
    """Raises EmbeddingFailed; CannotStart; Interrupted when `stop` has given a reason."""
    if is_local():
        return local.embed(texts, directory, stop=stop, on_start=on_start, run=run)
    return openai.embed(texts, directory, stop=stop, on_start=on_start)


def of_query(text: str) -> bytes:
    """The vector of what a person looks for, by the model of today. Raises EmbeddingFailed."""
    try:
        return local.of_query(text) if is_local() else openai.of_query(text)
    except CannotStart as error:
        raise EmbeddingFailed(str(error)) from error
