"""The meaning of texts as vectors: by the model of this machine, or by a service that the settings name.

Vectors of two models are never compared: each is kept with the name of its own.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from documents.children import Run
from documents.embedding import local
from documents.embedding.outcome import EmbeddingFailed as EmbeddingFailed
from documents.embedding.outcome import Vectors as Vectors
from documents.embedding.outcome import numbers as numbers
from documents.embedding.outcome import packed as packed
from work.supervise import Child


def model() -> str:
    """By which model vectors are made now."""
    return local.MODEL


def dimensions() -> int:
    return local.DIMENSIONS


def embed(
    texts: Sequence[str],
    directory: Path,
    *,
    stop: Callable[[], str | None],
    on_start: Callable[[Child], None],
    run: Run,
) -> Vectors:
    """Raises EmbeddingFailed; CannotStart; Interrupted when `stop` has given a reason."""
    return local.embed(texts, directory, stop=stop, on_start=on_start, run=run)
