"""Loads the model and normalises its vectors. Documents and search queries share this code, so they stay comparable."""

from pathlib import Path
from typing import Any

import numpy
import wordllama

from ade_embedder import DIMENSIONS


def load() -> Any:
    # By default, WordLlama does not find the model files in its own wheel and downloads them.
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True, dim=DIMENSIONS)


def of_length_1(vectors: Any) -> Any:
    """Return the vectors scaled to length 1, one row each, as little-endian 32-bit floats."""
    return (vectors / numpy.maximum(numpy.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)).astype("<f4")
