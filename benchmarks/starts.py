"""Measures the lower bound for starting an engine per run: the cost of starting a Python process and nothing else."""

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

THREADS = 2


def bare_loop(python: str, statement: str, seconds: float, variables: dict[str, str] | None = None) -> dict[str, float]:
    """Run the statement in new Python processes, in loops in two threads, for this many seconds."""
    command, environment = [python, "-c", statement], {**os.environ, **(variables or {})}

    def loop(_: int) -> tuple[int, float]:
        began, number = time.monotonic(), 0
        while time.monotonic() < began + seconds:
            subprocess.run(command, env=environment, check=True)
            number += 1
        return number, time.monotonic() - began

    before = _processor_seconds()
    with ThreadPoolExecutor(THREADS) as threads:
        found = list(threads.map(loop, range(THREADS)))
    number, taken = sum(number for number, _ in found), sum(taken for _, taken in found)
    return {"number": number, "seconds": taken / THREADS, "processor": _processor_seconds() - before}


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
