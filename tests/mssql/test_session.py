"""What ADE's backend does with a new connection, and what it makes of lists."""

import json
import re

import pytest

from tests.mssql.conftest import run

pytestmark = pytest.mark.once

MOST_PARAMETERS = 2100


@pytest.fixture(scope="module")
def session(mssql_django):
    return json.loads(run("tests.mssql.session").stdout)


def test_a_connection_speaks_english_and_waits_for_locks_no_longer_than_sqlite(session):
    language, date_format = (
        next(place for place, sql in enumerate(session["statements"]) if word in sql)
        for word in ("SET LANGUAGE us_english; SET LOCK_TIMEOUT 20000", "SET DATEFORMAT ymd")
    )

    # The language brings a date format of its own.
    assert language < date_format


def test_the_version_is_asked_of_the_server(session):
    assert session["version"] == [16, 0, 4125, 3]


def test_no_query_is_made_while_the_rows_of_another_are_read(session):
    assert session["reads_while_reading"] is False


def test_json_may_be_a_text_or_a_number(session):
    assert session["json_check"] is None


def test_what_the_condition_of_an_index_may_name_is_a_literal(session):
    sql, params = session["conditions"]

    assert "[runs].[status] IN ('queued', 'running')" in sql
    assert "[runs].[gate] = ''" in sql
    assert "[builds].[status] = 'ready'" in sql
    assert params == [7]


def test_each_long_list_is_a_parameter_of_its_own(session):
    (sql, params), _ = session["lists"]

    assert sql.count("OPENJSON(%s)") == len(params) == 2
    assert sorted(len(json.loads(param)) for param in params) == [3000, 3000]
    assert sorted(re.findall(r"WITH \(\[value\] (\S+) '\$'\)", sql)) == ["bigint", "nvarchar(255)"]


def test_a_list_becomes_one_parameter_before_a_statement_has_too_many(session):
    _, (sql, params) = session["lists"]

    assert sql.count("OPENJSON(%s)") == 1
    assert len(params) == 501
    assert MOST_PARAMETERS > 4 * 500
