import array
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class EmbeddingFailed(Exception):
    """No vectors were computed.

    `permanent`: another attempt with the same settings would fail too. `away`: the service would currently fail for
    every document. `retry_after`: the pause that the service asks for, in seconds.
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
    """Return the vectors that a child process wrote to this file, with their mean.

    Raises EmbeddingFailed if the file does not have the expected size.
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
