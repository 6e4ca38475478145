"""A fake SQL Server connection: it compiles real SQL and executes nothing.

Use it only in a separate process: mssql-django patches classes of Django in the process that imports it.
"""

from django.db.utils import ConnectionHandler


def connection():
    return ConnectionHandler({"default": {"ENGINE": "tests.mssql.engine", "NAME": "nowhere"}})["default"]
