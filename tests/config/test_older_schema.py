"""Processes that start on a database that lacks migrations."""

import os
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
    assert "run manage.py migrate, then start again" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_worker_waits_says_so_and_refuses_in_the_end(tmp_path):
    ended = start(tmp_path, "manage.py", "worker", ADE_DATABASE_WAIT_SECONDS="2")

    assert ended.returncode == 1
    assert ended.stderr.count("worker.waits_for_migrations") == 1
    assert "migrations are not applied" in ended.stderr.splitlines()[-1]
    assert "Waited for 2 s (ADE_DATABASE_WAIT_SECONDS)." in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
