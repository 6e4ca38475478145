"""The model, and how long its vectors are: one and the same for texts of documents and for what people look for."""

from pathlib import Path
from typing import Any

import numpy
import wordllama

from ade_embedder import DIMENSIONS


def load() -> Any:
    # Its default looks beside the files that its own wheel carries, and then asks the network.
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True, dim=DIMENSIONS)


def of_length_1(vectors: Any) -> Any:
    """As little-endian numbers of 32 bits, a row each."""
    return (vectors / numpy.maximum(numpy.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)).astype("<f4")
