"""Vectors in the process that asks: a person waits for one, and it takes less than a millisecond.

Importing this and loading the model takes a fifth of a second and 100 MB, which is why nobody does before it is needed.
"""

from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy
import wordllama

from ade_embedder import DIMENSIONS

_loading = Lock()


def vector_of(text: str) -> bytes:
    """Of length 1, as little-endian numbers of 32 bits."""
    return vectors_of([text])[0]


def vectors_of(texts: list[str]) -> list[bytes]:
    vectors = model().embed(texts)
    lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    return [vector.tobytes() for vector in (vectors / numpy.maximum(lengths, 1e-12)).astype("<f4")]


def model() -> Any:
    with _loading:
        return _loaded()


@cache
def _loaded() -> Any:
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True, dim=DIMENSIONS)
