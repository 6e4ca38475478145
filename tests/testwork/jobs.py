"""A job for tests with real workers. The environment of the worker says what the job does."""

import json
import os
import sys
import tempfile
import time
from datetime import timedelta

from schedules.jobs import Job
from work.processes import supervise

SCRIPT, SECONDS, WITNESS = "TESTWORK_JOB", "TESTWORK_JOB_SECONDS", "TESTWORK_JOB_WITNESS"


def run(turn):
    """Run a script: `noop`, `sleep:N` in this process, `deaf:FILE` until the file exists without checking the claim,
    `child:N` in a child process, `raise`.
    """
    action, _, argument = os.environ.get(SCRIPT, "noop").partition(":")
    _tell("begin", turn)
    if action == "raise":
        raise ValueError("as the script says")
    if action == "sleep":
        until = time.monotonic() + float(argument)
        while time.monotonic() < until:
            turn.go_on()
            time.sleep(0.02)
    if action == "deaf":
        while not os.path.exists(argument):
            time.sleep(0.02)
    if action == "child":
        _in_a_child(turn, float(argument))
    _tell("end", turn)
    return 7


def _in_a_child(turn, seconds):
    with tempfile.TemporaryDirectory() as directory:
        ended = supervise.run(
            [sys.executable, "-c", f"import time; time.sleep({seconds})"],
            cwd=directory,
            on_start=turn.claim.take_charge_of,
            stop=turn.why_stop,
            grace_seconds=0.5,
        )
    turn.ended(ended.stop_reason)


def _tell(what, turn):
    """Write one line at once: the process may be killed at any moment."""
    if path := os.environ.get(WITNESS):
        told = {"what": what, "slot": turn.scheduled_for.isoformat(), "pid": os.getpid(), "at": time.monotonic()}
        with open(path, "a") as file:
            file.write(json.dumps(told) + "\n")


JOB = Job(
    name="errands",
    about="Does what a test asks for.",
    # It runs once a year by itself; tests make it due.
    cron="0 0 1 1 *",
    time_zone="UTC",
    function=run,
    max_runtime=timedelta(seconds=float(os.environ.get(SECONDS, "60"))),
    coalesce=True,
    misfire_grace=timedelta(days=800),
)
