import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

pytestmark = [pytest.mark.once, pytest.mark.long]

SHOW = "import os; print(os.environ['DATABASE_URL'], flush=True)"
ASK = """
import os, psycopg
with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    for name in ("fsync", "synchronous_commit", "full_page_writes", "max_connections", "shared_buffers"):
        print(name, connection.execute("SHOW " + name).fetchone()[0])
"""


def started(*arguments):
    command = [sys.executable, "tools/with_postgres.py", *arguments]
    return subprocess.Popen(command, cwd=settings.BASE_DIR, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def directory_in(line):
    return Path(re.search(r"host=(\S+)", line).group(1)).parent


def answers(*arguments):
    process = started(*arguments, sys.executable, "-c", ASK)
    out, _ = process.communicate(timeout=300)
    return dict(line.split() for line in out.splitlines())


def test_the_command_has_a_database_and_its_code_is_ours():
    process = started(sys.executable, "-c", f"{SHOW}; raise SystemExit(7)")
    out, _ = process.communicate(timeout=300)

    assert process.returncode == 7
    assert not directory_in(out).exists()


def test_it_is_fast_by_default_and_durable_when_asked():
    fast, durable = answers(), answers("--durable")

    assert (fast["fsync"], fast["synchronous_commit"], fast["full_page_writes"]) == ("off", "off", "off")
    assert (durable["fsync"], durable["synchronous_commit"], durable["shared_buffers"]) == (
        "on",
        "on",
        "512MB",
    )
    assert (fast["max_connections"], durable["max_connections"]) == ("400", "100")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_the_command_and_everything_is_put_away(number):
    wait = "import signal, sys; signal.signal({0}, lambda *a: sys.exit(5)); {1}; signal.pause()"
    process = started(sys.executable, "-c", wait.format(int(number), SHOW))
    directory = directory_in(process.stdout.readline())
    assert directory.exists()

    os.kill(process.pid, number)

    assert process.wait(300) == 5
    assert not directory.exists()
    process.stdout.close()


def test_without_a_command_it_explains_itself():
    ended = subprocess.run(
        [sys.executable, "tools/with_postgres.py"],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 1
    assert "Usage: with_postgres.py" in ended.stderr
