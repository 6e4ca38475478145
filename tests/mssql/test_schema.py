import re

import pytest
from django.apps import apps
from django.conf import settings

from tests.mssql.rules import broken

pytestmark = pytest.mark.once

FILTERED = re.compile(r"CREATE (UNIQUE )?INDEX \[(\w+)\] ON \[(\w+)\] \((.*?)\) WHERE (.*);")
# The grammar of an index filter on SQL Server: no OR, no NOT, no function.
TERM = r"\[\w+\] (?:= '\w*'|= \d|> ''|< \d+\.\d+|IN \('\w*'(?:, '\w*')*\)|IS NULL|IS NOT NULL)"
CONDITION = re.compile(rf"\(?{TERM}(?: AND {TERM})*\)?")
# The maximum size of an index key in bytes.
LONGEST_KEY = 1700
BYTES = {"bigint": 8, "int": 4, "smallint": 2, "datetimeoffset": 10, "bit": 1}

OTHERS = ("django.", "django_q", "axes", "ninja", "whitenoise", "csp", "tests.")


def our_models():
    return [
        model
        for app in apps.get_app_configs()
        if app.name in settings.INSTALLED_APPS and not app.name.startswith(OTHERS)
        for model in app.get_models()
    ]


def of(migrations):
    return [statement for name, statements in migrations.items() if name != "asked" for statement in statements]


def columns_of(table, migrations):
    """Return the type of each column in CREATE TABLE and ADD; the columns of relations are added later."""
    text = "\n".join(of(migrations))
    body = re.search(rf"CREATE TABLE \[{table}\] \((.*)\);", text).group(1)
    added = re.findall(rf"ALTER TABLE \[{table}\] ADD (\[\w+\] .*);", text)
    return dict(re.findall(r"\[(\w+)\] ([a-z]\w+(?:\(\w+\))?)", "\n".join([body, *added])))


def size(kind):
    length = re.fullmatch(r"nvarchar\((\d+)\)", kind)
    return 2 * int(length.group(1)) if length else BYTES.get(kind, LONGEST_KEY + 1)


def test_a_parser_of_its_own_understands_every_statement_and_none_breaks_a_rule(migrations):
    assert {sql: found for sql in of(migrations) if (found := broken(sql))} == {}


def test_what_django_asks_of_the_schema_works_where_case_counts(migrations):
    asked = {re.sub(r"\?", "%s", sql) for sql in migrations["asked"]}

    assert any("INFORMATION_SCHEMA" in sql for sql in asked)
    assert {sql: found for sql in asked if (found := broken(sql))} == {}


def test_changes_of_columns_are_among_the_statements(migrations):
    assert len([sql for sql in of(migrations) if " ALTER COLUMN " in sql]) > 10


def test_no_table_refuses_a_text_or_a_number_as_json(migrations):
    assert [sql for sql in of(migrations) if "ISJSON" in sql] == []


def test_every_text_has_the_collation_of_the_database(migrations):
    """`migrate` has looked at that one."""
    assert [sql for sql in of(migrations) if "COLLATE" in sql] == []


@pytest.mark.parametrize(
    ("index", "table", "column", "condition"),
    [
        ("run_one_running_per_document", "runs", "input_document_id", "[status] = 'running'"),
        ("job_run_one_running_per_job", "job_runs", "job_name", "[status] = 'running'"),
        (
            "job_one_live_per_document",
            "document_processing_jobs",
            "document_id",
            "[status] IN ('PENDING', 'PROCESSING')",
        ),
    ],
)
def test_what_there_may_be_one_of_is_a_filtered_unique_index(index, table, column, condition, migrations):
    assert f"CREATE UNIQUE INDEX [{index}] ON [{table}] ([{column}]) WHERE {condition};" in of(migrations)


def test_filters_of_indexes_are_such_that_sql_server_takes_them(migrations):
    filters = [FILTERED.fullmatch(statement) for statement in of(migrations) if re.search(r"INDEX.* WHERE ", statement)]

    assert filters
    for found in filters:
        assert found, "an index with a filter that this test cannot read"
        assert CONDITION.fullmatch(found.group(5)), found.group(0)


def test_no_constraint_and_no_index_is_left_out(migrations):
    text = "\n".join(of(migrations))
    items = [item for model in our_models() for item in (*model._meta.constraints, *model._meta.indexes)]
    # SQL Server has no indexes on expressions: lists are slower there, and nothing more depends on them.
    declared = {item.name for item in items if item.name and not getattr(item, "expressions", ())}

    assert {name for name in declared if f"[{name}]" not in text and f" {name} " not in text} == set()


def test_every_indexed_column_is_short_enough(migrations):
    for model in our_models():
        columns = columns_of(model._meta.db_table, migrations)
        constraints = [getattr(item, "fields", ()) for item in (*model._meta.indexes, *model._meta.constraints)]
        for fields in [*constraints, *([f.name] for f in model._meta.local_fields if f.unique or f.db_index)]:
            names = [model._meta.get_field(name.lstrip("-")).column for name in fields]
            assert sum(size(columns[name]) for name in names) <= LONGEST_KEY, (model, names)


def test_our_moments_know_their_time_zone(migrations):
    for model in our_models():
        kinds = columns_of(model._meta.db_table, migrations).values()
        assert not {kind for kind in kinds if kind.startswith("datetime")} - {"datetimeoffset"}
