"""Workers that are asked to end while engines work (faults A10 to A12)."""

import signal

import pytest

from runs.models import Artifact, Run
from tests.engines import kinds_of, outcome_of, until_ended
from tests.races.invariants import assert_all_hold
from tests.stepping import until
from work.models import Worker

GIVEN_BACK = ("failed", "PROCESS_TERMINATED")
# Runs a worker in its own terminal, closes the terminal on SIGUSR1, and prints how the worker has ended.
IN_A_TERMINAL = """
import json, os, pty, signal, sys

def close(*_):
    raise EOFError

signal.signal(signal.SIGUSR1, close)
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.executable, [sys.executable, "manage.py", "worker", *sys.argv[1:]])
try:
    while True:
        os.write(2, os.read(terminal, 4096))
except EOFError:
    os.close(terminal)
print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
"""

pytestmark = pytest.mark.long


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_engine_that_is_at_work_when_its_worker_is_told_to_end_finishes_and_none_is_begun(site, engines, number):
    begun = site.submit(seconds=1, keeps="result.txt")
    worker = site.worker(slots="run=1", **engines)
    site.witness.until_at_work(begun)
    waiting = site.submit()

    worker.send(number)

    assert worker.code() == 0, worker.logged()
    assert outcome_of(begun) == ("succeeded", "")
    assert [each.finished for each in site.witness.of(begun)] == [True]
    assert Artifact.objects.count() == 1
    assert kinds_of(waiting) == ["RUN_QUEUED"]
    assert site.witness.of(waiting) == []
    nothing_is_left(site)


@pytest.mark.parametrize("times", [2, 5])
def test_a_worker_that_is_told_again_ends_its_engines_and_says_why(site, engines, times):
    running = [site.submit(seconds=600) for _ in range(2)]
    worker = site.worker(**engines)
    seen = [site.witness.until_at_work(run) for run in running]

    worker.end_at_once()
    for _ in range(times - 2):
        worker.send(signal.SIGTERM)

    assert worker.code() == 0, worker.logged()
    assert [outcome_of(run) for run in running] == [GIVEN_BACK] * 2
    assert {run.error_message for run in running} == {"its worker was stopped"}
    assert kinds_of(running[0]) == ["RUN_QUEUED", "RUN_STARTED", "RUN_FAILED", "RECOVERED"]
    until(lambda: all(each.gone for each in seen))
    nothing_is_left(site)


def test_a_drain_that_lasts_too_long_ends_engines_even_if_they_are_deaf(site, engines):
    run = site.submit(seconds=600, deaf=True)
    worker = site.worker(ADE_DRAIN_SECONDS=1, **engines)
    seen = site.witness.until_at_work(run)

    worker.send(signal.SIGTERM)

    assert worker.code() == 0, worker.logged()
    assert outcome_of(run) == GIVEN_BACK
    assert run.error_message == "its worker was stopped"
    until(lambda: seen.gone)
    nothing_is_left(site)


def test_a_result_that_is_being_written_when_the_worker_is_told_to_end_is_written_and_not_made_again(site, engines):
    run = site.submit(keeps="result.txt")
    worker = site.worker(ADE_FAILPOINTS="engine.exited:sleep:1", **engines)
    until(lambda: site.witness.of(run) and site.witness.of(run)[0].gone)

    worker.send(signal.SIGTERM)

    assert outcome_of(run) == ("running", "")
    assert worker.code() == 0, worker.logged()
    assert kinds_of(run) == ["RUN_QUEUED", "RUN_STARTED", "ARTIFACT_PUBLISHED", "RUN_SUCCEEDED"]
    assert len(site.witness.of(run)) == 1
    nothing_is_left(site)


def test_a_worker_whose_terminal_is_closed_finishes_what_it_has_begun(site):
    run = site.submit(seconds=1)
    values = {"ADE_VAR_DIR": site.directory, "ADE_LEASE_SECONDS": 60}
    terminal = site.programs.start("-c", IN_A_TERMINAL, "--name", "w1", "--slots", "run=2", **values)
    site.witness.until_at_work(run)

    terminal.send(signal.SIGUSR1)

    assert until_ended(run) == ("succeeded", "")
    assert terminal.code() == 0, terminal.logged()
    assert terminal.said == [0]
    nothing_is_left(site)


def nothing_is_left(site):
    assert not Run.objects.filter(status="running").exists()
    assert not Worker.objects.filter(stopped_at=None).exists()
    until(lambda: not site.engines())
    assert not site.left_behind()
    assert_all_hold()
