from mssql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """Answers what it would ask its server, so that SQL can be compiled without one."""

    sql_server_version = 2022
    to_azure_sql_db = False

    def get_autocommit(self):
        # Asked of whoever locks rows: in a transaction, as far as anybody can tell here.
        return False
