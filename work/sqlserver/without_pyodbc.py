"""Imports mssql-django without pyodbc, which needs a system library and a driver that requirements/mssql.txt does not
have. ADE connects with mssql-python only, and its wheel contains Microsoft's driver.
"""

import sys
import types

import mssql_python
from mssql_python.constants import ConstantsDDBC


def stand_in() -> types.ModuleType:
    """Return a module with what mssql-django reads from pyodbc while it is imported: a version and ODBC's numbers."""
    module = types.ModuleType("pyodbc", __doc__)
    numbers = {name: member.value for name, member in ConstantsDDBC.__members__.items()}
    vars(module).update(numbers, version="5.3.0", Error=mssql_python.Error)
    return module


sys.modules.setdefault("pyodbc", stand_in())
