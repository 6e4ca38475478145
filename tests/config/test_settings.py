import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import environ
import pytest
from django.conf import settings
from django.db import connection
from django.views.debug import get_default_exception_reporter_filter

from config import databases
from tests.azurite import KEY, connection_string, storages

pytestmark = pytest.mark.edge

LOG_BOTH_WAYS = """
import logging, structlog
structlog.contextvars.bind_contextvars(run_id=7)
structlog.get_logger("ade.test").info("ours", worker="w1")
logging.getLogger("some.library").warning("theirs %s", 1)
"""


def log_lines(tmp_path, **variables):
    ended = subprocess.run(
        [sys.executable, "manage.py", "shell", "--verbosity=0", f"--command={LOG_BOTH_WAYS}"],
        cwd=settings.BASE_DIR,
        env={"PATH": os.environ["PATH"], "ADE_VAR_DIR": str(tmp_path), "ADE_ENV_FILE": os.devnull} | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stderr.splitlines()


@pytest.mark.django_db
def test_sqlite_waits_for_its_turn_and_keeps_references():
    if connection.vendor != "sqlite":
        assert settings.DATABASES["default"]["CONN_MAX_AGE"] == 0
        return
    with connection.cursor() as cursor:
        pragmas = {
            name: cursor.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "foreign_keys", "busy_timeout")
        }

    assert pragmas == {"journal_mode": "wal", "foreign_keys": 1, "busy_timeout": 20_000}
    assert connection.transaction_mode == "IMMEDIATE"
    assert Path(connection.settings_dict["NAME"]).is_file()


def test_json_logs_are_one_object_per_line_with_what_is_bound(tmp_path):
    ours, theirs = [json.loads(line) for line in log_lines(tmp_path, ADE_LOG_FORMAT="json")]

    assert (ours["event"], ours["level"], ours["worker"], ours["run_id"]) == ("ours", "info", "w1", 7)
    assert (theirs["event"], theirs["logger"], theirs["run_id"]) == ("theirs 1", "some.library", 7)
    assert ours["timestamp"].endswith("Z")


def test_text_logs_are_keys_and_values(tmp_path):
    ours, _ = log_lines(tmp_path)

    assert ours.startswith("timestamp='20")
    assert ours.endswith("level='info' event='ours' logger='ade.test' run_id=7 worker='w1'")


def test_the_log_level_is_obeyed(tmp_path):
    [theirs] = log_lines(tmp_path, ADE_LOG_LEVEL="WARNING")

    assert "theirs" in theirs


ASK = """
from django.test import Client
for path in ("/nowhere?token=canary", "/api/v1/nowhere?token=canary", "/api/v1/runs?token=canary", "/files/?s=canary"):
    Client(raise_request_exception=False).get(path)
"""


@pytest.mark.parametrize("debug", ["true", "false"])
def test_query_strings_are_in_no_log(tmp_path, monkeypatch, debug):
    monkeypatch.setattr("tests.config.test_settings.LOG_BOTH_WAYS", ASK)
    key = {"DEBUG": debug, "SECRET_KEY": "k3y-of-many-letters" * 3, "ALLOWED_HOSTS": "testserver"}

    lines = log_lines(tmp_path, ADE_LOG_LEVEL="DEBUG", **key)

    assert any("GET /nowhere" in line for line in lines) or debug == "false"
    assert "canary" not in "".join(lines)


def test_a_log_of_gunicorn_has_no_query_strings(monkeypatch):
    # Importing it enables connection pooling for this process, which must not affect other tests.
    monkeypatch.setitem(settings.DATABASES, "default", settings.DATABASES["default"])
    server = importlib.import_module("config.server")

    # `r` is the request line, `q` the query, `f` the referer.
    assert not set(re.findall(r"%\((.)\)", server.access_log_format)) & set("rqf")


@pytest.mark.django_db
def test_the_root_is_the_page_of_what_needs_somebody(client):
    assert client.get("/").headers["Location"] == "/sign-in/?next=/"


@pytest.mark.django_db
def test_pages_allow_no_foreign_and_no_inline_script(client):
    policy = client.get("/admin/login/").headers["Content-Security-Policy"]

    assert "script-src 'self';" in f"{policy};"
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


def test_pages_about_errors_leave_out_what_opens_the_storage(settings):
    settings.STORAGES = storages(connection_string("http://127.0.0.1:1/ade"), "documents")
    settings.ENV = settings.ENV | {"ADE_AZURE_STORAGE_CONNECTION": connection_string("http://127.0.0.1:1/ade")}

    shown = str(get_default_exception_reporter_filter().get_safe_settings())

    assert KEY not in shown
    assert settings.SECRET_KEY not in shown
    assert "documents.blobs.Blobs" in shown


def test_the_file_of_sqlite_is_for_its_owner_alone(tmp_path):
    path = tmp_path / "ade.sqlite3"

    databases.database({"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)}, settings.BASE_DIR, settings.VAR_DIR)

    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("kept")
    path.chmod(0o640)
    databases.database({"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)}, settings.BASE_DIR, settings.VAR_DIR)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("kept", 0o640)


def test_a_file_of_sqlite_in_a_folder_that_is_not_there_is_told_by_who_connects(tmp_path):
    name = str(tmp_path / "nowhere" / "ade.sqlite3")

    assert databases.database(
        {"ENGINE": "django.db.backends.sqlite3", "NAME": name}, settings.BASE_DIR, settings.VAR_DIR
    )["NAME"] == Path(name)


def test_only_the_web_keeps_connections_and_a_bounded_number():
    config = databases.database(
        {"ENGINE": "django.db.backends.postgresql", "NAME": "ade"}, settings.BASE_DIR, settings.VAR_DIR
    )

    assert "pool" not in config["OPTIONS"]
    kept = databases.pooled(config, settings.ADE_WEB_STATEMENT_SECONDS)
    assert 1 <= kept["OPTIONS"]["pool"]["max_size"] <= 20
    assert (kept["CONN_MAX_AGE"], kept["CONN_HEALTH_CHECKS"]) == (0, True)
    assert kept["OPTIONS"]["options"] == "-c statement_timeout=30000"
    config["OPTIONS"]["options"] = "-c search_path=ade"
    assert (
        databases.pooled(config, settings.ADE_WEB_STATEMENT_SECONDS)["OPTIONS"]["options"]
        == "-c search_path=ade -c statement_timeout=30000"
    )
    sqlite = {"ENGINE": "django.db.backends.sqlite3", "NAME": "ade"}
    assert databases.pooled(sqlite, settings.ADE_WEB_STATEMENT_SECONDS) == sqlite


def test_each_wait_for_sql_server_has_an_end():
    url = environ.Env.db_url_config("mssql://ade:p@host:1433/ade?Encrypt=strict&HostnameInCertificate=a;b}")
    config = databases.database(url, settings.BASE_DIR, settings.VAR_DIR)
    options = config["OPTIONS"]

    assert (config["ENGINE"], config["HOST"], config["PORT"]) == ("work.sqlserver", "host", 1433)
    assert 0 < options["connection_timeout"] < 10
    assert (options["connection_retries"], options["query_timeout"]) == (0, 600)
    assert options["extra_params"].endswith("Encrypt={strict};HostnameInCertificate={a;b}}}")
    assert databases.pooled(config, 30)["OPTIONS"] == options | {"query_timeout": 30}
