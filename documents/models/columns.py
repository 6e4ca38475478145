"""Columns with a different type on each database but the same value in Python."""

import time
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from documents import folding
from documents.embedding.outcome import numbers, pack

# Running processes notice within this time that the embedding columns were converted.
KNOWN_SECONDS = 30.0
# Enough digits to restore a 32-bit float exactly.
EXACT = "%.9g"
# PostgreSQL keeps at most this many positions per word, and no position above LAST_POSITION.
MOST_POSITIONS = 255
LAST_POSITION = 16383

_COLUMN = """
    SELECT t.typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = to_regclass('document_chunks') AND a.attname = 'embedding'"""


class _VectorSupport:
    """Checks whether a database stores embeddings as pgvector's type, and remembers the answer for KNOWN_SECONDS."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[bool, float]] = {}

    def __call__(self, connection: BaseDatabaseWrapper) -> bool:
        if connection.vendor != "postgresql":
            return False
        name = str(connection.settings_dict["NAME"])
        is_vector, until = self._known.get(name, (False, 0.0))
        if time.monotonic() > until:
            with connection.cursor() as cursor:
                cursor.execute(_COLUMN)
                is_vector = cursor.fetchone() == ("vector",)
            self._known[name] = (is_vector, time.monotonic() + KNOWN_SECONDS)
        return is_vector

    def forget(self) -> None:
        self._known.clear()


has_vectors = _VectorSupport()


class EmbeddingField(models.BinaryField):  # type: ignore[type-arg]  # takes none at run time
    """A vector: little-endian 32-bit floats as bytes in Python, and in the database too unless it uses pgvector."""

    def get_internal_type(self) -> str:
        return "BinaryField"

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        return "vector" if has_vectors(connection) else super().db_type(connection)

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        if value is None:
            return None
        return as_text(bytes(value)) if has_vectors(connection) else bytes(value)

    def from_db_value(self, value: Any, _expression: Any, _connection: Any) -> bytes | None:
        if value is None:
            return None
        return from_text(value) if isinstance(value, str) else bytes(value)


class WordsField(models.TextField):  # type: ignore[type-arg]  # takes none at run time
    """The searchable words of another field in the same row: a `tsvector` on PostgreSQL, text on other databases.

    `documents/folding.py` splits the text into words, because each database would split it differently.
    """

    def __init__(self, *args: Any, of: str = "text", **options: Any) -> None:
        self.of = of
        super().__init__(*args, **options | {"editable": False, "default": "", "blank": True})

    def deconstruct(self) -> Any:
        name, path, args, options = super().deconstruct()
        return name, path, args, options | {"of": self.of}

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        return "tsvector" if connection.vendor == "postgresql" else super().db_type(connection)

    def pre_save(self, instance: models.Model, add: bool) -> str:
        value = as_line(getattr(instance, self.of))
        setattr(instance, self.attname, value)
        return value

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        return as_lexemes(value) if connection.vendor == "postgresql" and value is not None else value


def as_line(text: str) -> str:
    """Return the words of a text, separated by spaces, with a space also before the first and after the last."""
    words = folding.words(text)
    return f" {' '.join(words)} " if words else ""


def as_lexemes(line: str) -> str:
    """Return a tsvector literal. Words consist of letters and digits, so nothing needs escaping."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(line.split(), 1):
        positions = places.setdefault(word, [])
        if len(positions) < MOST_POSITIONS:
            positions.append(min(place, LAST_POSITION))
    return " ".join(f"'{word}':{','.join(map(str, positions))}" for word, positions in places.items())


def as_text(vector: bytes) -> str:
    """Return the vector as a pgvector literal."""
    values = numbers(vector)
    return f"[{','.join([EXACT] * len(values))}]" % tuple(values)


def from_text(text: str) -> bytes:
    return pack([float(value) for value in text[1:-1].split(",")])
