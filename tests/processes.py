"""Real processes on the database of the test: workers, and scripts that imitate a worker and die."""

import atexit
import json
import os
import signal
import sqlite3
import time
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psutil
from django.conf import settings
from django.db import connection

from tests.forkserver import Forked, Server
from tests.stepping import until

# Python with Django starts in half a second on an idle machine. With ten times more load than processors, it took half
# a minute.
START_SECONDS = 300
# Other writers finish within this time; only a stopped process holds SQLite's lock for longer.
WRITE_SECONDS = 0.3
# By then PostgreSQL has started what a program had sent before it was stopped.
SENT_SECONDS = 0.1
CALL_MAIN = "import importlib, sys, django; django.setup(); importlib.import_module(sys.argv[1]).main(*sys.argv[2:])"


def database_url():
    name = connection.settings_dict["NAME"]
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}"))


def descendants(word):
    """Return the descendants of this process whose command line contains `word`; skip processes that have ended."""
    found = []
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if any(word in part for part in each.cmdline()):
                found.append(each)
    return found


def shown_of(word):
    """Return what other users of this machine might see of these descendants: command lines and environments."""
    seen = []
    for each in descendants(word):
        for name in ("cmdline", "environ"):
            # The process may end before it is read.
            with suppress(FileNotFoundError, ProcessLookupError):
                seen.append(Path(f"/proc/{each.pid}/{name}").read_bytes())
    return seen


def holds_a_lock(program):
    """Return whether this stopped program has a transaction open on the database of the test."""
    if connection.vendor == "postgresql":
        time.sleep(SENT_SECONDS)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND state <> 'idle'", [program]
            )
            return cursor.fetchone()[0] > 0
    name = connection.settings_dict["NAME"]
    with closing(sqlite3.connect(name, timeout=WRITE_SECONDS, isolation_level=None)) as database:
        try:
            database.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        database.execute("ROLLBACK")
        return False


@cache
def fork_server():
    server = Server(settings.BASE_DIR)
    atexit.register(server.end)
    return server


class Program:
    """One process. Its log goes to a file, and its standard output is read as JSON, line by line."""

    def __init__(self, arguments, environment, log):
        self.log = log
        self.known_as = environment["PGAPPNAME"]
        self._arguments = [*map(str, arguments)]
        with open(log, "ab") as file:
            self._process = Forked(fork_server(), self._arguments, environment, settings.BASE_DIR, file.fileno())
        self.pid = self._process.pid
        self.said = []

    def __str__(self):
        how = "alive" if (code := self._process.code()) is None else f"ended with {code}"
        return f"pid {self.pid}, {how}: {' '.join(self._arguments)[:200]}"

    def send(self, number):
        self._process.send_signal(number)

    def freeze(self):
        """Stop it between two of its transactions. Inside one it would keep its locks while it is stopped: on
        PostgreSQL row locks, on SQLite the lock that blocks all writers.
        """
        until(self._stands_still_without_a_lock, every=0.005)

    def _stands_still_without_a_lock(self):
        self.send(signal.SIGSTOP)
        until(self.is_stopped, every=0.001)
        if not holds_a_lock(self.known_as):
            return True
        self.send(signal.SIGCONT)
        return False

    def end_at_once(self):
        """Send a second signal after the first was handled: sent together, the two may arrive as one."""
        self.send(signal.SIGTERM)
        self.until_logged("worker.draining")
        if self.is_alive():
            self.send(signal.SIGTERM)

    def kill(self):
        self.send(signal.SIGKILL)
        return self._process.code(START_SECONDS)

    def code(self, seconds=START_SECONDS):
        """Wait for the end; return the exit status, or the negative signal number."""
        self.said += [json.loads(line) for line in self._process.lines(seconds)]
        code = self._process.code(seconds)
        assert code is not None, f"it goes on after {seconds} s: {self.logged()}"
        return code

    def line(self):
        """Wait for the next line of output; return it parsed."""
        text = self._process.line(START_SECONDS)
        assert text, self.logged()
        self.said.append(json.loads(text))
        return self.said[-1]

    def is_alive(self):
        return self._process.code() is None

    def is_stopped(self):
        """Check all threads: /proc shows the state of the first thread as the state of the process."""
        states = [
            file.read_text().rpartition(")")[2].split()[0] for file in Path(f"/proc/{self.pid}/task").glob("*/stat")
        ]
        return set(states) == {"T"}

    def children(self):
        """Return all descendants, in any session."""
        return psutil.Process(self.pid).children(recursive=True)

    def logged(self):
        return self.log.read_text()

    def until_logged(self, words, seconds=START_SECONDS):
        until(lambda: words in self.logged() or not self.is_alive(), seconds)
        assert words in self.logged(), self.logged()

    def end(self):
        descendants = self.children() if self.is_alive() else []
        if self.is_alive():
            self.send(signal.SIGCONT)
            self.kill()
        for each in descendants:
            # Most end together with their parent, some of them just now.
            with suppress(psutil.NoSuchProcess):
                each.kill()
        self._process.close()


class Programs:
    """The processes that a test has started; none of them outlives the test."""

    def __init__(self, directory):
        self._directory = directory
        self.started = []

    def start(self, *arguments, **environment):
        """Start Python with these arguments and with the DATABASE_URL of the test."""
        values = os.environ | {"DATABASE_URL": database_url(), "PYTHONUNBUFFERED": "1"}
        # The name of its connections in PostgreSQL.
        values["PGAPPNAME"] = f"program {len(self.started)} of {os.getpid()}"
        values |= {name: str(value) for name, value in environment.items()}
        program = Program(arguments, values, self._directory / f"{len(self.started)}.log")
        self.started.append(program)
        return program

    def main(self, module, *arguments, **environment):
        """Start the `main` function of a module, after setting up Django."""
        return self.start("-c", CALL_MAIN, module, *arguments, **environment)

    def worker(self, name="w1", slots="errand=2", **environment):
        arguments = ["manage.py", "worker", "--name", name, "--slots", slots]
        times = {"ADE_LEASE_SECONDS": 2, "ADE_TICK_SECONDS": 1}
        return self.start(*arguments, **(times | environment))

    def end(self):
        for program in self.started:
            program.end()
