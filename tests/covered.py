"""Check tables that map promises to tests: each named test (`tests/runs/test_claim.py::test_…`) must exist."""

import ast
from functools import cache

from django.conf import settings


def not_there(named):
    """Return the named tests that do not exist."""
    return [name for name in named if not _is_there(name)]


def _is_there(name):
    path, _, function = name.partition("::")
    return function in _functions(path)


@cache
def _functions(path):
    file = settings.BASE_DIR / path
    if not file.is_file():
        return frozenset()
    found = ast.walk(ast.parse(file.read_text()))
    return frozenset(node.name for node in found if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))
