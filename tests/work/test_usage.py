"""Memory and files that a program hides from the worker that adds up its use."""

import os
import signal

import pytest

from tests.work.supervised import PYTHON, Helper, Said, as_nobody, needs_bubblewrap, needs_nobody
from work.processes import supervise, usage
from work.processes.usage import Most, Usage

pytestmark = pytest.mark.once

MB = 1 << 20


def most(**values):
    return Most(**{"memory_bytes": None, "processes": None, "disk_bytes": None} | values)


@pytest.fixture
def gone(monkeypatch):
    """The memory that the machine has lost since the beginning."""
    free = iter([100 * MB, 10 * MB])
    monkeypatch.setattr(usage, "_free_bytes", lambda folders: next(free))


@needs_nobody
def test_a_folder_that_nobody_may_look_into_hides_what_is_in_it():
    """Root may look into any; most workers are not root."""
    program = """
import os, shutil, tempfile
from work.processes.usage import Most, Usage
import work.processes.usage as usage
folder = tempfile.mkdtemp()
free = iter([100 << 20, 90 << 20, 10 << 20])
usage._free_bytes = lambda folders: next(free)
os.mkdir(f"{folder}/locked")
os.chmod(f"{folder}/locked", 0)
looked = Usage(os.getpid(), [folder], Most(None, None, 32 << 20))
print(looked.excess())
print(looked.excess())
os.chmod(f"{folder}/locked", 0o700)
shutil.rmtree(folder)
"""
    with as_nobody(program) as helper:
        lines = [helper.line(), helper.line()]

    assert lines == ["None", "disk: more than 32 MB since it started, with files that cannot be counted"]


@needs_nobody
def test_a_process_that_lets_nobody_look_hides_its_files():
    program = """
import ctypes, os, time
from work.processes.usage import Most, Usage
import work.processes.usage as usage
free = iter([100 << 20, 10 << 20])
usage._free_bytes = lambda folders: next(free)
reading, writing = os.pipe()
if os.fork() == 0:
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    os.write(writing, b"x")
    time.sleep(60)
    os._exit(0)
os.read(reading, 1)
print(Usage(os.getpid(), [], Most(None, None, 32 << 20)).excess())
os.kill(int(open(f"/proc/self/task/{os.getpid()}/children").read()), 9)
"""
    with as_nobody(program) as helper:
        line = helper.line()

    assert line.endswith("with files that cannot be counted")


def test_what_the_machine_misses_is_nobodys_who_hides_nothing(gone, tmp_path):
    assert Usage(os.getpid(), [str(tmp_path)], most(disk_bytes=32 * MB)).excess() is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("MOST_DESCRIPTORS", "open files: more than 2 in all its processes"),
        ("MOST_MAPPINGS", "memory: more than 2 mappings in all its processes"),
    ],
)
def test_a_look_has_an_end(monkeypatch, name, said):
    monkeypatch.setattr(usage, name, 2)
    with Helper("import time; print('here', flush=True); time.sleep(60)") as helper:
        assert helper.line() == "here"

        found = Usage(os.getpid(), [], most(disk_bytes=MB)).excess()

    assert found == said


def test_a_look_waits_for_no_memory_map(monkeypatch):
    """Of 500 processes that only fork, each map made it wait."""
    looked = []
    monkeypatch.setattr(usage, "MAPS_SECONDS", 0)
    monkeypatch.setattr(usage._OpenFiles, "add", lambda opened, pid: looked.append(pid))
    monkeypatch.setattr(usage, "_proportional", lambda pid: 1 / 0)
    program = "import os, time\nfor _ in range(3): os.fork()\nprint('here', flush=True)\ntime.sleep(60)"
    with Helper(program, start_new_session=True) as helper:
        assert helper.line() == "here"

        found = Usage(os.getpid(), [], most(memory_bytes=MB)).excess()
        os.killpg(helper.pid, signal.SIGKILL)

    assert len(looked) == 1
    assert found.startswith("memory: ")


@needs_bubblewrap
def test_nobody_has_sockets_that_hold_more_than_is_counted(tmp_path):
    code = "import socket\nfor end in socket.socketpair():\n    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):\n"
    code += "        end.setsockopt(socket.SOL_SOCKET, option, 1 << 30)\n"
    code += "        print(end.getsockopt(socket.SOL_SOCKET, option))\n"
    code += "end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)\n"
    code += "print(end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))\n"
    said = Said()

    supervise.run([*PYTHON, "-c", code], cwd=tmp_path, sandbox="bubblewrap", on_output=said)

    *sizes, keeps_alive = map(int, said.texts)
    assert (len(sizes), keeps_alive) == (4, 1)
    assert max(sizes) <= usage._socket_bytes()
