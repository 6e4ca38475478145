import fcntl
import importlib.util
import json
import os
import subprocess
import sys

import pytest
from django.conf import settings

MISSING = (
    "mssql-django is not installed:"
    " .venv/bin/uv pip install --python .venv/bin/python --require-hashes -r requirements/mssql.txt"
)
# What the product asks while these run is compiled for SQL Server.
TESTS = [
    *("tests/work", "tests/documents", "tests/builds", "tests/runs", "tests/feeds/retention", "tests/api"),
    "tests/console",
]
# But for tests of files and programs, which ask what others ask too.
OTHERS = [
    "tests/runs/engine",
    *(f"tests/builds/test_{topic}*" for topic in ("build", "locking", "offline", "publishing", "pruning", "archives")),
    *(f"tests/documents/test_{topic}*" for topic in ("sniffing", "names", "extraction", "chunking", "outputs")),
    *(f"tests/documents/test_{topic}*" for topic in ("folding", "wanted")),
    # What only PostgreSQL and SQLite have.
    *(f"tests/documents/test_{topic}*" for topic in ("fulltext", "vectors")),
    # The driver that the compiler believes in has no word for bytes, and no server tells whether the real one has.
    *(f"tests/documents/test_{topic}*" for topic in ("processing", "upload_form", "downloads", "blob")),
    # What is inserted there by the million is said in words of these two.
    "tests/feeds/retention/test_a_million*",
    # How long a question may take is told to each driver in its own way.
    "tests/console/test_promises*",
    # Pages of the admin, as those of tests/admin.
    "tests/runs/test_artifact_downloads*",
    "tests/api/test_audit*",
    *(f"tests/api/test_{topic}*" for topic in ("bodies", "description", "docs", "headers", "pages")),
]


@pytest.fixture(scope="session")
def mssql_django():
    if importlib.util.find_spec("mssql") is None:
        pytest.skip(MISSING)


@pytest.fixture(scope="session")
def migrations(mssql_django):
    """The statements of each of our migrations."""
    return json.loads(_run("tests.mssql.schema").stdout)


@pytest.fixture(scope="session")
def queries(mssql_django, tmp_path_factory):
    """What was compiled, and what could not be, each with a test that asks for it."""
    directory = tmp_path_factory.getbasetemp()
    # The workers of pytest-xdist share the answer: it takes two minutes to find.
    shared = directory.parent if "PYTEST_XDIST_WORKER" in os.environ else directory
    file = shared / "mssql-queries.json"
    with (shared / "mssql-queries.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            _record(file)
    return json.loads(file.read_text())


def _record(file):
    # Tests of the writer for PostgreSQL and SQLite are called "fast"; SQL Server never comes there. Those of processes
    # ask their questions elsewhere.
    chosen = "not fast and not supervise and not worker_process"
    options = ["-p", "tests.mssql.recorder", "-p", "no:cacheprovider", "-q", "-k", chosen]
    options += [f"--ignore-glob={glob}" for glob in OTHERS]
    aside = file.with_suffix(".new")
    done = _run("pytest", *options, *TESTS, ADE_MSSQL_RECORD=str(aside))
    assert done.returncode == 0, f"The tests do not pass by the way for SQL Server:\n{done.stdout[-5000:]}"
    aside.rename(file)


def _run(module, *arguments, **environment):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=settings.BASE_DIR,
        env={**inherited, "DATABASE_URL": "", "DJANGO_SETTINGS_MODULE": "config.settings", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
