"""The rules of `manage.py doctor` are handwritten SQL: parse what SQL Server would get."""

from datetime import UTC, datetime

import pytest

from tests.mssql.rules import broken
from tests.races.invariants import AFTER_QUIESCENCE, FOR_TESTS, TOKEN
from work.clock import _NOW_SQL
from work.invariants import Dialect, all_invariants
from work.sqlserver import needs

pytestmark = pytest.mark.once

DIALECT = Dialect("microsoft", datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("invariant", list(all_invariants()), ids=lambda invariant: invariant.name)
def test_an_invariant_is_written_for_sql_server(invariant):
    assert broken(invariant.sql(DIALECT)) == []


@pytest.mark.parametrize("name", FOR_TESTS | AFTER_QUIESCENCE)
def test_an_invariant_of_the_tests_is_written_for_sql_server(name):
    sql = (FOR_TESTS | AFTER_QUIESCENCE)[name].replace("{token}", TOKEN["microsoft"])

    assert broken(sql) == []


@pytest.mark.parametrize("sql", [needs.DATABASE_SQL, needs.COLUMN_SQL, _NOW_SQL["microsoft"]])
def test_what_is_asked_of_the_server_itself(sql):
    assert broken(sql) == []
