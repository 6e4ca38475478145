"""Outages of the environment: full disks, no free connection, queries that time out; with the real errors of the real
components.
"""

import json
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from django.db import OperationalError, connection, transaction
from psycopg_pool import ConnectionPool, PoolTimeout

from api import outages
from tests.api.programs import V1, problem_of
from tests.config.test_handler import Client as Asgi
from work import health
from workspaces.models import Workspace

pytestmark = pytest.mark.edge
PAGE, SIGN_IN = "/sign-in/", "console.signing_in.SignIn.get_context_data"
WITHOUT_END = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def full_disk(monkeypatch, settings):
    """Make uploads that do not fit into memory go to a device that is full."""
    settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 10
    # The upload handler closes it like a temporary file.
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda *_, **__: Path("/dev/full").open("r+b", 0))  # noqa: SIM115


@pytest.mark.parametrize("path", ["/documents", "/admin/documents/document/add/"])
def test_an_upload_that_finds_no_room_is_told(full_disk, path):
    client = Asgi(path, [b"x" * 1000] * 50, "POST").ask()

    assert client.status == 507
    assert client.taken == 50
    assert b"The disk is full." in client.bodies[0]
    assert len(client.headers["X-Request-ID"]) == 32
    if path == "/documents":
        assert json.loads(client.bodies[0])["code"] == "disk_full"


def fill_the_database():
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '53100'; END $$")
    with connection.cursor() as cursor:
        # The database may not grow while this connection is open.
        cursor.execute("PRAGMA max_page_count = 1")
    for number in range(2000):
        Workspace.objects.create(name=f"{number} {'x' * 60}")


def ask_without_end():
    with connection.cursor() as cursor:
        cursor.execute(WITHOUT_END)


def wait_for_a_connection():
    """Raise the error of an exhausted connection pool, as Django does."""
    pool = ConnectionPool("host=127.0.0.1 port=1 connect_timeout=1", min_size=0, max_size=1, open=True)
    try:
        with closing(pool), pool.connection(timeout=0.05):
            pass
    except PoolTimeout as error:
        raise OperationalError(str(error)) from error


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("path", "where"), [(f"{V1}/health", "work.health.disk_is_full"), (PAGE, SIGN_IN)])
@pytest.mark.parametrize(
    ("act", "status", "code", "said"),
    [
        (fill_the_database, 507, "disk_full", "disk is full"),
        (ask_without_end, 503, "too_slow", "took too long"),
        (wait_for_a_connection, 503, "busy", "connections of this web process are in use"),
    ],
)
def test_what_is_wrong_outside_has_a_code_of_its_own(
    client, settings, monkeypatch, path, where, act, status, code, said
):
    settings.ADE_WEB_STATEMENT_SECONDS = 0.2
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 200")

    def fail(*_, **__):
        with transaction.atomic():
            act()

    monkeypatch.setattr(where, fail)

    answer = client.get(path)
    connection.close()

    assert answer.status_code == status
    assert answer["Retry-After"] == "5"
    assert said in answer.content.decode()
    assert "database does not answer" not in answer.content.decode()
    if path != PAGE:
        assert problem_of(answer) == (status, code)


def test_a_mistake_of_our_own_is_none_of_these():
    assert outages.problem_of(ValueError("x")) is None
    assert outages.problem_of(FileNotFoundError(2, "x")) is None


@pytest.mark.django_db
def test_health_knows_that_the_disk_is_full(client, monkeypatch):
    monkeypatch.setattr(health, "FULL_BYTES", 1 << 60)

    answer = client.get(f"{V1}/health")

    assert problem_of(answer) == (507, "disk_full")
    assert answer.json()["details"] == {"status": "failing"}


def test_a_database_that_does_not_answer_for_want_of_room_is_a_full_disk(client, monkeypatch):
    monkeypatch.setattr(health, "FULL_BYTES", 1 << 60)
    monkeypatch.setattr(health, "database_answers", lambda _: False)

    assert problem_of(client.get(f"{V1}/health")) == (507, "disk_full")


@pytest.mark.only_on("sqlite")
def test_sqlite_that_cannot_be_opened_for_want_of_room_is_a_full_disk(monkeypatch):
    error = OperationalError("unable to open database file")
    assert outages.problem_of(error).code == "unavailable"

    monkeypatch.setattr(health, "FULL_BYTES", 1 << 60)

    assert outages.problem_of(error).code == "disk_full"


@pytest.mark.django_db
def test_what_is_wrong_before_a_view_is_told_too(client, monkeypatch):
    """The middleware reads a session before any view runs."""
    client.raise_request_exception = False
    monkeypatch.setattr("django.contrib.sessions.backends.db.SessionStore.load", lambda _: wait_for_a_connection())
    client.cookies["sessionid"] = "x" * 32

    answer = client.get("/admin/")

    assert (answer.status_code, answer["Retry-After"]) == (503, "5")


@pytest.mark.django_db
def test_a_session_that_cannot_be_read_is_not_asked_for_again_on_the_way_out(client, monkeypatch, settings):
    """With DEBUG, what fails around a view is shown as a mistake of ours."""
    settings.DEBUG = True
    client.raise_request_exception = False
    monkeypatch.setattr("django.contrib.sessions.backends.db.SessionStore.load", lambda _: wait_for_a_connection())
    client.cookies["sessionid"] = "x" * 32

    answer = client.get("/")

    assert (answer.status_code, answer["Retry-After"]) == (503, "5")


@pytest.mark.django_db(transaction=True)
def test_a_pool_that_cannot_connect_is_not_busy(monkeypatch):
    """A caller that waits for a connection gets the same PoolTimeout in both cases."""
    monkeypatch.setattr(health, "database_answers", lambda _: False)

    assert outages.problem_of(PoolTimeout()).code == "unavailable"
