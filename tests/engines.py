"""Real engines in a real environment, and a witness that sees which of them are at work.

The step of the witness configuration connects to a socket of the test and sends messages while it works. The kernel
closes the connection when the process ends, however it ends; a later connection comes from a later process.
"""

import json
import os
import selectors
import shutil
import socket
import struct
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from threading import Thread

import psutil
from django.conf import settings

from builds import builder, fingerprint
from builds.builder import Watch
from runs import lifecycle as runs
from tests.factories import BuildFactory, ConfigurationFactory, DocumentFactory, events_of
from tests.stepping import DEADLINE_SECONDS, until
from work.processes import sandbox

# Behaves as the text of its document says. `at` is read from a clock that all processes of a machine share.
MAIN = """
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

from ade_engine import Context, step

HERE = Path(__file__).parent


class Stamp:
    def __init__(self, **values):
        self.values = {"pid": os.getpid(), **values}
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.connection.connect((HERE / "witness.txt").read_text())

    def __call__(self, what):
        line = {"what": what, "at": time.monotonic(), **self.values}
        self.connection.sendall(json.dumps(line).encode() + b"\\n")

    def until(self, moment):
        while time.monotonic() < moment:
            self("works")
            time.sleep(0.01)


if ".building-" in sys.prefix:
    making = Stamp(run=0, document=0, attempt=0, doing="making")
    making("start")
    making.until(time.monotonic() + float((HERE / "seconds.txt").read_text()))
    making("end")


@step
def work(context: Context) -> None:
    orders = json.loads(context.document.text)
    if orders.get("deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    stamp = Stamp(run=context.run_id, document=context.document.id, attempt=context.attempt, doing="running")
    stamp("start")
    if kept := orders.get("keeps"):
        context.artifact(kept, "as asked")
    stamp.until(time.monotonic() + orders.get("seconds", 0))
    if size := orders.get("memory"):
        bytearray(size)
    if context.attempt <= orders.get("fails", 0):
        raise ValueError(f"attempt {context.attempt} as asked")
    stamp("end")
"""


@dataclass(eq=False)
class Seen:
    """One attempt at the step of a run, or one build of the environment, as far as the witness has seen it."""

    connection: socket.socket
    # The PID outside the sandbox, from the credentials of the socket.
    pid: int
    unread: bytes = b""
    run: int = 0
    document: int = 0
    attempt: int = 0
    doing: str = ""
    began: float = 0.0
    last: float = 0.0
    finished: bool = False
    gone: bool = False
    # The others of the same kind that were at work when this one began.
    beside: list["Seen"] = field(default_factory=list)

    def was_at_work(self, moment):
        """Return whether it was at work at `moment`: seen later, or not ended although all earlier messages have been
        read.
        """
        return self.began < moment and (not self.gone or self.last > moment)


class Witness:
    def __init__(self):
        self._directory = tempfile.mkdtemp(prefix="ade-witness-")
        self.path = os.path.join(self._directory, "socket")
        # The sandbox hides the socket from engines unless it is listed, here and in workers (tests/testwork).
        self._shown, sandbox.SETTINGS = sandbox.SETTINGS, (*sandbox.SETTINGS, self._directory)
        os.environ["ADE_TEST_SHOWN"] = self._directory
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(self.path)
        self._listening.listen(512)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ, self._accept)
        self._seen = []
        self._numbers, self._marked = count(1), 0
        self._ending = False
        self.troubles = []
        self._thread = Thread(target=self._look, daemon=True)
        self._thread.start()

    def of(self, run):
        """Return the attempts at this run that have begun by now, oldest first."""
        self._catch_up()
        return sorted((each for each in self.running() if each.run == run.pk), key=lambda each: each.began)

    def _catch_up(self):
        """Wait until all earlier messages have been read: they arrive before this mark."""
        mark = next(self._numbers)
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as own:
            own.connect(self.path)
            own.sendall(json.dumps({"what": "mark", "at": mark}).encode() + b"\n")
        until(lambda: self._marked >= mark)

    def running(self):
        return [each for each in list(self._seen) if each.doing == "running"]

    def making(self):
        return [each for each in list(self._seen) if each.doing == "making"]

    def at_work(self):
        return [each for each in self.running() if not each.gone]

    def until_at_work(self, run):
        """Wait until an engine works on the run; return it."""

        def look():
            run.refresh_from_db()
            assert run.status not in run.TERMINAL, f"{run.status}: {run.error_message}"
            return next((each for each in self.of(run) if not each.gone), None)

        return until(look)

    def overlaps(self):
        """Return the pairs of runs of the same document that were at work at the same time."""
        return [(a.run, b.run) for a in self.running() for b in a.beside if a.document == b.document]

    def most_at_once(self, key=lambda seen: None):
        """Return the largest number of engines with the same key that were at work at the same time."""
        return max(1 + sum(key(other) == key(each) for other in each.beside) for each in self.running())

    def end(self):
        self._ending = True
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()
        shutil.rmtree(self._directory)
        sandbox.SETTINGS = self._shown
        del os.environ["ADE_TEST_SHOWN"]
        assert not self.troubles, self.troubles

    def _look(self):
        while not self._ending:
            for key, _ in self._selector.select(0.1):
                try:
                    key.data()
                except Exception as error:
                    self.troubles.append(repr(error))

    def _accept(self):
        connection, _ = self._listening.accept()
        connection.setblocking(False)
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        seen = Seen(connection, struct.unpack("3i", credentials)[0])
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._read(seen))

    def _read(self, seen):
        """Read all available messages, and note the end of the connection."""
        while not seen.gone:
            try:
                data = seen.connection.recv(1 << 16)
            except BlockingIOError:
                break
            except ConnectionResetError:
                data = b""
            *lines, seen.unread = (seen.unread + data).split(b"\n")
            for line in lines:
                self._hear(seen, json.loads(line))
            if not data:
                self._selector.unregister(seen.connection)
                seen.connection.close()
                seen.gone = True

    def _hear(self, seen, told):
        if told["what"] == "mark":
            self._marked = told["at"]
            return
        seen.last = told["at"]
        seen.finished = told["what"] == "end"
        if told["what"] == "start":
            seen.run, seen.document, seen.attempt = told["run"], told["document"], told["attempt"]
            seen.doing, seen.began = told["doing"], told["at"]
            self._meet(seen)

    def _meet(self, seen):
        """Record the overlaps with this engine; its start message may also arrive after the start of a later engine."""
        for other in self._seen:
            if other.doing != seen.doing:
                continue
            if not other.gone:
                self._read(other)
            if other.was_at_work(seen.began):
                seen.beside.append(other)
            elif other.began > seen.began and seen.was_at_work(other.began):
                other.beside.append(seen)
        self._seen.append(seen)


class Site:
    """An installation with its own directory and workers, and a configuration that the witness watches."""

    def __init__(self, programs, witness, directory, make_seconds=0):
        self.programs, self.witness, self.directory = programs, witness, directory
        files = {"main.py": MAIN, "witness.txt": witness.path, "seconds.txt": str(make_seconds)}
        self.configuration = ConfigurationFactory(name="witness", files=files, entry_point="main")
        self.workspace = self.configuration.workspace

    def build(self):
        """Build the environment in this process and create its row."""
        snapshot = self.configuration.snapshot()
        wanted = fingerprint.of_build(fingerprint.of_contents(snapshot))
        builder.make(snapshot, wanted, Watch(until=time.monotonic() + 60))
        return BuildFactory(configuration=self.configuration, status="ready")

    def document(self, **orders):
        columns = {"file": "", "content_type": "text/plain", "text": json.dumps(orders)}
        return DocumentFactory(workspace=self.workspace, status="processed", **columns)

    def submit(self, document=None, **orders):
        """Submit a run over this document, or over a new one with these orders."""
        return runs.submit(self.configuration, document or self.document(**orders), actor="olga")

    def worker(self, name="w1", slots="run=2", **environment):
        """Start a worker with a lease long enough for a slow machine, unless a test shortens it."""
        values = {"ADE_VAR_DIR": self.directory, "ADE_LEASE_SECONDS": 60, **environment}
        return self.programs.worker(name, slots, **values)

    def engines(self):
        """Return all processes of the environment's Python, including warm ones that wait for work."""
        return [each for each in psutil.process_iter(["cmdline"]) if self._is_engine(each.info["cmdline"] or [])]

    def _is_engine(self, command):
        environments = str(self.directory / "environments")
        return "ade_engine" in command and any(word.startswith(environments) for word in command)

    def left_behind(self):
        """Return the files that remain in the directory of engines, except the locks directory."""
        root = self.directory / "engines"
        return [path for path in root.iterdir() if path.name != ".locks"] if root.exists() else []


def create_site(programs, witness, make_seconds=0):
    return Site(programs, witness, settings.VAR_DIR, make_seconds)


def kinds_of(row, *leaving_out):
    """Return the kinds of the row's events, except log lines and steps."""
    left_out = {"LOG", "STEP_STARTED", "STEP_SUCCEEDED", *leaving_out}
    return [kind for kind in events_of(row).values_list("kind", flat=True) if kind not in left_out]


def outcome_of(run):
    run.refresh_from_db()
    return run.status, run.failure_type


def until_ended(*rows, seconds=DEADLINE_SECONDS):
    """Wait until all of the rows have ended; return the outcome of the first."""
    until(lambda: all(type(row).objects.get(pk=row.pk).status in row.TERMINAL for row in rows), seconds)
    return outcome_of(rows[0])
