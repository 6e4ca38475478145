"""The meaning of texts as vectors: by the local model, in a child process."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from django.utils.module_loading import import_string

from ade_embedder import DIMENSIONS as DIMENSIONS
from ade_embedder import MODEL as MODEL
from documents.children import COLD_EMBEDDER, Run
from documents.embedding.outcome import EmbeddingFailed, Vectors
from work.claims import Interrupted
from work.supervise import Child, Limits

WALL_SECONDS = 300.0


def embed(
    texts: Sequence[str],
    directory: Path,
    *,
    stop: Callable[[], str | None],
    on_start: Callable[[Child], None],
    run: Run = COLD_EMBEDDER,
) -> Vectors:
    """Raises EmbeddingFailed, CannotStart and Interrupted."""
    if not texts:
        return Vectors(MODEL, [], b"")
    (directory / "texts.json").write_text(json.dumps(list(texts)))
    said: list[str] = []
    ended = run(
        [],
        cwd=directory,
        limits=Limits(wall_seconds=WALL_SECONDS, cpu_seconds=int(2 * WALL_SECONDS)),
        stop=stop,
        on_start=on_start,
        on_event=lambda event: None,
        on_output=lambda lines: said.extend(line.text for line in lines),
    )
    assert ended is not None
    if ended.stop_reason:
        raise Interrupted(ended.stop_reason)
    return _read(directory / "vectors.bin", len(texts), f"{ended}: {' '.join(said[-5:])}")


def of_query(text: str) -> bytes:
    """In this process, which keeps the model from then on. Raises EmbeddingFailed."""
    try:
        vector: bytes = import_string("ade_embedder.query.vector_of")(text)
    except (ImportError, OSError, ValueError) as error:
        raise EmbeddingFailed(f"expected the model {MODEL} to load, found: {error}") from error
    return vector


def _read(path: Path, number: int, how_it_ended: str) -> Vectors:
    """Behind those of the texts stands their mean."""
    data = path.read_bytes() if path.is_file() else b""
    size = DIMENSIONS * 4
    if len(data) != (number + 1) * size:
        raise EmbeddingFailed(f"expected {number + 1} vectors, found {len(data) // size}: {how_it_ended}")
    *each, mean = (data[start : start + size] for start in range(0, len(data), size))
    return Vectors(MODEL, each, mean)
