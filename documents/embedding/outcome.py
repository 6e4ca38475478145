import array
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class EmbeddingFailed(Exception):
    """Says what was expected and what was found. Permanent: the same settings end the same way. A service may ask for
    a pause before it is asked again.
    """

    def __init__(self, message: str, *, permanent: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.retry_after = retry_after


@dataclass(frozen=True)
class Vectors:
    """Of length 1, all by one model."""

    model: str
    each: list[bytes]
    # One for all of them; empty when there are none.
    mean: bytes


def read(path: Path, number: int, model: str, dimensions: int, how_it_ended: str = "") -> Vectors:
    """What a child has left: the vectors of so many texts, and behind them their mean. Raises EmbeddingFailed."""
    data = path.read_bytes() if path.is_file() else b""
    size = dimensions * 4
    if len(data) != (number + 1) * size:
        raise EmbeddingFailed(f"expected {number + 1} vectors, found {len(data) // size}{how_it_ended}")
    *each, mean = (data[start : start + size] for start in range(0, len(data), size))
    return Vectors(model, each, mean)


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
