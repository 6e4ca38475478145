"""The real driver, up to a connection that is refused: every command says so, and says it soon."""

import ctypes
import json
import socket
import subprocess
import sys

import pytest
from django.conf import settings

from tests.mssql.conftest import environment_without_pytest

pytestmark = pytest.mark.once

# Microsoft's ODBC driver, which mssql-python chooses, and its successor, which needs no system library.
PROVIDERS = ["msodbcsql18", "mssql-odbc"]


@pytest.fixture
def manage(mssql_django, tmp_path):
    with socket.socket() as reserved:
        # Nothing listens at this port, and nothing else can while it is bound.
        reserved.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{reserved.getsockname()[1]}"

        def manage(*arguments, provider, **environment):
            return subprocess.run(
                [sys.executable, "manage.py", *arguments],
                cwd=settings.BASE_DIR,
                env={
                    **environment_without_pytest(),
                    "DATABASE_URL": f"mssql://ade:p%40ss;word}}@{server}/ade?TrustServerCertificate=yes",
                    "ADE_VAR_DIR": str(tmp_path),
                    "MSSQL_PYTHON_NATIVE_PROVIDER": provider,
                    **environment,
                },
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )

        manage.server = server
        yield manage


def said_by(provider, server):
    if provider == "msodbcsql18":
        try:
            ctypes.CDLL("libltdl.so.7")
        except OSError:
            return "install libltdl7"
    return f"cannot connect to {server}/ade: "


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_command_says_in_a_sentence_that_the_server_is_away(provider, manage):
    done = manage("run", "list", provider=provider)

    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("The database is unavailable: ")
    assert said_by(provider, manage.server) in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_doctor_reports_a_failed_check_soon(provider, manage):
    done = manage("doctor", "--json", "database", provider=provider)

    [check] = [check for check in json.loads(done.stdout)["checks"] if check["name"] == "database.answers"]
    assert (done.returncode, done.stderr, check["level"]) == (1, "", "FAIL")
    assert said_by(provider, manage.server) in check["found"]
    assert check["seconds"] < 10


def test_migrate_says_in_a_sentence_that_the_server_is_away(manage):
    done = manage("migrate", provider="mssql-odbc")

    assert done.returncode == 1
    assert done.stderr.lower().startswith(said_by("mssql-odbc", manage.server).lower())
    assert done.stderr.count("\n") == 1


def test_a_worker_waits_for_the_server_and_then_says_what_is_wrong(manage):
    done = manage("worker", provider="mssql-odbc", ADE_DATABASE_WAIT_SECONDS="1")

    assert done.returncode == 1
    assert said_by("mssql-odbc", manage.server) in done.stderr
    assert "Traceback" not in done.stderr
