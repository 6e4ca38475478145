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
# All queries that the product makes during these tests are compiled for SQL Server.
TESTS = [
    *("tests/work", "tests/schedules", "tests/documents", "tests/builds", "tests/runs"),
    *("tests/feeds/retention", "tests/webhooks", "tests/api", "tests/console"),
    # Only the admin lists the types of documents.
    "tests/admin/test_document_types.py",
]
# Excluded: tests of files and programs, whose queries other tests make too.
OTHERS = [
    "tests/runs/engine",
    *(f"tests/builds/test_{topic}*" for topic in ("build", "locking", "offline", "publishing", "pruning", "archives")),
    *(f"tests/documents/test_{topic}*" for topic in ("sniffing", "names", "extraction", "chunking", "outputs")),
    *(f"tests/documents/test_{topic}*" for topic in ("folding", "wanted")),
    # Features of PostgreSQL and SQLite only.
    *(f"tests/documents/test_{topic}*" for topic in ("fulltext", "vectors")),
    "tests/work/test_guards*",
    *(f"tests/work/test_{topic}*" for topic in ("exit", "groups", "hardening", "usage")),
    # The shim of the driver has no type for bytes, and without a server the real one cannot be checked.
    *(f"tests/documents/test_{topic}*" for topic in ("processing", "upload_form", "downloads", "blob")),
    # Its bulk inserts are written for these two databases.
    "tests/feeds/retention/test_a_million*",
    *("tests/work/test_kernel_sql*", "tests/work/test_portable_sql*"),
    # Query timeouts are specific to each driver.
    "tests/console/test_invariants*",
    "tests/api/test_outages*",
    # Pages of the admin, excluded like tests/admin.
    "tests/runs/test_artifact_downloads*",
    "tests/api/test_audit*",
    *(f"tests/api/test_{topic}*" for topic in ("bodies", "description", "docs", "headers", "pages")),
    # Invariants are plain SQL; the ORM only creates their rows. The random runs repeat the queries of other tests.
    *("tests/*/test_invariants*", "tests/runs/test_why_and_claims*"),
]
# Tests of every route and every status that repeat queries of other tests, for other callers and other parameters.
ASKED_BEFORE = (
    "answers_nobody_else",
    "people_of_no_workspace",
    "rows_of_other_workspaces",
    "nothing_but_what_it_takes",
    "both_writers_write_the_same",
    "changes_no_other_column",
    "says_the_time_of_its_event",
    "says_its_own_time",
)


@pytest.fixture(scope="session")
def mssql_django():
    if importlib.util.find_spec("mssql") is None:
        pytest.skip(MISSING)


@pytest.fixture(scope="session")
def migrations(mssql_django):
    """Return the SQL statements of each of our migrations."""
    return json.loads(run("tests.mssql.schema").stdout)


@pytest.fixture(scope="session")
def queries(mssql_django, tmp_path_factory):
    """Return the queries that were compiled and the queries that failed to, each with a test that makes it."""
    directory = tmp_path_factory.getbasetemp()
    # The workers of pytest-xdist share the result, which takes two minutes.
    shared = directory.parent if "PYTEST_XDIST_WORKER" in os.environ else directory
    file = shared / "mssql-queries.json"
    with (shared / "mssql-queries.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            _record(file)
    return json.loads(file.read_text())


def _record(file):
    # Tests named "fast" use the writer for PostgreSQL and SQLite, which SQL Server never uses. The queries of process
    # tests run in other processes.
    chosen = " and ".join(f"not {word}" for word in ("fast", "supervise", "worker_process", *ASKED_BEFORE))
    options = ["-p", "tests.mssql.recorder", "-p", "no:cacheprovider", "-q", "-k", chosen]
    options += [f"--ignore-glob={glob}" for glob in OTHERS]
    aside = file.with_suffix(".new")
    done = run("pytest", *options, *TESTS, ADE_MSSQL_RECORD=str(aside))
    assert done.returncode == 0, f"The tests do not pass by the way for SQL Server:\n{done.stdout[-5000:]}"
    aside.rename(file)


def environment_without_pytest():
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {**inherited, "DATABASE_URL": "", "DJANGO_SETTINGS_MODULE": "config.settings"}


def run(module, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=settings.BASE_DIR,
        env={**environment_without_pytest(), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
