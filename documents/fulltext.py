"""Creates the index of words: a GIN index on PostgreSQL, and on SQLite a table that triggers keep up to date.

Every `manage.py migrate` creates the missing parts, because SQLite drops a table's triggers when a migration changes
the table.
"""

from typing import Any

from django.db import DatabaseError, connection

TABLE = "document_chunk_words"
_INDEX = "chunks_by_word"
# Python splits the texts into words, so that all databases have the same words. FTS5 only has to split at spaces.
_CREATE = f"""
    CREATE VIRTUAL TABLE {TABLE} USING fts5(words, content='document_chunks', content_rowid='id', tokenize='ascii')"""
_REBUILD = f"INSERT INTO {TABLE} ({TABLE}) VALUES ('rebuild')"  # noqa: S608  # constants
_ADD = f"INSERT INTO {TABLE} (rowid, words) VALUES (new.id, new.words)"  # noqa: S608  # constants
_REMOVE = f"INSERT INTO {TABLE} ({TABLE}, rowid, words) VALUES ('delete', old.id, old.words)"  # noqa: S608  # constants
_TRIGGERS = {
    "chunk_words_added": f"AFTER INSERT ON document_chunks BEGIN {_ADD}; END",
    "chunk_words_removed": f"AFTER DELETE ON document_chunks BEGIN {_REMOVE}; END",
    "chunk_words_changed": f"AFTER UPDATE OF id, words ON document_chunks BEGIN {_REMOVE}; {_ADD}; END",
}


def make() -> None:
    """Create the missing parts. On SQLite, do nothing while the table of chunks has no column for words yet."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"CREATE INDEX IF NOT EXISTS {_INDEX} ON document_chunks USING gin (words)")
        if connection.vendor != "sqlite":
            return
        columns = connection.introspection.get_table_description(cursor, "document_chunks")
        if not any(column.name == "words" for column in columns) or not can_be_made(cursor):
            return
        if not has_index():
            cursor.execute(_CREATE)
            cursor.execute(_REBUILD)
        for name, trigger in _TRIGGERS.items():
            cursor.execute(f"CREATE TRIGGER IF NOT EXISTS {name} {trigger}")


def rebuild() -> None:
    drop()
    make()


def drop() -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"DROP INDEX IF EXISTS {_INDEX}")
        if connection.vendor == "sqlite":
            for name in _TRIGGERS:
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
            cursor.execute(f"DROP TABLE IF EXISTS {TABLE}")


def has_index() -> bool:
    if connection.vendor == "postgresql":
        return True
    return connection.vendor == "sqlite" and bool(_in_schema("table", TABLE))


def is_kept_in_step() -> bool:
    """Return whether all triggers exist. Call this on SQLite only."""
    return len(_in_schema("trigger", *_TRIGGERS)) == len(_TRIGGERS)


def is_whole() -> bool:
    """Return whether SQLite's table of words matches the chunks. This reads both tables completely."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {TABLE} ({TABLE}, rank) VALUES ('integrity-check', 1)")  # noqa: S608  # constants
    except DatabaseError:
        return False
    return True


def can_be_made(cursor: Any) -> bool:
    cursor.execute("SELECT COUNT(*) FROM pragma_module_list WHERE name = 'fts5'")
    return bool(cursor.fetchone()[0])


def _in_schema(kind: str, *names: str) -> set[str]:
    marks = ", ".join(["%s"] * len(names))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT name FROM sqlite_master WHERE type = %s AND name IN ({marks})", [kind, *names])  # noqa: S608  # marks
        return {name for (name,) in cursor.fetchall()}
