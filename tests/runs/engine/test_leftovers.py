"""A run leaves no files and no processes, however it ends."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from django.db import OperationalError

from runs import lifecycle as runs
from runs import periodic, scratch
from runs.models import Run
from tests.factories import events_of, told
from tests.runs.engine.running import (
    OWNER,
    assert_no_directory_is_left,
    each_level,
    error_of,
    idle,
    named,
)
from tests.stepping import until
from work import failpoints, recovery
from work.processes.child import Child
from work.processes.scratch import ScratchDirectory, remove
from work.work_types import all_work_types

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.usefixtures("way")]

NOBODY = 65534


@pytest.mark.parametrize("point", ["engine.before_spawn", "engine.spawned", "engine.exited"])
def test_nothing_is_left_when_ade_itself_fails(lane, monkeypatch, point, token):
    class Failing:
        def fire(self, name):
            raise OperationalError(f"failpoint {name}")

    with monkeypatch.context() as patched:
        patched.setitem(failpoints._armed, point, Failing())
        run = lane.execute(f"name:{token}", "double", "artifact:a.txt=x")

    assert run.status == "failed"
    assert not named(token)
    lane.assert_well(run.input_document)


@pytest.mark.parametrize(
    "deed",
    [
        "deep:1200!",
        "locked:",
        "litter_in:.",
        "litter_in:.tmp",
        "many_scratch:300",
        "swap_directory:/etc",
        "fifo_here:x",
    ],
)
@each_level
def test_whatever_an_engine_leaves_in_its_directory_is_removed(lane, level, deed):
    run = lane.execute(deed)

    assert run.status in ("succeeded", "failed")
    assert_no_directory_is_left()
    lane.assert_well()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody who is not")
def test_a_folder_that_its_owner_may_not_look_into_is_removed_by_him():
    """Root may read any folder; most workers do not run as root."""
    folder = Path(tempfile.mkdtemp())
    try:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        inside = folder / "run" / "locked" / "inside" / "again"
        inside.mkdir(parents=True)
        (inside / "file").write_text("x")
        for each in (inside, inside.parent, inside.parent.parent, folder / "run"):
            each.chmod(0)

        remove(folder / "run")

        assert list(folder.iterdir()) == []
    finally:
        os.seteuid(0)
        shutil.rmtree(folder)


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    (tmp_path / "run" / "below").mkdir(parents=True)
    for place in (tmp_path / "run" / "link", tmp_path / "run" / "below" / "link"):
        place.symlink_to(precious)

    remove(tmp_path / "run")

    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    assert (precious / "file").exists()


def test_a_sweep_removes_what_dead_workers_left_and_nothing_of_living_ones(lane):
    lane.assert_well()
    dead = scratch.root() / "0123456789abcdef"
    (dead / "engine" / "7-1" / ".tmp").mkdir(parents=True)
    living = ScratchDirectory(scratch.root())
    place = living.place()

    periodic.tidy()

    assert not dead.exists()
    assert place.exists()
    assert [each.folder.exists() for each in idle()] == [True] * len(idle())
    living.close()
    assert not living.path.exists()


def test_what_a_killed_worker_leaves_is_removed_by_the_next(witnesses, way, programs, token):
    run = witnesses.submit(f"name:{token}", "double", "hang")
    worker = programs.worker(slots="run=1", ADE_WARM_ENGINES=way == "warm")
    until(lambda: named(token))
    until(lambda: Run.objects.get(pk=run.pk).process)
    locks = [os.readlink(each) for each in Path(f"/proc/{worker.pid}/fd").iterdir() if each.is_symlink()]
    (left,) = {scratch.root() / Path(lock).name for lock in locks if "/engines/.locks/" in lock}
    assert left.exists()

    worker.send(signal.SIGKILL)
    worker.code()

    until(lambda: not named(token))
    until(lambda: periodic.tidy() == 0 and not left.exists())


@each_level
@pytest.mark.parametrize("deeds", [["field:a=1"], ["hang"]], ids=["succeeds", "timed-out"])
def test_a_run_whose_processes_cannot_be_killed_ends_and_says_so(lane, level, way, deeds, monkeypatch, settings, short):
    lane.assert_well()
    warm = idle()
    settings.ADE_RUN_TIMEOUT_SECONDS = 1 if deeds == ["hang"] else 60
    finish = Child._result_of

    def finish_with_a_rest(child, report):
        report |= {"left_behind": [4711], "keeper_is_free": False}
        return finish(child, report)

    with monkeypatch.context() as patched:
        patched.setattr(Child, "_result_of", finish_with_a_rest)
        run = lane.execute(*deeds)

    assert run.outcome == ("timed_out" if deeds == ["hang"] else "succeeded")
    event = events_of(run).get(kind="PROCESSES_LEFT_BEHIND")
    assert (event.data, event.level) == ({"pids": [4711]}, 30)
    assert not set(map(id, warm)) & set(map(id, idle()))
    settings.ADE_RUN_TIMEOUT_SECONDS = 60
    lane.assert_well(run.input_document)


def test_a_lost_run_whose_engine_cannot_be_killed_is_moved_on_and_says_so(lane, monkeypatch):
    run = lane.submit("field:a=1")
    runs.claim_next_run(OWNER)
    Run.objects.filter(pk=run.pk).update(process={"host": "h", "machine": "m", "pid": 4711, "start_ticks": 1})
    with monkeypatch.context() as patched:
        patched.setattr(recovery, "end_recorded", lambda process, grace: "unkillable")
        assert recovery.rescue_owned_by(all_work_types(), [OWNER], recovery.EARLIER_BOOT, "w2@here:102:boot2") == 1

    run.refresh_from_db()
    assert error_of(run)[:2] == ("failed", "PROCESS_TERMINATED")
    assert told(run)[-1] == "RECOVERED"
    receipt = events_of(run).last()
    assert (receipt.data["process"], receipt.level) == ("unkillable", 30)
    lane.assert_well(run.input_document)
