from datetime import datetime

from work.sqlserver import base

# Part of a statement -> the row that answers it. The collation is that of an installation that chose none.
ANSWERS = {
    "@@TRANCOUNT": (1,),
    "SYSDATETIME": (datetime(2026, 1, 1),),  # noqa: DTZ001  # as SQL Server answers
    "EngineEdition": ("16.0.4125.3", 3),
    "ProductVersion": ("16.0.4125.3",),
    "sys.databases": ("ade", "SQL_Latin1_General_CP1_CI_AS", 196609, False, 160),
}


class Raw:
    """Stands where the driver's connection would, and where its cursor would. Remembers statements, executes none."""

    autocommit, timeout, description = True, 0, ()

    def __init__(self):
        self.statements, self.answer = [], None

    def cursor(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def execute(self, sql, params=()):
        self.statements.append(sql)
        self.answer = next((answer for part, answer in ANSWERS.items() if part in sql), None)
        return self

    def fetchone(self):
        return self.answer

    def fetchall(self):
        return []

    def getinfo(self, name):
        return "libmsodbcsql-18.6.so.2.1"

    def close(self):
        pass


class DatabaseWrapper(base.DatabaseWrapper):
    """Answers what it would ask its server, so that SQL can be compiled without one."""

    sql_server_version = 2022
    to_azure_sql_db = False

    def get_new_connection(self, conn_params):
        self._use_python_driver = True
        return Raw()

    def get_autocommit(self):
        # Queries that lock rows check this. Pretend that a transaction is open.
        return False
