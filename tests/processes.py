"""Real processes on the database of the test: workers, and scripts that do what a worker does, and die of it."""

import json
import os
import signal
import subprocess
import sys
from urllib.parse import urlsplit, urlunsplit

import psutil
from django.conf import settings
from django.db import connection

from tests.stepping import until

# A Python with Django in it starts in half a second, on a machine that has nothing else to do.
START_SECONDS = 30
CALL_MAIN = "import importlib, sys, django; django.setup(); importlib.import_module(sys.argv[1]).main(*sys.argv[2:])"


def database_url():
    name = connection.settings_dict["NAME"]
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}"))


class Program:
    """One process. Its log is kept in a file, and what it says on its standard output is read as JSON, line by line."""

    def __init__(self, arguments, environment, log):
        self.log = log
        with open(log, "ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, *map(str, arguments)],
                cwd=settings.BASE_DIR,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        self.pid = self._process.pid
        self.said = []

    def send(self, number):
        self._process.send_signal(number)

    def end_at_once(self):
        """The second signal: sent together with the first, the two may arrive as one."""
        self.send(signal.SIGTERM)
        self.until_logged("worker.draining")
        if self.is_alive():
            self.send(signal.SIGTERM)

    def kill(self):
        self._process.kill()
        return self._process.wait(START_SECONDS)

    def code(self, seconds=START_SECONDS):
        """How it ended; minus the signal, if by one."""
        out, _ = self._process.communicate(timeout=seconds)
        self.said += [json.loads(line) for line in out.splitlines()]
        return self._process.returncode

    def line(self):
        """The next thing that it says."""
        text = self._process.stdout.readline()
        assert text, self.logged()
        self.said.append(json.loads(text))
        return self.said[-1]

    def is_alive(self):
        return self._process.poll() is None

    def is_stopped(self):
        return psutil.Process(self.pid).status() == psutil.STATUS_STOPPED

    def children(self):
        """All that it has started, in whatever session."""
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
            if each.is_running():
                each.kill()
        self._process.stdout.close()


class Programs:
    """All that a test has started, so that nothing of it outlives the test."""

    def __init__(self, directory):
        self._directory = directory
        self.started = []

    def start(self, *arguments, **environment):
        """A Python with these arguments; DATABASE_URL is that of the test."""
        values = os.environ | {"DATABASE_URL": database_url(), "PYTHONUNBUFFERED": "1"}
        values |= {name: str(value) for name, value in environment.items()}
        program = Program(arguments, values, self._directory / f"{len(self.started)}.log")
        self.started.append(program)
        return program

    def main(self, module, *arguments, **environment):
        """The `main` of a module, with Django set up before."""
        return self.start("-c", CALL_MAIN, module, *arguments, **environment)

    def worker(self, name="w1", slots="errand=2", **environment):
        arguments = ["manage.py", "worker", "--name", name, "--slots", slots]
        times = {"ADE_LEASE_SECONDS": 2, "ADE_TICK_SECONDS": 1}
        return self.start(*arguments, **(times | environment))

    def end(self):
        for program in self.started:
            program.end()
