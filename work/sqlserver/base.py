"""The database backend for SQL Server: mssql-django, with what ADE needs differently.

Django imports this module only if DATABASE_URL names an SQL Server, because mssql-django changes classes of Django.
"""

from contextlib import closing
from typing import Any

import mssql_python
from django.utils.functional import cached_property

from work.sqlserver import without_pyodbc
from work.sqlserver.errors import CannotConnect, ErrorWrapper, sentence
from work.sqlserver.needs import COLLATION

assert without_pyodbc  # it must come before the next import
from mssql import base  # noqa: E402
from mssql.creation import DatabaseCreation as MssqlCreation  # noqa: E402
from mssql.operations import DatabaseOperations as MssqlOperations  # noqa: E402

from work.sqlserver import lookups  # noqa: E402
from work.sqlserver.introspection import DatabaseIntrospection  # noqa: E402

# How long a statement waits for a locked row, as on SQLite. Threads that must not be held up set less.
LOCK_TIMEOUT_MS = 20_000
# A list of more values becomes one parameter, because a statement may have 2,100 of them and several lists.
LONGEST_LIST = 500


class DatabaseCreation(MssqlCreation):  # type: ignore[misc]  # has no types
    """Makes test databases that `migrate` accepts."""

    def sql_table_creation_suffix(self) -> str:
        return f"COLLATE {COLLATION}"

    def _execute_create_test_db(self, cursor: Any, parameters: dict[str, str], keepdb: bool = False) -> None:
        super()._execute_create_test_db(cursor, parameters, keepdb)
        cursor.execute(f"ALTER DATABASE {parameters['dbname']} SET READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE")


class DatabaseOperations(MssqlOperations):  # type: ignore[misc]  # has no types
    def max_in_list_size(self) -> int:
        return LONGEST_LIST

    def for_update_sql(self, nowait: bool = False, skip_locked: bool = False, of: tuple[str, ...] = ()) -> str:
        # With READ_COMMITTED_SNAPSHOT on, SQL Server requires READCOMMITTEDLOCK next to READPAST.
        more = ", READCOMMITTEDLOCK)" if skip_locked else ")"
        sql: str = super().for_update_sql(nowait, skip_locked, of)
        return sql.removesuffix(")") + more


class DatabaseWrapper(base.DatabaseWrapper):  # type: ignore[misc]  # has no types
    Database = mssql_python
    creation_class = DatabaseCreation
    introspection_class = DatabaseIntrospection
    ops_class = DatabaseOperations
    # ISJSON() accepts only objects and arrays, but a run may report a text or a number.
    data_type_check_constraints = {
        kind: check for kind, check in base.DatabaseWrapper.data_type_check_constraints.items() if kind != "JSONField"
    }

    @staticmethod
    def _uses_mssql_python(conn_params: dict[str, Any]) -> bool:
        # Whatever the options say: nothing installs the driver of pyodbc.
        return True

    @cached_property
    def wrap_database_errors(self) -> ErrorWrapper:
        return ErrorWrapper(self)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        try:
            return super().get_new_connection(conn_params)
        except mssql_python.Error as error:
            server = (
                f"{conn_params['HOST'] or 'localhost'}:{conn_params['PORT'] or 1433}/{conn_params['NAME'] or 'master'}"
            )
            raise CannotConnect(sentence(error, server)) from error

    def init_connection_state(self) -> None:
        # Before mssql-django sets the date format, which depends on the language.
        with closing(self.create_cursor()) as cursor:
            cursor.execute(f"SET LANGUAGE us_english; SET LOCK_TIMEOUT {LOCK_TIMEOUT_MS}")
        super().init_connection_state()
        # Without multiple active result sets (MARS), a result must be read to its end before the next query.
        self.supports_mars = self.features.can_use_chunked_reads = False

    def get_database_version(self) -> tuple[int, ...]:
        with self.temporary_connection() as cursor:
            cursor.execute("SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128))")
            (version,) = cursor.fetchone()
        return tuple(map(int, version.split(".")))


lookups.install()
