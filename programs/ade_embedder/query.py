"""Computes the vectors of search queries, each in under 1 ms, in the calling process, because a person waits for them.

Importing this module and loading the model takes a fifth of a second and 100 MB, so import it only when it is needed.
"""

from functools import cache
from threading import Lock
from typing import Any

from ade_embedder.model import load, of_length_1

_loading = Lock()
_loaded = cache(load)


def vector_of(text: str) -> bytes:
    """Return the vector of a text, scaled to length 1, as little-endian 32-bit floats."""
    return vectors_of([text])[0]


def vectors_of(texts: list[str]) -> list[bytes]:
    return [vector.tobytes() for vector in of_length_1(model().embed(texts))]


def model() -> Any:
    with _loading:
        return _loaded()
