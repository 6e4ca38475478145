"""The options for each kind of database, and the connection pool of the web processes."""

import errno
import os
import tempfile
from pathlib import Path
from typing import Any

import environ

from config import environment_reader

# Each web process has its own pool. If a request gets no connection in time, its answer asks the client to try again.
POOL: dict[str, Any] = {"min_size": 2, "max_size": 10, "timeout": 5, "max_idle": 300}
# Give up after some seconds on a server that does not answer, because a worker that waits cannot renew its leases.
POSTGRESQL: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
# All transactions begin as writers, because a deferred transaction that becomes a writer later fails at once instead of
# waiting for the lock. The test database is a file, because threads and processes cannot share one in memory.
SQLITE: dict[str, Any] = {
    "OPTIONS": {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA foreign_keys=ON",
    },
    "TEST": {"NAME": str(Path(tempfile.gettempdir(), f"ade-test-{os.getpid()}.sqlite3"))},
}
# The driver tries again until `connection_timeout` has passed, so Django need not. A statement that takes longer than
# `query_timeout` has probably lost its server.
SQL_SERVER: dict[str, Any] = {"connection_timeout": 5, "connection_retries": 0, "query_timeout": 600}
# Notice a lost connection after 25 seconds.
SQL_SERVER_CONNECTION = {"KeepAlive": "10", "KeepAliveInterval": "1"}


def database(config: dict[str, Any] | None, base_dir: Path, var_dir: Path) -> dict[str, Any]:
    if config is None:
        config = environ.Env.db_url_config(f"sqlite:///{var_dir / 'ade.sqlite3'}")
    if config["ENGINE"] == "django.db.backends.sqlite3":
        config = config | SQLITE | {"NAME": base_dir / config["NAME"]}
        try:
            _keep_private(config["NAME"])
        except OSError as error:
            advice = "use a database in a file that this user can read and write"
            environment_reader.stop([f"DATABASE_URL leads to '{config['NAME']}'; {advice} ({error.strerror})."])
    if config["ENGINE"] == "django.db.backends.postgresql":
        config = config | {"OPTIONS": POSTGRESQL | config.get("OPTIONS", {})}
    if config["ENGINE"] == "mssql":
        connection = SQL_SERVER_CONNECTION | config.get("OPTIONS", {})
        # The driver wants values with special characters in braces.
        parts = (f"{name}={{{str(value).replace('}', '}}')}}}" for name, value in connection.items())
        config = config | {"ENGINE": "work.sqlserver", "OPTIONS": SQL_SERVER | {"extra_params": ";".join(parts)}}
    return config | {"CONN_MAX_AGE": 0}


def pooled(config: dict[str, Any], statement_seconds: int) -> dict[str, Any]:
    """Add a connection pool for the web processes, and limit how long a statement may take. In a web process each
    request has a new thread, and connecting takes longer than most answers. The driver for SQL Server has its own pool.

    Workers and commands must not use a pool, because their threads keep settings on their connections.
    """
    if config["ENGINE"] == "work.sqlserver":
        return config | {"OPTIONS": config["OPTIONS"] | {"query_timeout": statement_seconds}}
    if config["ENGINE"] != "django.db.backends.postgresql":
        return config
    # The database server aborts a statement that takes longer, and the request is answered with 503.
    limit = f"-c statement_timeout={1000 * statement_seconds}"
    options = f"{config['OPTIONS'].get('options', '')} {limit}".strip()
    return config | {"OPTIONS": config["OPTIONS"] | {"pool": POOL, "options": options}, "CONN_HEALTH_CHECKS": True}


def _keep_private(path: Path) -> None:
    """Create the SQLite file so that only this user can read it, because it contains password hashes.

    SQLite gives its other files the same mode. The folder cannot be restricted instead: if root starts PostgreSQL, it
    runs as another user, who must be able to enter the folder.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, mode=0o600))
    except FileExistsError:
        pass
    except FileNotFoundError:
        # The folder is missing. Connecting to the database reports that, and a worker waits for the folder.
        return
    # Check without opening the file, because closing it would release this process's SQLite locks.
    if not path.is_file() or not os.access(path, os.R_OK | os.W_OK):
        raise PermissionError(errno.EACCES, "this user cannot write it" if path.is_file() else "it is not a file")
