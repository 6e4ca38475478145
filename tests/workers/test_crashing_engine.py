"""Engines that are killed while their worker lives: by the kernel when memory runs out, or by a person (fault A15)."""

import signal

import psutil
import pytest

from tests.engines import kinds_of, outcome_of, until_ended
from tests.factories import told
from tests.races.invariants import assert_all_hold

pytestmark = pytest.mark.long


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_run_whose_engine_is_killed_fails_with_the_name_of_the_signal_and_is_not_tried_again(site, engines, number):
    document = site.document(seconds=600)
    run = site.submit(document)
    worker = site.worker(**engines)
    seen = site.witness.until_at_work(run)

    psutil.Process(seen.pid).send_signal(number)

    assert until_ended(run) == ("failed", "ENGINE_FAILED")
    assert number.name in run.error_message
    assert "in step work" in run.error_message
    assert kinds_of(run) == ["RUN_QUEUED", "RUN_STARTED", "RUN_FAILED"]
    assert told(run).count("STEP_STARTED") == 1
    assert [each.attempt for each in site.witness.of(run)] == [1]
    # Neither the worker nor its warm engines are affected.
    assert until_ended(site.submit()) == ("succeeded", "")
    assert worker.is_alive()
    assert_all_hold(quiet=True)


def test_a_run_that_wants_more_memory_than_it_may_have_fails_after_two_attempts(site, engines):
    run = site.submit(memory=8 << 30)
    worker = site.worker(ADE_ENGINE_MEMORY_BYTES=1 << 30, **engines)

    assert until_ended(run) == ("failed", "LIMIT_EXCEEDED")

    assert "exceeded its memory limit" in run.error_message
    assert [each.attempt for each in site.witness.of(run)] == [1, 2]
    assert outcome_of(run) == ("failed", "LIMIT_EXCEEDED")
    assert until_ended(site.submit()) == ("succeeded", "")
    assert worker.is_alive()
    assert_all_hold(quiet=True)
