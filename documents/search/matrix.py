"""Compares a query with all vectors of a workspace if the database cannot: a tenth of a second for a million numbers.

Vectors stay in memory, and later only new vectors are read. Each process has one such cache. Without the cache, every
search would read all vectors again, with the same result.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy
from django.db.models import Count, Max
from numpy.typing import NDArray

from documents.models import DocumentChunk
from documents.search.scope import Scope
from documents.vectors import Model

# A quarter of a million vectors of 256 numbers. Larger workspaces should use PostgreSQL; here, each search reads all of
# their vectors.
MOST_BYTES = 256 << 20
# Rows per query.
PIECE = 10_000

Near = list[tuple[int, float]]
# The number of chunks and the last ID, by which changes are noticed. IDs are never reused.
Stamp = tuple[int, int]


@dataclass(frozen=True)
class Matrix:
    ids: NDArray[Any]
    documents: NDArray[Any]
    vectors: NDArray[Any]

    @property
    def stamp(self) -> Stamp:
        return len(self.ids), int(self.ids[-1]) if len(self.ids) else 0

    def only(self, kept: NDArray[Any]) -> "Matrix":
        return Matrix(self.ids[kept], self.documents[kept], self.vectors[kept])


def nearest(vector: bytes, model: Model, scope: Scope, most: int) -> Near:
    query = numpy.frombuffer(vector, "<f4")
    allowed = numpy.array(scope.documents().values_list("pk", flat=True)) if scope.is_narrow else None
    chunks = DocumentChunk.objects.filter(workspace__in=scope.workspaces, embedding_model=model.name)
    stamps = chunks.values("workspace").annotate(number=Count("pk"), last=Max("pk")).order_by("workspace")
    near: Near = []
    for row in stamps:
        for matrix in cache.matrices(model, row["workspace"], (row["number"], row["last"])):
            nearness = matrix.vectors @ query
            if allowed is not None:
                nearness[~numpy.isin(matrix.documents, allowed)] = -numpy.inf
            is_long = len(nearness) > most
            best = numpy.argpartition(-nearness, most)[:most] if is_long else numpy.arange(len(nearness))
            pairs = ((int(matrix.ids[place]), float(nearness[place])) for place in best)
            near += [pair for pair in pairs if pair[1] > -numpy.inf]
    return sorted(near, key=lambda each: (-each[1], each[0]))[:most]


class Cache:
    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Model, int], Matrix] = OrderedDict()
        self._lock = Lock()

    def matrices(self, model: Model, workspace: int, stamp: Stamp) -> Iterator[Matrix]:
        """Yield one matrix with all vectors, or several smaller ones if it would exceed the memory limit."""
        if stamp[0] * model.dimensions * 4 > MOST_BYTES:
            yield from _read(model, workspace)
            return
        with self._lock:
            matrix = self._kept.pop((model, workspace), None)
            if matrix is None or matrix.stamp != stamp:
                matrix = _read_on(matrix, model, workspace)
            self._kept[model, workspace] = matrix
            while self.bytes() > MOST_BYTES:
                self._kept.popitem(last=False)
        yield matrix

    def bytes(self) -> int:
        return sum(matrix.vectors.nbytes for matrix in self._kept.values())

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


cache = Cache()


def _read_on(before: Matrix | None, model: Model, workspace: int) -> Matrix:
    """Return the current matrix, reading only new rows."""
    pieces = []
    if before is not None and len(before.ids):
        current = numpy.fromiter(_rows(model, workspace).values_list("pk", flat=True).iterator(PIECE), numpy.int64)
        # A row gets its ID before it is committed. If rows with smaller IDs have appeared since, read everything again.
        if numpy.setdiff1d(current[current < before.stamp[1]], before.ids).size:
            return _read_on(None, model, workspace)
        pieces.append(before.only(numpy.isin(before.ids, current)))
    pieces += _read(model, workspace, before.stamp[1] if before is not None else 0)
    if not pieces:
        return _matrix([], model)
    columns = zip(*((piece.ids, piece.documents, piece.vectors) for piece in pieces), strict=True)
    return Matrix(*map(numpy.concatenate, columns))


def _read(model: Model, workspace: int, after: int = 0) -> Iterator[Matrix]:
    while rows := list(
        _rows(model, workspace).filter(pk__gt=after).values_list("pk", "document_id", "embedding")[:PIECE]
    ):
        after = rows[-1][0]
        yield _matrix(rows, model)


def _rows(model: Model, workspace: int) -> Any:
    return DocumentChunk.objects.filter(workspace=workspace, embedding_model=model.name).order_by("pk")


def _matrix(rows: list[tuple[int, int, bytes | None]], model: Model) -> Matrix:
    size = model.dimensions * 4
    # A vector of another size is from another model. Replace it with zeros, which are similar to nothing.
    vectors = b"".join(data if data is not None and len(data) == size else bytes(size) for *_, data in rows)
    return Matrix(
        numpy.array([row[0] for row in rows], numpy.int64),
        numpy.array([row[1] for row in rows], numpy.int64),
        numpy.frombuffer(vectors, "<f4").reshape(-1, model.dimensions),
    )
