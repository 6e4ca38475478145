"""What ADE needs of a database: the rules, and that `migrate` and `doctor` apply them."""

import json

import pytest

from tests.mssql.conftest import run
from work.sqlserver.needs import COLLATION, Facts, lacks

pytestmark = pytest.mark.once

FIT = Facts(2022, False, "ade", COLLATION, 0, True, 160, None)
IGNORES_CASE = {"collation": "SQL_Latin1_General_CP1_CI_AS", "style": 196609}


@pytest.mark.parametrize(
    "found",
    [
        FIT,
        # Kana and width may be ignored.
        FIT._replace(version=2019, collation="Latin1_General_100_CS_AS", style=196608),
        FIT._replace(version=2014, is_azure=True),
    ],
    ids=["binary", "case-sensitive", "azure"],
)
def test_a_database_is_fit(found):
    assert list(lacks(found)) == []


@pytest.mark.parametrize(
    ("changes", "message", "advice"),
    [
        ({"version": 2017}, "SQL Server 2017", "SQL Server 2019 or newer"),
        (
            IGNORES_CASE,
            "collation SQL_Latin1_General_CP1_CI_AS",
            "ALTER DATABASE [ade] COLLATE Latin1_General_100_BIN2",
        ),
        ({"collation": "Latin1_General_100_CS_AI", "style": 196610}, "accents", "COLLATE Latin1_General_100_BIN2"),
        ({"has_row_versions": False}, "READ_COMMITTED_SNAPSHOT is off", "[ade] SET READ_COMMITTED_SNAPSHOT ON"),
        ({"compatibility": 120}, "compatibility level is 120", "SET COMPATIBILITY_LEVEL = 150"),
        ({"column": ("runs.status", "Latin1_General_CI_AS")}, "column runs.status", "new database"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_what_a_database_lacks_is_named_with_what_to_do(changes, message, advice):
    [lack] = lacks(FIT._replace(**changes))

    assert message in lack.message
    assert advice in lack.advice


def test_migrate_and_doctor_refuse_a_database_that_was_made_without_thinking(mssql_django):
    said = json.loads(run("tests.mssql.session").stdout)["fitness"]

    level, message, advice = said["doctor"]
    assert level == "FAIL"
    assert "SQL_Latin1_General_CP1_CI_AS; READ_COMMITTED_SNAPSHOT is off" in message
    for words in ("COLLATE Latin1_General_100_BIN2", "READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE"):
        assert words in advice
        assert words in said["migrate"]
    assert said["migrate"].startswith("ADE cannot use this database. Case or accents do not count")
