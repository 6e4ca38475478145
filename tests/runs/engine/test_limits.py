"""The limits of an engine: its run fails with a message that names the limit, and its worker is not affected.

The limit of processes does not apply to root: see tests/work/test_supervise_environment.py.
"""

import pytest

from runs import engines
from tests.runs.engine.running import each_level, error_of
from work.processes import supervise

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.usefixtures("way")]

MB = 1 << 20


@pytest.fixture
def tight(monkeypatch):
    """Return a function that lowers single limits."""

    def tighten(**values):
        limits = engines.limits
        monkeypatch.setattr(engines, "limits", lambda wall: supervise.Limits(**(vars(limits(wall)) | values)))

    return tighten


@each_level
def test_memory_has_a_limit(lane, level, settings):
    settings.ADE_ENGINE_MEMORY_BYTES = 512 * MB

    run = lane.execute(f"memory:{1024 * MB}")

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    assert run.error_message.startswith("step act: exceeded its memory limit")
    lane.assert_well(run.input_document)


@each_level
def test_processor_time_has_a_limit(lane, level, tight):
    tight(cpu_seconds=1)

    run = lane.execute("cpu:30")

    assert error_of(run) == ("failed", "LIMIT_EXCEEDED", "The engine exceeded its limit of CPU time in step act.")
    lane.assert_well(run.input_document)


@each_level
def test_open_files_have_a_limit(lane, level):
    run = lane.execute("open_files:2000")

    assert error_of(run)[:2] == ("failed", "STEP_FAILED")
    assert "Too many open files" in run.error_message
    lane.assert_well(run.input_document)


@each_level
def test_the_size_of_a_file_has_a_limit(lane, level, tight):
    tight(file_size_bytes=8 * MB)

    run = lane.execute(f"file:{64 * MB}")

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    assert "exceeded its limit of file size" in run.error_message
    lane.assert_well(run.input_document)


def test_what_a_fork_uses_is_counted_from_its_own_beginning(lane, tight):
    """A warm engine may have used more for its import and for earlier runs."""
    tight(cpu_seconds=1)
    for _ in range(3):
        assert error_of(lane.execute("cpu:0.5")) == ("succeeded", "", "")
