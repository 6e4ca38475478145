"""Start Python programs by fork, from a process that has already imported Django and its libraries.

A program that a test starts spends most of its first second on imports. The server imports everything that does not
depend on settings once, and forks a program from there in a few milliseconds. Such a program is a process like any
other: it has its own environment, working directory, output and log, it can be killed and stopped, and it ends as
Python ends.

The client sends a JSON message over a socket, with three descriptors: for standard output, for standard error, and for
the exit status. The server answers with the PID.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time

# None of these modules reads settings at import. Each program imports the others itself.
PRELOADED = """
    anyio asyncio concurrent.futures decimal email.message http.client multiprocessing.queues
    multiprocessing.sharedctypes shlex sqlite3 ssl tempfile tomllib uuid xml.etree.ElementTree zoneinfo
    django.contrib.admin.utils django.contrib.auth.hashers django.contrib.messages.storage.fallback
    django.contrib.postgres.search django.contrib.sessions.backends.db django.core.cache.backends.locmem
    django.core.handlers.asgi django.core.mail django.core.management.commands.migrate
    django.core.management.commands.runserver django.core.serializers.json django.db.backends.postgresql.base
    django.db.backends.sqlite3.base django.db.migrations.executor django.forms.models django.http.multipartparser
    django.middleware.http django.template.defaultfilters django.template.loader django.test.signals
    django.urls.resolvers django.utils.feedgenerator django.views.debug django.views.generic croniter csp.middleware
    environ feedparser h11 httpcore2 httpx2 packaging.version picklefield.fields psutil psycopg psycopg.types.json
    psycopg_pool pydantic.main pydantic.networks pydantic.type_adapter structlog structlog.dev truststore
    whitenoise.middleware
"""
UNBUFFERED = {"PYTHONUNBUFFERED": "1"}
# A request contains a whole environment.
LARGEST = 1 << 18


class Server:
    """A fork server; each pytest process has one."""

    def __init__(self, directory):
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.forkserver", str(theirs.fileno())],
            cwd=directory,
            # Without the variable, a preloaded module that reads a setting fails.
            env={name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"} | UNBUFFERED,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._lock = threading.Lock()

    def fork(self, program, *descriptors):
        """Start a program; return its PID."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(program).encode()], descriptors)
            answer = self._socket.recv(LARGEST)
        assert answer, "the fork server has died"
        return int(answer)

    def end(self):
        """The server ends when its socket is closed."""
        self._socket.close()
        self._process.wait()


class Forked:
    """A forked program, and its standard output."""

    def __init__(self, server, arguments, environment, directory, stderr):
        self._output, output = _pipe()
        self._end, end = _pipe()
        program = {"arguments": arguments, "environment": environment, "directory": str(directory)}
        self.pid = server.fork(program, output.fileno(), stderr, end.fileno())
        output.close()
        end.close()
        self._unread = b""
        self._status = None

    def code(self, seconds=0):
        """Return the exit status (the negative signal number if a signal ended it), or None if it is still running
        after this many seconds.
        """
        if self._status is None and select.select([self._end], [], [], seconds)[0]:
            said = self._end.read(16)
            assert said, "the fork server has died"
            self._status = int(said)
        return None if self._status is None else os.waitstatus_to_exitcode(self._status)

    def send_signal(self, number):
        if self.code() is None:
            # The program may end before the signal is sent.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def line(self, seconds):
        """Return the next line of output; empty after the end of the output."""
        give_up_at = time.monotonic() + seconds
        while b"\n" not in self._unread and self._read(give_up_at):
            pass
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def lines(self, seconds):
        """Return all remaining lines, until the program closes its output."""
        give_up_at = time.monotonic() + seconds
        while self._read(give_up_at):
            pass
        text, self._unread = self._unread.decode(), b""
        return text.splitlines()

    def close(self):
        self._output.close()
        self._end.close()

    def _read(self, give_up_at):
        if not select.select([self._output], [], [], max(0, give_up_at - time.monotonic()))[0]:
            raise TimeoutError(f"process {self.pid} goes on without a word")
        data = self._output.read(1 << 16)
        self._unread += data
        return data


def _pipe():
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb", buffering=0), os.fdopen(writing, "wb", buffering=0)


def serve(fd):
    """Fork a child for each request; return only in a child, with its request."""
    for name in PRELOADED.split():
        importlib.import_module(name)
    # Keep the garbage collector from touching objects, so that their pages stay shared.
    gc.freeze()
    asked = socket.socket(fileno=fd)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    # Python writes to the wakeup descriptor only for signals that have a Python handler.
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake)
    ends = {}
    while True:
        ready, _, _ = select.select([asked, woken], [], [])
        if woken in ready:
            os.read(woken, 1 << 16)
            _reap(ends)
        if asked in ready:
            request, descriptors, _, _ = socket.recv_fds(asked, LARGEST, 3)
            if not request:
                sys.exit()
            output, errors, end = descriptors
            if (pid := os.fork()) == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                asked.close()
                os.dup2(output, 1)
                os.dup2(errors, 2)
                for each in (woken, wake, output, errors, end, *ends.values()):
                    os.close(each)
                return json.loads(request)
            ends[pid] = end
            os.close(output)
            os.close(errors)
            asked.send(str(pid).encode())


def _reap(ends):
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            end = ends.pop(pid)
            # The client may have closed its end.
            with contextlib.suppress(BrokenPipeError):
                os.write(end, str(status).encode())
            os.close(end)


def become(program):
    """Run these arguments as Python's command line would."""
    os.environ.clear()
    os.environ.update(program["environment"])
    os.chdir(program["directory"])
    what, *arguments = program["arguments"]
    if what == "-c":
        code, *arguments = arguments
        sys.argv = ["-c", *arguments]
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102  # as `python -c` does
    elif what == "-m":
        module, *arguments = arguments
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [what, *arguments]
        runpy.run_path(what, run_name="__main__")


if __name__ == "__main__":
    become(serve(int(sys.argv[1])))
