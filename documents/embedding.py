"""The meaning of texts as vectors: by the local model, in a child process."""

import array
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from ade_embedder import DIMENSIONS as DIMENSIONS
from ade_embedder import MODEL as MODEL
from ade_embedder import PROGRAM
from work import private, supervise
from work.claims import Interrupted
from work.supervise import Child, Limits

WALL_SECONDS = 300.0


class EmbeddingFailed(Exception):
    """Says what was expected and what was found."""


@dataclass(frozen=True)
class Vectors:
    model: str
    each: list[bytes]

    def mean(self) -> bytes:
        """One for all of them, of length 1."""
        if not self.each:
            return b""
        sums = [0.0] * DIMENSIONS
        for vector in self.each:
            for n, value in enumerate(numbers(vector)):
                sums[n] += value
        length = math.sqrt(sum(value * value for value in sums)) or 1.0
        return packed([value / length for value in sums])


def embed(
    texts: Sequence[str],
    directory: Path,
    *,
    stop: Callable[[], str | None],
    on_start: Callable[[Child], None],
) -> Vectors:
    """Raises EmbeddingFailed, CannotStart and Interrupted."""
    if not texts:
        return Vectors(MODEL, [])
    (directory / "texts.json").write_text(json.dumps(list(texts)))
    said: list[str] = []
    ended = supervise.run(
        [sys.executable, "-I", "-B", "-X", "utf8", "-c", PROGRAM, str(settings.BASE_DIR)],
        cwd=directory,
        env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"},
        limits=Limits(wall_seconds=WALL_SECONDS, cpu_seconds=int(2 * WALL_SECONDS)),
        stop=stop,
        on_start=on_start,
        on_output=lambda lines: said.extend(line.text for line in lines),
        hidden=private.places(),
    )
    if ended.stop_reason:
        raise Interrupted(ended.stop_reason)
    path = directory / "vectors.bin"
    data = path.read_bytes() if ended.returncode == 0 and path.is_file() else b""
    size = DIMENSIONS * 4
    if len(data) != len(texts) * size:
        raise EmbeddingFailed(
            f"expected {len(texts)} vectors, found {len(data) // size}: {ended}: {' '.join(said[-5:])}"
        )
    return Vectors(MODEL, [data[start : start + size] for start in range(0, len(data), size)])


def numbers(vector: bytes) -> "array.array[float]":
    found = array.array("f")
    found.frombytes(vector)
    if sys.byteorder == "big":
        found.byteswap()
    return found


def packed(values: Sequence[float]) -> bytes:
    made = array.array("f", values)
    if sys.byteorder == "big":
        made.byteswap()
    return made.tobytes()
