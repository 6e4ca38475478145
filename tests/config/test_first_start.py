"""If ADE cannot start, it says what is wrong and what to do, without a traceback."""

import os
import resource
import socket
import subprocess
import sys

import pytest
from django.conf import settings
from django.db import connection

# Each test starts a program.
pytestmark = pytest.mark.long
SQLITE, POSTGRESQL = pytest.mark.once, pytest.mark.only_on("postgresql")


def start(tmp_path, *command, room=None, **variables):
    """Start with only the path of our environment. `room` limits the file size, as a full disk would."""
    own = {"PATH": os.environ["PATH"], "ADE_VAR_DIR": str(tmp_path / "var"), "ADE_ENV_FILE": os.devnull}

    def limit():
        if room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    return subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=settings.BASE_DIR,
        env=own | variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=limit,
    )


def refused(ended, *said):
    assert ended.returncode not in (0, -9), ended.stdout
    assert "Traceback" not in ended.stderr
    for words in said:
        assert words in ended.stderr, ended.stderr


@SQLITE
@pytest.mark.parametrize("command", ["migrate", "up", "worker"])
def test_a_database_that_nobody_serves(tmp_path, command):
    with socket.socket() as closed:
        # The port is bound but not listened on: no other program can take it, and connections are refused.
        closed.bind(("127.0.0.1", 0))
        url = f"postgres://ade:hunter2@127.0.0.1:{closed.getsockname()[1]}/ade"

        ended = start(tmp_path, command, DATABASE_URL=url, ADE_DATABASE_WAIT_SECONDS="1")

    refused(ended, "Connection refused", "DATABASE_URL")
    assert "hunter2" not in ended.stderr


@pytest.fixture
def server():
    """Return the connection parameters of the tests' PostgreSQL."""
    return connection.get_connection_params()


def url_of(server, user, password, name):
    host = server.get("host") or ""
    place = f"?host={host}" if host.startswith("/") else ""
    at = "" if place else f"{host}:{server.get('port') or 5432}"
    return f"postgres://{user}:{password}@{at}/{name}{place}"


@POSTGRESQL
def test_a_database_that_does_not_exist(tmp_path, server):
    url = url_of(server, server.get("user") or "postgres", server.get("password") or "", "nonesuch")

    ended = start(tmp_path, "up", DATABASE_URL=url)

    refused(ended, 'database "nonesuch" does not exist', "Check host, port, name, user and password in DATABASE_URL")


@POSTGRESQL
def test_a_user_that_does_not_exist_or_has_another_password(tmp_path, server):
    ended = start(tmp_path, "migrate", DATABASE_URL=url_of(server, "nobody_here", "hunter2", "postgres"))

    refused(ended, "nobody_here", "Check host, port, name, user and password in DATABASE_URL")
    assert "hunter2" not in ended.stderr


@POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_a_user_that_may_make_no_tables(tmp_path, server):
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE may_nothing LOGIN PASSWORD 'x'")
    try:
        url = url_of(server, "may_nothing", "x", "postgres")
        ended = start(tmp_path, "migrate", DATABASE_URL=url)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP ROLE may_nothing")

    refused(ended, "permission denied", "create tables")


@SQLITE
@pytest.mark.parametrize("command", ["migrate", "up"])
def test_a_full_disk(tmp_path, command):
    ended = start(tmp_path, command, room=100_000)

    refused(ended, "The disk is full", "ADE_VAR_DIR", "then start again")


@SQLITE
def test_a_full_disk_for_a_postgresql_of_its_own(tmp_path):
    ended = start(tmp_path, "up", "--pg", room=100_000)

    refused(ended, f"PostgreSQL cannot start in {tmp_path}/var/pg: ", "Free disk space")


@SQLITE
def test_a_postgresql_of_another_version(tmp_path):
    (tmp_path / "var" / "pg").mkdir(parents=True)
    (tmp_path / "var" / "pg" / "PG_VERSION").write_text("9")

    ended = start(tmp_path, "up", "--pg")

    refused(ended, f"PostgreSQL cannot start in {tmp_path}/var/pg: Version mismatch", "move the directory away")


@SQLITE
def test_a_disk_without_room_for_a_key(tmp_path):
    ended = start(tmp_path, "migrate", room=10)

    refused(ended, "SECRET_KEY is kept in ", "File too large")
    assert not (tmp_path / "var" / "secret_key").exists()


@SQLITE
@pytest.mark.parametrize(
    ("taken", "said"),
    [
        ("static", "ADE_VAR_DIR is "),
        ("secret_key", "SECRET_KEY is kept in "),
        ("ade.sqlite3", "DATABASE_URL leads to "),
        ("up.lock", "up.lock cannot be used"),
    ],
)
def test_what_cannot_be_written(tmp_path, taken, said):
    """Root can write in every folder, so another file blocks the place where ADE wants to write."""
    (tmp_path / "var").mkdir()
    if taken == "static":
        (tmp_path / "var" / taken).write_text("")
    else:
        (tmp_path / "var" / taken).mkdir()

    refused(start(tmp_path, "up"), said)


@SQLITE
def test_a_folder_that_takes_nothing(tmp_path):
    refused(start(tmp_path, "migrate", ADE_VAR_DIR="/proc/ade"), "ADE_VAR_DIR is '/proc/ade'; use a directory")


@SQLITE
def test_a_database_in_a_folder_that_is_not_there(tmp_path):
    ended = start(tmp_path, "migrate", DATABASE_URL=f"sqlite:///{tmp_path}/none/ade.sqlite3")

    refused(ended, "none/ade.sqlite3 cannot be opened", "Its directory must exist")


@SQLITE
def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "notes.txt").write_text("Not a database. " * 100)

    ended = start(tmp_path, "migrate", DATABASE_URL=f"sqlite:///{tmp_path}/notes.txt")

    refused(ended, "notes.txt is not an SQLite database", "Name another file in DATABASE_URL")


@SQLITE
def test_a_port_that_there_is_not(tmp_path):
    ended = start(tmp_path, "up", "--port=65536")

    refused(ended, "the port must be a number from 1 to 65535, not '65536'")


@SQLITE
def test_a_mistake_of_ours_keeps_its_traceback(tmp_path):
    """SQLite raises the same class of error for a missing table as for an unusable database."""
    ended = start(tmp_path, "shell", "-c", "from runs.models import Run; Run.objects.count()")

    assert ended.returncode != 0
    assert "Traceback" in ended.stderr
    assert "no such table" in ended.stderr
