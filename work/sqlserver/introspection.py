"""How Django reads the schema of a database on SQL Server. Only `base.py` imports this."""

import re
from typing import Any

from mssql.introspection import DatabaseIntrospection as MssqlIntrospection

# The aliases that mssql-django gives to views of INFORMATION_SCHEMA, with a column.
COLUMN = re.compile(r"\b(kc|tc|c)\.(\w+)")


class InCapitals:
    """A cursor that writes the columns of INFORMATION_SCHEMA in capitals.

    In a database where case counts, it counts in names too, and mssql-django writes these in small letters.
    """

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def execute(self, sql: str, params: Any = None) -> Any:
        if "INFORMATION_SCHEMA" in sql:
            sql = COLUMN.sub(lambda found: f"{found[1]}.{found[2].upper()}", sql)
        return self._cursor.execute(sql, params)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


class DatabaseIntrospection(MssqlIntrospection):  # type: ignore[misc]  # has no types
    def get_constraints(self, cursor: Any, table_name: str) -> Any:
        return super().get_constraints(InCapitals(cursor), table_name)
