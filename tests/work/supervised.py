"""Helpers of the supervision tests: the witness, the sandbox levels, and which processes are alive on this machine."""

import contextlib
import json
import os
import select
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from ade_keeper import proc
from config import PROGRAMS
from work.processes import groups, supervise
from work.processes.supervise import Limits, Line, ProcessId

ROOT = Path(__file__).parents[2]
PYTHON = [sys.executable, "-I", "-S"]
SCRIPT = str(Path(__file__).with_name("witness.py"))
# Passed as an argument, because the sandbox hides the file.
SOURCE = Path(SCRIPT).read_text("utf-8")

needs_bubblewrap = pytest.mark.skipif(
    supervise.sandbox_level() != "bubblewrap", reason="bubblewrap is not installed, or this machine forbids it"
)
needs_groups = pytest.mark.skipif(groups.folder() is None, reason="no control groups can be made on this machine")
LEVELS = ["limits", pytest.param("bubblewrap", marks=needs_bubblewrap)]
each_level = pytest.mark.parametrize("sandbox", LEVELS)
# If a test fails to end its child, this limit does so soon.
SHORT = Limits(wall_seconds=200)
# How much a busy machine may add to any duration.
BUSY_SECONDS = 40


def witness(*mode):
    return [*PYTHON, "-c", SOURCE, *map(str, mode)]


class Said(list[Line]):
    """Collects the output through `on_output`."""

    def __call__(self, lines):
        self.extend(lines)

    @property
    def texts(self):
        return [line.text for line in self]

    @property
    def json(self):
        return json.loads(self.texts[0])

    def heard(self, word):
        return any(text.split()[:1] == [word] for text in self.texts)


def run(mode, cwd, **options):
    """Run the witness; return its end and its output."""
    said = Said()
    options.setdefault("limits", SHORT)
    return supervise.run(witness(*mode), cwd=cwd, on_output=said, **options), said


def run_until(word, mode, cwd, **options):
    """Run the witness, and stop it as soon as it has printed this word."""
    said = Said()
    options.setdefault("limits", SHORT)
    ended = supervise.run(
        witness(*mode), cwd=cwd, on_output=said, stop=lambda: "enough" if said.heard(word) else None, **options
    )
    return ended, said


def wait_for(word, child, said):
    while not said.heard(word):
        assert child.poll(5) is None, child.ended


def token():
    return f"token-{uuid.uuid4().hex}"


def carriers(token):
    """Return the processes with this word among their arguments, in any session, group or PID namespace."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        process = ProcessId.of(int(name))
        try:
            arguments = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if token.encode() in arguments and process and process.alive():
            found.append(process)
    return found


def all_gone(token, seconds=20):
    until = time.monotonic() + seconds
    while left := carriers(token):
        if time.monotonic() > until:
            return False
        gone(left[0].pid, 0.2)
    return True


def gone(pid, seconds=20.0):
    """Wait for the end of a process that is not our child; return whether it has ended."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    watched = select.poll()
    watched.register(pidfd, select.POLLIN)
    try:
        return bool(watched.poll(seconds * 1000))
    finally:
        os.close(pidfd)


class Helper:
    """Another Python process that supervises and can be killed. The program prints what the test waits for."""

    def __init__(self, program, *arguments, python=None, **options):
        head = f"import sys; sys.path[:0] = {[str(ROOT), str(PROGRAMS)]}\n"
        self.process = subprocess.Popen(
            [*(python or PYTHON), "-c", head + program, *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
            **options,
        )
        self.pid = self.process.pid

    def line(self):
        return self.process.stdout.readline().rstrip("\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.stdout.close()
        self.process.wait()


def children_of(pid):
    return [each.pid for each in proc.processes() if each.parent == pid]


def _python_of_nobody():
    """Find a Python that the unprivileged user can execute: root's own is often below /root."""
    for python in [sys.executable, "/usr/bin/python3"]:
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            subprocess.run(
                [python, "-I", "-S", "-c", f"open({SCRIPT!r})"], check=True, capture_output=True, **_nobody()
            )
            return [python, "-I", "-S"]
    return None


def _nobody():
    return {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/"} if os.geteuid() == 0 else {}


PYTHON_OF_NOBODY = _python_of_nobody()
needs_nobody = pytest.mark.skipif(PYTHON_OF_NOBODY is None, reason="no Python that the user `nobody` may run")


def as_nobody(program, *arguments):
    """Start a helper as a user other than root, because the limit of processes does not apply to root."""
    return Helper(program, *arguments, python=PYTHON_OF_NOBODY, **_nobody())
