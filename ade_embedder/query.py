"""Vectors in the process that asks: a person waits for one, and it takes less than a millisecond.

Importing this and loading the model takes a fifth of a second and 100 MB, which is why nobody does before it is needed.
"""

from functools import cache
from threading import Lock
from typing import Any

from ade_embedder.model import load, of_length_1

_loading = Lock()
_loaded = cache(load)


def vector_of(text: str) -> bytes:
    """Of length 1, as little-endian numbers of 32 bits."""
    return vectors_of([text])[0]


def vectors_of(texts: list[str]) -> list[bytes]:
    return [vector.tobytes() for vector in of_length_1(model().embed(texts))]


def model() -> Any:
    with _loading:
        return _loaded()
