"""Stores vectors on PostgreSQL: as pgvector's type with an index per model, or as bytes if pgvector is missing."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import DatabaseError, connection, transaction

from documents.models.columns import as_text, from_text, has_vectors

# The first version of pgvector that continues to search if a filter rejects the nearest rows.
LEAST_VERSION = (0, 8)
# Limits of pgvector's index: vectors with more dimensions than the first limit are indexed as 16-bit numbers, and
# vectors with more than the second cannot be indexed.
MOST_DIMENSIONS, MOST_HALVED = 2000, 4000
TABLES = ("document_chunks", "documents")
# Rows per batch when a column is converted.
BATCH = 1000
# Advisory lock key for index creation.
_LOCK = 0x414445_564543

_INDEXES = """
    SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = 'document_chunks'::regclass AND c.relname LIKE 'chunks\\_near\\_%'"""


@dataclass(frozen=True)
class Model:
    """A model and the SQL for its vectors. PostgreSQL uses the index only for queries with exactly this expression."""

    name: str
    dimensions: int

    @property
    def index(self) -> str:
        digest = hashlib.sha256(f"{self.name} {self.dimensions}".encode()).hexdigest()
        return f"chunks_near_{digest[:16]}"

    @property
    def kind(self) -> str:
        return "vector" if self.dimensions <= MOST_DIMENSIONS else "halfvec"

    @property
    def expression(self) -> str:
        return f"(embedding::{self.kind}({self.dimensions}))"

    @property
    def can_be_indexed(self) -> bool:
        return self.dimensions <= MOST_HALVED


def extension() -> tuple[int, ...] | None:
    """Return the version of pgvector in this database, or None."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        row = cursor.fetchone()
    return tuple(int(part) for part in row[0].split(".")) if row else None


def make_extension() -> bool:
    """Create the extension if it is missing.

    Return False if it is not installed on the server, is too old, or may not be created by this database user.
    """
    if extension() is None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except DatabaseError:
            return False
    return (extension() or ()) >= LEAST_VERSION


def keep_as_vectors() -> None:
    _convert("vector")


def keep_as_bytes() -> None:
    _convert("bytea")


def make_index(model: Model) -> bool:
    """Create the index, which blocks writes meanwhile. Return False if it already exists or is not possible."""
    if not has_vectors(connection) or not model.can_be_indexed or indexes().get(model.index):
        return False
    _make_index(model, "")
    return True


def make_index_concurrently(model: Model) -> bool:
    """Create the index without blocking writes. Must run outside a transaction.

    Return False if the index already exists, is not possible, or is being created by another process.
    """
    with _one_at_a_time() as is_first:
        if not is_first or not has_vectors(connection) or not model.can_be_indexed or indexes().get(model.index):
            return False
        _make_index(model, "CONCURRENTLY")
    return True


def indexes() -> dict[str, bool]:
    """Return the vector indexes by name, and whether each is valid."""
    with connection.cursor() as cursor:
        cursor.execute(_INDEXES)
        return dict(cursor.fetchall())


def drop_indexes() -> None:
    with connection.cursor() as cursor:
        for name in indexes():
            cursor.execute(f"DROP INDEX {name}")


def _make_index(model: Model, way: str) -> None:
    with connection.cursor() as cursor:
        # Remove the invalid index that remains if creating it was interrupted.
        cursor.execute(f"DROP INDEX {way} IF EXISTS {model.index}")
        cursor.execute(
            f"CREATE INDEX {way} {model.index} ON document_chunks USING hnsw"
            f" ({model.expression} {model.kind}_cosine_ops) WHERE embedding_model = %s",
            [model.name],
        )


@contextmanager
def _one_at_a_time() -> Iterator[bool]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])
        (is_first,) = cursor.fetchone()
        try:
            yield is_first
        finally:
            if is_first:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])


def _convert(kind: str) -> None:
    """Convert all rows in one transaction. Changing the column type blocks other sessions until the commit."""
    try:
        if has_vectors(connection) != (kind == "vector"):
            with transaction.atomic():
                # Indexes of the old type would prevent the change.
                drop_indexes()
                for table in TABLES:
                    _convert_table(table, kind)
    finally:
        has_vectors.forget()


def _convert_table(table: str, kind: str) -> None:
    """Convert the column in place: dropping it would also drop the constraints that mention it."""
    batch = f"SELECT id, embedding FROM {table} WHERE id > %s AND embedding IS NOT NULL ORDER BY id LIMIT {BATCH}"  # noqa: S608  # constants
    insert = f"INSERT INTO converted SELECT * FROM unnest(%s::bigint[], %s::{kind}[])"  # noqa: S608  # constants
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE converted (id bigint PRIMARY KEY, value {kind}) ON COMMIT DROP")
        cursor.execute(batch, [0])
        while rows := cursor.fetchall():
            # The driver returns strings if the column has pgvector's type.
            vectors = [from_text(value) if isinstance(value, str) else bytes(value) for _, value in rows]
            values = [as_text(vector) for vector in vectors] if kind == "vector" else vectors
            cursor.execute(insert, [[id for id, _ in rows], values])
            cursor.execute(batch, [rows[-1][0]])
        # ALTER TYPE … USING accepts no subquery, but it accepts a function.
        cursor.execute(
            f"CREATE FUNCTION pg_temp.converted(bigint) RETURNS {kind} LANGUAGE sql STABLE"  # noqa: S608  # constants
            " AS 'SELECT value FROM pg_temp.converted WHERE id = $1'"
        )
        cursor.execute(f"ALTER TABLE {table} ALTER COLUMN embedding TYPE {kind} USING pg_temp.converted(id)")
        cursor.execute("DROP FUNCTION pg_temp.converted(bigint)")
        cursor.execute("DROP TABLE pg_temp.converted")
