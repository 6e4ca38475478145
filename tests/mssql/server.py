"""A SQL Server that is not there: whatever is compiled for it is real, nothing is executed.

Only for processes of their own: mssql-django changes classes of Django for the whole process that imports it.
"""

import sys
import types

from django.db.utils import ConnectionHandler


def connection():
    sys.modules.setdefault("pyodbc", _Driver("pyodbc"))
    return ConnectionHandler({"default": {"ENGINE": "tests.mssql.engine", "NAME": "nowhere"}})["default"]


class _Driver(types.ModuleType):
    """The driver needs a library of the system, and mssql-django wants to see it even when nobody connects."""

    version = "5.2.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Exception,), {}) if name.endswith("Error") else 0
