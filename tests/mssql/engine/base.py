from mssql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """Answers what it would ask its server, so that SQL can be compiled without one."""

    sql_server_version = 2022
    to_azure_sql_db = False

    def get_autocommit(self):
        # Queries that lock rows check this. Pretend that a transaction is open.
        return False
