"""Each rule finds a statement that breaks it, and lets pass what SQL Server accepts."""

import pytest

from tests.mssql.rules import RULES, broken

pytestmark = pytest.mark.once

BROKEN = {
    "language": "SELECT a FROM t LIMIT 1",
    "not understood": "VACUUM t",
    "102: Expecting": "SELECT a FROM t WHERE a IN (",
    "no function of SQL Server: GREATEST_OF": "SELECT GREATEST_OF(a) FROM t",
    "8003": "SELECT a FROM t WHERE a = %s" + " OR a = %s" * 2100,
    "1033": "SELECT a FROM t WHERE a IN (SELECT b FROM u ORDER BY b)",
    "169": "SELECT a FROM t ORDER BY a ASC, a DESC",
    "102: OFFSET": "SELECT a FROM t OFFSET 5 ROWS",
    "145": "SELECT DISTINCT a FROM t ORDER BY b",
    "102: a condition": "SELECT a > 1 FROM t",
    "4145": "SELECT a FROM t WHERE NOT [b]",
    "164": "SELECT COUNT(*) FROM t GROUP BY %s",
    "130": "SELECT SUM((SELECT b FROM u)) FROM t",
    "8155": "SELECT a FROM (SELECT b + 1 FROM t) x",
    "8623": "SELECT a FROM t WHERE a IN (1" + ", 1" * 1000 + ")",
    "547": "ALTER TABLE t ADD CONSTRAINT c CHECK (ISJSON(a) = 1)",
    "650": "SELECT a FROM t WITH (UPDLOCK, READPAST)",
    "208": "SELECT E.a FROM events e",
    "207": "SELECT i.table_name FROM INFORMATION_SCHEMA.TABLES AS i",
    "468": "SELECT a FROM t WHERE a = 'x' COLLATE Latin1_General_CI_AS",
}
ACCEPTED = [
    "SELECT TOP 1 a FROM t WITH (ROWLOCK, UPDLOCK, READPAST, READCOMMITTEDLOCK) WHERE a = 'LIMIT (b' ORDER BY a",
    "SELECT DISTINCT a AS [x], b FROM t ORDER BY [x], b",
    "SELECT a FROM t WHERE a IN (SELECT TOP 5 b FROM u ORDER BY b)",
    "SELECT a FROM (SELECT b + 1 AS [a], c FROM t) x ORDER BY a OFFSET 5 ROWS FETCH FIRST 5 ROWS ONLY",
    "SELECT CASE WHEN EXISTS(SELECT 1 AS [a] FROM u) THEN 1 ELSE 0 END AS [x] FROM t WHERE NOT ([b] = 1)",
    "SELECT a, COUNT_BIG(*) FROM t WHERE b LIKE 'x%%' GROUP BY a",
    "SELECT a FROM t WHERE a IN (SELECT [value] FROM OPENJSON(%s) WITH ([value] bigint '$'))",
    "SET NOCOUNT ON INSERT INTO [t] ([a]) VALUES (%s); SELECT CAST(SCOPE_IDENTITY() AS bigint)",
    "INSERT INTO [t] ([a]) OUTPUT INSERTED.[id] VALUES (%s), (%s)",
    "ALTER TABLE [t] ALTER COLUMN [a] nvarchar(200) NOT NULL",
    "CREATE UNIQUE INDEX [i] ON [t] ([a]) WHERE [status] IN ('A', 'B');",
    "SELECT i.TABLE_NAME, t.name FROM INFORMATION_SCHEMA.TABLES AS i JOIN sys.tables AS t ON t.name = i.TABLE_NAME",
    "UPDATE [t] SET [a] = %s WHERE ([t].[id] = %s AND [t].[status] = %s)",
    "SET IDENTITY_INSERT [t] ON; INSERT INTO [t] ([id]) VALUES (%s); SET IDENTITY_INSERT [t] OFF",
    "SET LANGUAGE us_english; SET LOCK_TIMEOUT 20000",
]


@pytest.mark.parametrize("rule", BROKEN)
def test_a_statement_that_breaks_a_rule_is_found(rule):
    assert [found for found in broken(BROKEN[rule]) if found.startswith(rule)]


@pytest.mark.parametrize("sql", ACCEPTED)
def test_what_sql_server_accepts_breaks_none(sql):
    assert broken(sql) == []


def test_each_rule_has_a_statement_that_breaks_it():
    assert {rule.__doc__.partition(":")[0].partition(" ")[0] for rule in RULES} <= {
        name.partition(":")[0] for name in BROKEN
    }
