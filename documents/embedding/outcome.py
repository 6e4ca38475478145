import array
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class EmbeddingFailed(Exception):
    """No vectors were made.

    With `permanent`, the same settings always fail. With `away`, the service would fail for every document now. A
    service may ask for a pause with `retry_after`.
    """

    def __init__(
        self,
        message: str,
        *,
        permanent: bool = False,
        retry_after: float | None = None,
        of_service: bool = False,
        away: bool = False,
    ) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.retry_after = retry_after
        self.of_service = of_service
        self.away = away


@dataclass(frozen=True)
class Vectors:
    """Vectors of one model, all of length 1."""

    model: str
    each: list[bytes]
    # The mean of all vectors; empty if there are none.
    mean: bytes


def read_vectors(path: Path, number: int, model: str, dimensions: int, how_it_ended: str = "") -> Vectors:
    """Return the vectors and their mean that a child wrote to this file.

    Raises EmbeddingFailed if the size does not match.
    """
    data = path.read_bytes() if path.is_file() else b""
    size = dimensions * 4
    if len(data) != (number + 1) * size:
        raise EmbeddingFailed(
            f"The embedder must write {number + 1} vectors, but wrote {len(data) // size}{how_it_ended}"
        )
    *each, mean = (data[start : start + size] for start in range(0, len(data), size))
    return Vectors(model, each, mean)


def numbers(vector: bytes) -> "array.array[float]":
    values = array.array("f")
    values.frombytes(vector)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def pack(values: Sequence[float]) -> bytes:
    data = array.array("f", values)
    if sys.byteorder == "big":
        data.byteswap()
    return data.tobytes()
