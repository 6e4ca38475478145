"""Limits for all processes of a run together: the run ends at a limit, and leaves nothing."""

import pytest

from runs.models import Run
from tests.runs.engine.running import (
    STEP,
    assert_no_process_is_left,
    cold_only,
    each_level,
    error_of,
    needs_bubblewrap,
    needs_groups,
    took,
)
from work.processes import scratch

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.usefixtures("way")]

MB = 1 << 20


@each_level
def test_memory_of_many_children_is_added_up(lane, level, settings):
    settings.ADE_ENGINE_MEMORY_BYTES = 512 * MB

    run = lane.execute(f"family:8x{128 * MB}")

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    assert "exceeded its limit of memory: " in run.error_message
    assert "at most 512 MB in step act" in run.error_message
    # Without the limit it would sleep for a minute.
    assert took(run) < 30
    assert_no_process_is_left()
    lane.assert_well(run.input_document)


def test_memory_that_children_share_is_counted_once(lane, settings):
    settings.ADE_ENGINE_MEMORY_BYTES = 512 * MB

    run = lane.execute(f"inherit:8x{200 * MB}")

    assert error_of(run) == ("succeeded", "", "")


# Without control groups or bubblewrap it can fork faster than it is killed.
@pytest.mark.parametrize(
    "level",
    [pytest.param("limits", marks=needs_groups), pytest.param("bubblewrap", marks=needs_bubblewrap)],
    indirect=True,
)
def test_a_fork_bomb_ends(lane, level, settings):
    settings.ADE_RUN_PROCESSES = 64

    run = lane.execute("multiply")

    message = "The engine exceeded its limit of processes and threads: more than 64 at the same time in step act."
    assert error_of(run) == ("failed", "LIMIT_EXCEEDED", message)
    assert_no_process_is_left()
    lane.assert_well(run.input_document)


@each_level
@pytest.mark.parametrize("how", ["named", "nameless"])
def test_files_are_added_up(lane, level, settings, how):
    settings.ADE_RUN_DISK_BYTES = 32 * MB

    run = lane.execute(f"disk:{64 * MB}x{how}")

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    assert run.error_message == "The engine exceeded its limit of disk: more than 32 MB in its files in step act."
    assert took(run) < 30
    lane.assert_well(run.input_document)


@each_level
@pytest.mark.parametrize("how", ["sent", "mapped"])
def test_files_that_no_folder_and_no_descriptor_shows_are_added_up(lane, level, settings, how):
    settings.ADE_RUN_DISK_BYTES = 64 * MB

    run = lane.execute(f"{how}:{256 * MB}")

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    assert "exceeded its limit of disk: more than 64 MB" in run.error_message
    assert took(run) < 30
    lane.assert_well(run.input_document)


@each_level
def test_shared_memory_that_nobody_has_mapped_is_counted(lane, level, settings):
    settings.ADE_ENGINE_MEMORY_BYTES = 512 * MB

    run = lane.execute(f"share_many:3x{240 * MB}")

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    assert "exceeded its limit of memory: " in run.error_message
    assert took(run) < 30
    lane.assert_well(run.input_document)


@needs_bubblewrap
def test_what_waits_in_sockets_is_counted(lane, settings):
    """It is memory of the kernel: three processes of 10 MB held 18 GB."""
    settings.ADE_ENGINE_MEMORY_BYTES = 512 * MB

    run = lane.execute("sockets:3")

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    assert "exceeded its limit of memory: " in run.error_message
    assert took(run) < 30
    lane.assert_well(run.input_document)


@each_level
def test_a_run_over_its_limit_has_ended_before_its_files_are_removed(lane, level, settings, monkeypatch):
    settings.ADE_RUN_DISK_BYTES = 8 * MB
    seen, empty = [], scratch._empty

    def look_and_empty(*arguments, **options):
        seen.append(list(Run.objects.filter(status="running").values_list("pk", flat=True)))
        empty(*arguments, **options)

    monkeypatch.setattr(scratch, "_empty", look_and_empty)

    run = lane.execute(f"disk:{32 * MB}x")

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    assert seen
    assert not any(seen)
    lane.assert_well(run.input_document)


@needs_bubblewrap
def test_nobody_mounts_anything(lane):
    run = lane.execute("mount")

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    assert "it tried to mount a file system or to create a namespace in step act" in run.error_message
    lane.assert_well(run.input_document)


@cold_only
def test_what_an_import_takes_counts_too(lane, settings):
    settings.ADE_RUN_PROCESSES = 16
    code = "import subprocess, sys\nif 'run' in sys.argv: [subprocess.Popen(['sleep', '60']) for _ in range(40)]\n"
    code += "import time\nif 'run' in sys.argv: time.sleep(60)\n"
    configuration, _ = lane.configure({"main.py": code + STEP})

    run = lane.execute("", configuration=configuration)

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
