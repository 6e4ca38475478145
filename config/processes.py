"""Keeps a few programs running and stops them together, for `manage.py up`."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK_SECONDS = 0.2
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
# A program that has run for this long has started well. If it fails later, it is restarted after a short pause again.
SETTLED_SECONDS = 60.0


@dataclass
class Program:
    name: str
    command: list[str]
    environment: Mapping[str, str]
    directory: Path
    descriptors: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    start_at: float = 0.0
    pause: float = FIRST_PAUSE_SECONDS


def start(program: Program, say: Callable[[str, str], None]) -> None:
    program.started = time.monotonic()
    program.process = subprocess.Popen(
        [sys.executable, "-m", "config.launch", str(os.getpid()), *program.command],
        env=program.environment,
        cwd=program.directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=program.descriptors,
    )
    assert program.process.stdout is not None
    threading.Thread(target=copy_lines, args=(program.name, program.process.stdout, say), daemon=True).start()


def copy_lines(name: str, stream: IO[bytes], say: Callable[[str, str], None]) -> None:
    with stream:
        for line in stream:
            say(name, line.decode(errors="replace").rstrip("\n"))


def ask_to_stop(program: Program) -> None:
    # Stop only the main process, which knows the order in which its children have to end.
    if program.process is not None and program.process.poll() is None:
        program.process.terminate()


def end_group(program: Program) -> None:
    """Kill all processes that are left of the program, including its children."""
    if program.process is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.process.pid, signal.SIGKILL)
    program.process.wait()
    program.process = None


def how_it_ended(code: int) -> str:
    return f"ended with code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"


@dataclass
class Supervisor:
    """Runs programs until a signal asks it to stop.

    It must run in the main thread, because programs die with the thread that started them.
    """

    programs: list[Program]
    stop_seconds: float
    # Called repeatedly until it returns True. It is for output that must wait until the programs are up.
    when_ready: Callable[[], bool] = lambda: True
    out: IO[str] = field(default_factory=lambda: sys.stdout)
    signals_seen: int = 0

    def run(self) -> None:
        previous = {number: signal.signal(number, self.note_signal) for number in STOP_SIGNALS}
        try:
            self.keep_running()
        finally:
            self.stop()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def note_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.signals_seen += 1

    def keep_running(self) -> None:
        ready = False
        while not self.signals_seen:
            for program in self.programs:
                self.tend(program)
            ready = ready or self.when_ready()
            time.sleep(LOOK_SECONDS)

    def tend(self, program: Program) -> None:
        now = time.monotonic()
        if program.process is None:
            if now >= program.start_at:
                start(program, self.say)
            return
        code = program.process.poll()
        if code is None:
            return
        end_group(program)
        settled = now - program.started >= SETTLED_SECONDS
        pause = FIRST_PAUSE_SECONDS if settled else program.pause
        program.pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        program.start_at = now + pause
        self.say("up", f"{program.name} {how_it_ended(code)}; it starts again in {pause:.0f} s.")

    def stop(self) -> None:
        """Stop all programs. Kill them if they take too long or a second signal arrives."""
        self.say("up", "Stopping.")
        for program in self.programs:
            ask_to_stop(program)
        deadline = time.monotonic() + self.stop_seconds
        while self.any_alive() and time.monotonic() < deadline and self.signals_seen < 2:
            time.sleep(LOOK_SECONDS)
        for program in self.programs:
            if program.process is not None and program.process.poll() is None:
                self.say("up", f"{program.name} did not stop in time and is killed.")
            end_group(program)
        self.say("up", "Stopped.")

    def any_alive(self) -> bool:
        return any(p.process is not None and p.process.poll() is None for p in self.programs)

    def say(self, name: str, line: str) -> None:
        width = max(len("up"), *(len(program.name) for program in self.programs))
        # If the reader has closed the pipe (`make up | head`), the programs must go on.
        with contextlib.suppress(OSError, ValueError):
            self.out.write(f"{name:<{width}} | {line}\n")
            self.out.flush()
