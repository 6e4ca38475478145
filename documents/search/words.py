"""Finds chunks that contain the words of the query, best first."""

from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from documents import fulltext
from documents.fulltext import TABLE
from documents.models import DocumentChunk
from documents.search.query import Query, Term
from documents.search.scope import Scope

# At most this many chunks are ranked. If more contain the words, the words are so common that the order means little.
MOST_WEIGHED = 2000


def best(wanted: Query, scope: Scope, most: int) -> list[int]:
    rows = scope.chunks().order_by()
    if not fulltext.has_index():
        for term in wanted.terms:
            rows = rows.filter(words__contains=term.text)
        for term in wanted.excluded:
            rows = rows.exclude(words__contains=term.text)
        return list(rows.order_by("-pk").values_list("pk", flat=True)[:most])
    match = _match_in_postgresql if connection.vendor == "postgresql" else _match_in_sqlite
    sql, params = match(rows, wanted).values("id", "weight")[:MOST_WEIGHED].query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM ({sql}) found ORDER BY weight DESC, id DESC LIMIT {most:d}", params)  # noqa: S608  # of the ORM
        return [id for (id,) in cursor.fetchall()]


def _match_in_postgresql(rows: QuerySet[DocumentChunk], wanted: Query) -> QuerySet[Any]:
    query = " & ".join([*map(_tsquery, wanted.terms), *(f"!{_tsquery(term)}" for term in wanted.excluded)])
    weight = RawSQL("ts_rank(document_chunks.words, %s::tsquery, 1)", [query])  # bound parameter
    return rows.annotate(weight=weight).extra(where=["document_chunks.words @@ %s::tsquery"], params=[query])  # ditto


def _match_in_sqlite(rows: QuerySet[DocumentChunk], wanted: Query) -> QuerySet[Any]:
    query = f"({' AND '.join(map(_phrase, wanted.terms))})"
    query += "".join(f" NOT {_phrase(term)}" for term in wanted.excluded)
    # FTS5 ranks are negative, and smaller is better.
    return rows.annotate(weight=RawSQL(f"-{TABLE}.rank", [])).extra(  # noqa: S610, S611  # constants
        tables=[TABLE], where=[f"{TABLE} MATCH %s", f"{TABLE}.rowid = document_chunks.id"], params=[query]
    )


def _tsquery(term: Term) -> str:
    """Return the term as a PostgreSQL tsquery.

    Words consist only of letters and digits, so nothing needs escaping here or in `_phrase`.
    """
    *first, last = (f"'{word}'" for word in term.words)
    return f"({' <-> '.join([*first, f'{last}:*' if term.is_beginning else last])})"


def _phrase(term: Term) -> str:
    return f'"{" ".join(term.words)}"{" *" if term.is_beginning else ""}'
