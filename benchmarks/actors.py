"""The processes that the benchmark drives: actors, which execute commands, and real workers."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Longer than stopping any process takes. A process that does not stop in this time is killed, so that it can't block
# the benchmark.
STOP_SECONDS = 15


class Actor:
    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.log = log
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.actor"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("ab"),
            text=True,
        )

    def call(self, name: str, /, **options: Any) -> Any:
        self.begin(name, **options)
        return self.answer()

    def begin(self, name: str, /, **options: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([name, options]) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"an actor died:\n{tail(self.log)}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["value"]

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        _end(self.process)


class WorkerProcess:
    """A process that runs `manage.py worker`."""

    def __init__(self, environment: dict[str, str], slots: str, log: Path, name: str) -> None:
        self.log = log
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "worker", "--slots", slots, "--name", name],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log.open("ab"),
            stderr=subprocess.STDOUT,
        )

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        _end(self.process)

    def fallen(self) -> bool:
        return self.process.poll() is not None


def environment(database_url: str, var: Path, **more: str) -> dict[str, str]:
    own = {
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
        "ADE_ENV_FILE": os.devnull,
        "ADE_VAR_DIR": str(var),
        "ADE_LOG_LEVEL": "WARNING",
        "DEBUG": "true",
    }
    # Drop the ADE settings of the calling shell, because they would change the measurement.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ADE_")}
    return {**clean, **own, **more}


def tail(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]


def _end(process: subprocess.Popen[Any]) -> None:
    until = time.monotonic() + STOP_SECONDS
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    if process.poll() is None:
        process.kill()
    process.wait()
