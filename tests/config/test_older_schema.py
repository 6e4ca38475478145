"""Processes that start on a database that lacks migrations, or that an older version created."""

import contextlib
import os
import sqlite3
import subprocess
import sys

import pytest
from django.conf import settings

pytestmark = [pytest.mark.once, pytest.mark.long(seconds=8)]


def start(tmp_path, *arguments, **variables):
    own = {"PATH": os.environ["PATH"], "ADE_VAR_DIR": str(tmp_path), "ADE_ENV_FILE": os.devnull}
    own |= {"DATABASE_URL": f"sqlite:///{tmp_path}/empty.sqlite3"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=settings.BASE_DIR, env=own | variables, capture_output=True, text=True, timeout=300
    )


def test_the_web_refuses_and_says_why(tmp_path):
    ended = start(tmp_path, "-m", "gunicorn", "-c", "python:config.server", "--bind", "127.0.0.1:0")

    assert ended.returncode == 4, ended.stderr
    assert "The web server does not start: " in ended.stderr
    assert "migrations are not applied" in ended.stderr
    assert "run `manage.py migrate`, then start again" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_worker_waits_says_so_and_refuses_in_the_end(tmp_path):
    ended = start(tmp_path, "manage.py", "worker", ADE_DATABASE_WAIT_SECONDS="2")

    assert ended.returncode == 1
    assert ended.stderr.count("worker.waits_for_migrations") == 1
    assert "migrations are not applied" in ended.stderr.splitlines()[-1]
    assert "Waited for 2 s (ADE_DATABASE_WAIT_SECONDS)." in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr


@pytest.fixture
def of_the_first_version(tmp_path):
    """A database as a version before 0.2 left it: apps that are new in 0.2 have no migrations."""
    assert start(tmp_path, "manage.py", "migrate", "--verbosity", "0").returncode == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "empty.sqlite3")) as database, database:
        database.execute("DELETE FROM django_migrations WHERE app IN ('workspaces', 'schedules', 'webhooks')")


def test_no_process_starts_on_a_database_of_the_first_version(tmp_path, of_the_first_version):
    advice = "was created by ADE 0.1 and cannot be upgraded"

    migrate = start(tmp_path, "manage.py", "migrate")
    web = start(tmp_path, "-m", "gunicorn", "-c", "python:config.server", "--bind", "127.0.0.1:0")
    # It does not wait for a migration that cannot come: the time limit of `start` is shorter than this.
    worker = start(tmp_path, "manage.py", "worker", ADE_DATABASE_WAIT_SECONDS="3600")
    doctor = start(tmp_path, "manage.py", "doctor", "database")

    assert (migrate.returncode, web.returncode, worker.returncode, doctor.returncode) == (1, 4, 1, 1)
    for ended in (migrate, web, worker):
        assert advice in ended.stderr
        assert "set DATABASE_URL to a new, empty database" in ended.stderr
        assert "Traceback" not in ended.stderr
    assert "Nothing was changed." in migrate.stderr
    assert advice in doctor.stdout
