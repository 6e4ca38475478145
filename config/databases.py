"""The options of each kind of database, and the connection pool of the web."""

import errno
import os
import tempfile
from pathlib import Path
from typing import Any

import environ

from config import environment_reader

# Per process. A request that gets no connection in time is answered with a request to try again.
POOL: dict[str, Any] = {"min_size": 2, "max_size": 10, "timeout": 5, "max_idle": 300}
# Give up after seconds on a server that does not answer: a worker that waits cannot renew its leases.
POSTGRESQL: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
# A deferred transaction that becomes a writer fails at once instead of waiting, so all transactions begin as writers.
# The test database is a file, because threads and other processes cannot share one in memory.
SQLITE: dict[str, Any] = {
    "OPTIONS": {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA foreign_keys=ON",
    },
    "TEST": {"NAME": str(Path(tempfile.gettempdir(), f"ade-test-{os.getpid()}.sqlite3"))},
}


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
    return config | {"CONN_MAX_AGE": 0}


def pooled(config: dict[str, Any], statement_seconds: int) -> dict[str, Any]:
    """Add a connection pool for the web, where each request has a new thread and connecting takes longer than most
    answers.

    Workers and commands must not use it, because their threads keep settings on their connections.
    """
    if config["ENGINE"] != "django.db.backends.postgresql":
        return config
    # The server aborts a longer statement, and the answer is a 503.
    limit = f"-c statement_timeout={1000 * statement_seconds}"
    options = f"{config['OPTIONS'].get('options', '')} {limit}".strip()
    return config | {"OPTIONS": config["OPTIONS"] | {"pool": POOL, "options": options}, "CONN_HEALTH_CHECKS": True}


def _keep_private(path: Path) -> None:
    """Create the SQLite file readable only by this user, because it contains password hashes.

    SQLite gives its other files the same mode. Restricting the folder would not do: PostgreSQL started by root runs as
    another user, who must be able to enter it.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, mode=0o600))
    except FileExistsError:
        pass
    except FileNotFoundError:
        # Connecting reports the missing folder; a worker waits for it.
        return
    # Check without opening the file: closing it would release the SQLite locks of this process.
    if not path.is_file() or not os.access(path, os.R_OK | os.W_OK):
        raise PermissionError(errno.EACCES, "this user cannot write it" if path.is_file() else "it is not a file")
