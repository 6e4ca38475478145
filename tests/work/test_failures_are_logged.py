"""Failures are logged at WARNING, so that a reader of that level sees them."""

from dataclasses import replace
from threading import Event as Flag

import pytest
from structlog.testing import capture_logs

from documents import lifecycle as documents
from runs import lifecycle as runs
from runs.engine_session import EngineFailed, Failure
from tests.factories import W1, BuildFactory, JobFactory, RunFactory, bring_to
from work.claims import Holdings
from work.work_types import work_type_named
from work.worker_thread import Bell, WorkerThread

pytestmark = [pytest.mark.once, pytest.mark.django_db]


def warnings(logs):
    return [each for each in logs if each["log_level"] == "warning"]


def test_a_run_whose_engine_fails():
    run, kind = RunFactory(), work_type_named("run")

    def break_down(claim):
        raise EngineFailed(Failure.ENGINE_FAILED, "exit code 1")

    slot = WorkerThread(
        replace(kind, handler=replace(kind.handler, do=break_down)),
        0,
        owner=W1,
        bell=Bell(),
        holdings=Holdings(),
        stopping=Flag(),
        on_end=lambda kind: None,
        on_contention=lambda kind, met: None,
    )

    with capture_logs() as logs:
        assert slot.run_once()

    (said,) = warnings(logs)
    assert (said["event"], said["claim"], said["error"]) == ("slot.failed", f"run {run.pk}", "exit code 1")


def test_a_run_whose_build_has_failed():
    run = RunFactory(build=BuildFactory())
    bring_to(run.build, "failed")

    with capture_logs() as logs:
        runs.apply_build_results(W1)

    (said,) = warnings(logs)
    assert (said["event"], said["kind"], said["id"]) == ("work.failed", "run", run.pk)
    assert said["failure_type"] == "BUILD_FAILED"


def test_a_document_that_cannot_be_processed():
    job = JobFactory(status="PROCESSING")

    with capture_logs() as logs:
        assert documents._give_back(job, "no text", actor=W1, final="EXTRACTION_FAILED")

    (said,) = warnings(logs)
    assert (said["event"], said["kind"], said["id"], said["error"]) == ("work.failed", "job", job.pk, "no text")
