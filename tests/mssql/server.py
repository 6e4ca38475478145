"""A fake SQL Server connection: it compiles real SQL and executes nothing.

Use it only in a separate process: mssql-django patches classes of Django in the process that imports it.
"""

import sys
import types

from django.db.utils import ConnectionHandler


def connection():
    sys.modules.setdefault("pyodbc", _Driver("pyodbc"))
    return ConnectionHandler({"default": {"ENGINE": "tests.mssql.engine", "NAME": "nowhere"}})["default"]


class _Driver(types.ModuleType):
    """Replaces the driver, which needs a system library and which mssql-django imports even without a connection."""

    version = "5.2.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Exception,), {}) if name.endswith("Error") else 0
