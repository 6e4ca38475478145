"""Turns texts into vectors with OpenAI. A child process calls the service."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from django.conf import settings

from ade_services import OPENAI, TEXTS, VECTORS
from documents import remote_services
from documents.children import EMBEDDER, program_directory
from documents.embedding.outcome import EmbeddingFailed, Vectors, read_vectors
from documents.remote_services import NoAnswer
from work.processes.supervise import Child

# Time limit for all texts of a document. A thousand pages take about twenty requests.
WALL_SECONDS = 300.0
# Short, because a person waits for the results of the query.
QUERY_SECONDS = 5.0
# Characters; longer queries are cut, because a longer text has no single meaning.
LONGEST_QUERY = 2000


def model() -> str:
    return f"openai:{settings.ADE_OPENAI_MODEL}:{settings.ADE_OPENAI_DIMENSIONS}"


def dimensions() -> int:
    return int(settings.ADE_OPENAI_DIMENSIONS)


def embed(
    texts: Sequence[str],
    directory: Path,
    *,
    wall_seconds: float = WALL_SECONDS,
    stop: Callable[[], str | None] = lambda: None,
    on_start: Callable[[Child], None] = lambda child: None,
) -> Vectors:
    """Return the vectors of the texts. Raises EmbeddingFailed, CannotStart and Interrupted."""
    if not texts:
        return Vectors(model(), [], b"")
    (directory / TEXTS).write_text(json.dumps(list(texts)))
    order = {
        "url": settings.ADE_OPENAI_URL,
        "key": settings.ADE_OPENAI_KEY,
        "model": settings.ADE_OPENAI_MODEL,
        "dimensions": dimensions(),
    }
    try:
        remote_services.ask(OPENAI, order, directory, wall_seconds=wall_seconds, stop=stop, on_start=on_start)
    except NoAnswer as error:
        raise EmbeddingFailed(
            str(error), permanent=error.permanent, retry_after=error.retry_after, of_service=True, away=error.away
        ) from error
    return read_vectors(directory / VECTORS, len(texts), model(), dimensions())


def of_query(text: str) -> bytes:
    """Return the vector of a search query. Raises EmbeddingFailed and CannotStart."""
    with program_directory(EMBEDDER, lambda: None, is_warm=False) as place:
        return embed([text[:LONGEST_QUERY]], place.directory, wall_seconds=QUERY_SECONDS).each[0]
