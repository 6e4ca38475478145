import contextlib
import io
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from django.conf import settings

from config import processes
from config.processes import Program, Supervisor, how_it_ended
from tests.stepping import DEADLINE_SECONDS

pytestmark = pytest.mark.long

SUPERVISE = """
import sys
from pathlib import Path
from config.processes import Program, Supervisor

commands = [[sys.executable, "-c", code] for code in sys.argv[2:]]
programs = [Program(f"p{number}", command, {}, Path.cwd()) for number, command in enumerate(commands)]
Supervisor(programs, stop_seconds=float(sys.argv[1])).run()
"""
SAY_PID = "import os, signal, subprocess, sys, time; print('pid', os.getpid(), flush=True);"
OBEDIENT = SAY_PID + "signal.pause()"
# Ignores SIGTERM before it prints its PID, so that the signal of the test cannot arrive too early.
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SAY_PID + "\nwhile True: time.sleep(60)"
PARENT = SAY_PID + f"subprocess.Popen([sys.executable, '-c', {OBEDIENT!r}]); signal.pause()"
FAILING = "raise SystemExit(3)"


@contextlib.contextmanager
def supervised(*codes, stop_seconds=DEADLINE_SECONDS):
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISE, str(stop_seconds), *codes],
        cwd=settings.BASE_DIR,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def pids_said(process, count):
    """Return PIDs in the order of their output; the processes do not start in a fixed order."""
    found = []
    while len(found) < count:
        words = process.stdout.readline().split()
        if "pid" in words:
            found.append(int(words[-1]))
    return found


def comes_true(question):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not question():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def gone(pid):
    return comes_true(lambda: not alive(pid))


def alive(pid):
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_all_and_is_no_failure(number):
    with supervised(OBEDIENT, OBEDIENT) as supervisor:
        pids = pids_said(supervisor, 2)

        supervisor.send_signal(number)

        out, _ = supervisor.communicate(timeout=2 * DEADLINE_SECONDS)
    assert supervisor.returncode == 0
    assert all(gone(pid) for pid in pids)
    assert out.endswith("up | Stopped.\n")


def test_what_a_program_leaves_behind_is_ended_too():
    with supervised(PARENT) as supervisor:
        pids = pids_said(supervisor, 2)

        supervisor.terminate()

        assert supervisor.wait(2 * DEADLINE_SECONDS) == 0
    assert all(gone(pid) for pid in pids)


def test_programs_die_with_a_supervisor_that_is_killed():
    with supervised(OBEDIENT, STUBBORN) as supervisor:
        pids = pids_said(supervisor, 2)

        supervisor.kill()

        assert all(gone(pid) for pid in pids)


def test_a_program_that_does_not_stop_is_ended_after_the_deadline():
    with supervised(STUBBORN, stop_seconds=1) as supervisor:
        [pid] = pids_said(supervisor, 1)

        supervisor.terminate()

        out, _ = supervisor.communicate(timeout=2 * DEADLINE_SECONDS)
    assert supervisor.returncode == 0
    assert "p0 did not stop in time and is killed." in out
    assert gone(pid)


def test_a_second_signal_ends_everything_at_once():
    with supervised(STUBBORN, stop_seconds=3 * DEADLINE_SECONDS) as supervisor:
        [pid] = pids_said(supervisor, 1)
        supervisor.terminate()
        while "Stopping" not in supervisor.stdout.readline():
            pass

        supervisor.terminate()

        assert supervisor.wait(2 * DEADLINE_SECONDS) == 0
    assert gone(pid)


def test_a_program_that_died_starts_again_and_is_said_so():
    with supervised(OBEDIENT) as supervisor:
        [first] = pids_said(supervisor, 1)
        os.kill(first, signal.SIGKILL)
        line = supervisor.stdout.readline()
        [second] = pids_said(supervisor, 1)

    assert line == "up | p0 was ended by SIGKILL; it starts again in 1 s.\n"
    assert second != first


def test_the_pause_before_a_restart_grows_to_a_bound_and_heals(monkeypatch, tmp_path):
    monkeypatch.setattr(processes, "end_group", lambda program: setattr(program, "process", None))
    monkeypatch.setattr(processes.time, "monotonic", lambda: clock)
    program = Program("p", [], {}, tmp_path)
    supervisor = Supervisor([program], stop_seconds=1, out=io.StringIO())
    clock, pauses = 0.0, []
    for lived in [0, 0, 0, 0, 0, 0, 0, 61, 0]:
        program.process, program.started = ended_process(), clock
        clock += lived
        supervisor.tend(program)
        pauses.append(program.start_at - clock)

    assert pauses == [1, 2, 4, 8, 16, 30, 30, 1, 2]


def ended_process():
    process = subprocess.Popen([sys.executable, "-c", FAILING], stderr=subprocess.DEVNULL)
    process.wait()
    return process


def test_a_reader_who_leaves_does_not_stop_the_programs():
    with supervised("print('x' * 100_000);" + OBEDIENT) as supervisor:
        supervisor.stdout.readline()
        [pid] = pids_said(supervisor, 1)

        supervisor.stdout.close()
        os.kill(pid, signal.SIGKILL)

        assert comes_true(lambda: {child.pid for child in psutil.Process(supervisor.pid).children()} - {pid})
        supervisor.terminate()
        assert supervisor.wait(2 * DEADLINE_SECONDS) == 0


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "ended with code 0"), (3, "ended with code 3"), (-9, "was ended by SIGKILL")],
)
def test_how_it_ended(code, words):
    assert how_it_ended(code) == words
