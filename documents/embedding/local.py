"""Turns texts into vectors with the local model, in a child process."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from django.utils.module_loading import import_string

from ade_embedder import DIMENSIONS as DIMENSIONS
from ade_embedder import MODEL as MODEL
from documents.children import COLD_EMBEDDER, Run
from documents.embedding.outcome import EmbeddingFailed, Vectors, read_vectors
from work.claims import Interrupted
from work.processes.supervise import Child, Limits

WALL_SECONDS = 300.0


def embed(
    texts: Sequence[str],
    directory: Path,
    *,
    stop: Callable[[], str | None],
    on_start: Callable[[Child], None],
    run: Run = COLD_EMBEDDER,
) -> Vectors:
    """Return the vectors of the texts. Raises EmbeddingFailed, CannotStart and Interrupted."""
    if not texts:
        return Vectors(MODEL, [], b"")
    (directory / "texts.json").write_text(json.dumps(list(texts)))
    output: list[str] = []
    ended = run(
        [],
        cwd=directory,
        limits=Limits(wall_seconds=WALL_SECONDS, cpu_seconds=int(2 * WALL_SECONDS)),
        stop=stop,
        on_start=on_start,
        on_event=lambda event: None,
        on_output=lambda lines: output.extend(line.text for line in lines),
    )
    assert ended is not None
    if ended.stop_reason:
        raise Interrupted(ended.stop_reason)
    how_it_ended = f"; it {ended}: {' '.join(output[-5:])}"
    return read_vectors(directory / "vectors.bin", len(texts), MODEL, DIMENSIONS, how_it_ended)


def of_query(text: str) -> bytes:
    """Compute the vector of a query in this process, which then keeps the model loaded. Raises EmbeddingFailed."""
    try:
        vector: bytes = import_string("ade_embedder.query.vector_of")(text)
    except (ImportError, OSError, ValueError) as error:
        raise EmbeddingFailed(f"The model {MODEL} could not be loaded: {error}") from error
    return vector
