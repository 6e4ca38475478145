"""Warm engines fork a fresh process for each run, and are discarded at the first irregularity."""

import os
import select
import signal
import time
from threading import Thread

import pytest

from runs import engines, periodic
from runs import lifecycle as runs
from tests.runs.engine.running import (
    STEP,
    assert_no_process_is_left,
    each_level,
    error_of,
    facts_of,
    field,
    idle,
    named,
    needs_bubblewrap,
    took,
    warm_only,
    way_of,
)
from tests.stepping import until
from work.processes import spawner_client, supervise, warm
from work.processes.warm import Pool

pytestmark = [pytest.mark.once, pytest.mark.long, warm_only, pytest.mark.usefixtures("way")]


def kill_when_named(lane, token, pidfd, number):
    """Send this signal as soon as a process has this name and the worker knows that it has started."""

    def send():
        until(lambda: named(token) and any(claim.child for claim in lane.holdings))
        signal.pidfd_send_signal(pidfd, number)

    thread = Thread(target=send, daemon=True)
    thread.start()
    return thread


def warmed_up(lane):
    """Return an idle warm engine; skip without a sandbox, because then none is kept."""
    if supervise.sandbox_level() == "limits":
        pytest.skip("bubblewrap is not installed, or this machine forbids it")
    lane.assert_well()
    (warm,) = idle()
    return warm


@each_level
def test_what_is_imported_once_serves_many_runs_each_in_a_process_of_its_own(lane, level):
    found = [facts_of(lane) for _ in range(3)]

    importers = {facts["imported_by"] for facts in found}
    assert not {facts["pid"] for facts in found} & importers
    if level == "bubblewrap":
        (warm,) = idle()
        assert (len(importers), warm.fork_server.forked) == (1, 3)
    else:
        # Files that a run leaves on the machine would affect the next run.
        assert (len(importers), idle()) == (3, [])


@each_level
def test_the_fork_server_itself_runs_no_step(lane, level):
    facts = facts_of(lane, "litter:1")

    assert facts["imported_by"] != facts["pid"]
    assert facts["seen"] == ["1"]
    assert facts_of(lane)["seen"] == []


def test_what_a_run_puts_beside_its_directory_is_gone_for_the_next(lane):
    before = facts_of(lane)["beside"]
    lane.execute("litter_in:..", "litter_in:../.tmp")

    facts = facts_of(lane)

    assert len(facts["beside"]) == len(before) == 2
    assert ".tmp" in facts["beside"]


@needs_bubblewrap
def test_a_run_cannot_change_what_outlives_it(lane):
    run = lane.execute("meddle")

    assert way_of(run) == "warm"
    assert field(run, "meddled") == []


@needs_bubblewrap
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may write them")
def test_settings_of_the_process_that_forks_are_the_same_for_each_run(lane):
    """Of the score by which the kernel kills, for example: 200 values are a letter each."""
    first = lane.execute("settings:900", "settings:")

    second = lane.execute("settings:")

    before, after = first.fields.filter(name="settings").order_by("position").values_list("value", flat=True)
    assert before != after
    assert field(second, "settings") == before


@needs_bubblewrap
def test_shared_memory_is_empty_for_each_run(lane):
    assert facts_of(lane)["shared_memory"] == []
    lane.execute("litter_in:/dev/shm")

    assert facts_of(lane)["shared_memory"] == []


@needs_bubblewrap
def test_a_link_in_the_place_of_the_scratch_folder_is_not_followed(lane, tmp_path):
    precious = tmp_path / "precious"
    (precious / "folder").mkdir(parents=True)
    (precious / "file").write_text("of somebody else")

    run = lane.execute(f"trap:{precious}")

    assert run.status == "succeeded"
    assert sorted(path.name for path in precious.iterdir()) == ["file", "folder"]
    lane.assert_well(run.input_document)


def test_an_engine_that_is_killed_while_it_is_idle_is_replaced(lane):
    warm = warmed_up(lane)
    signal.pidfd_send_signal(warm.fork_server._guard.pidfd, signal.SIGKILL)

    assert lane.execute("field:a=1").status == "succeeded"
    assert warm not in idle()
    assert way_of(lane.execute("field:a=1")) == "warm"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_engine_whose_outermost_process_is_killed_is_replaced(lane, number):
    warm = warmed_up(lane)
    os.kill(warm.fork_server._child.process_id.pid, number)

    run = lane.execute("field:a=1")

    assert run.status == "succeeded"
    assert warm not in idle()


def test_an_engine_that_is_killed_during_a_run_ends_it_with_all_that_it_forked(lane, token):
    warm = warmed_up(lane)
    killer = kill_when_named(lane, token, warm.fork_server._guard.pidfd, signal.SIGKILL)

    run = lane.execute("double", "fork", f"name:{token}", "hang")

    killer.join()
    assert error_of(run)[:2] == ("failed", "PROCESS_TERMINATED")
    assert "lost: its process guard was killed" in run.error_message
    assert "in step act" in run.error_message
    until(lambda: not named(token))
    assert warm not in idle()
    lane.assert_well(run.input_document)


def test_descriptors_are_closed_once_when_an_engine_dies_during_a_run(lane, token):
    """A descriptor number that is closed twice may belong to another file by then."""
    warm = warmed_up(lane)
    opened = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        kill_when_named(lane, token, warm.fork_server._guard.pidfd, signal.SIGKILL)
        lane.execute(f"name:{token}", "hang")
        warm = warmed_up(lane)

    assert len(os.listdir("/proc/self/fd")) <= len(opened) + 1


def test_an_engine_that_is_stopped_during_a_run_is_ended_when_time_is_over(lane, token, settings, stuck_soon):
    warm = warmed_up(lane)
    settings.ADE_RUN_TIMEOUT_SECONDS = 2
    killer = kill_when_named(lane, token, warm.fork_server._guard.pidfd, signal.SIGSTOP)

    run = lane.execute(f"name:{token}", "hang")

    killer.join()
    assert error_of(run) == ("failed", "TIMED_OUT", "Timed out after 2 s in step act.")
    assert took(run) < 2 + 30
    assert not named(token)
    settings.ADE_RUN_TIMEOUT_SECONDS = 60
    lane.assert_well(run.input_document)
    assert warm not in idle()


def test_an_engine_that_is_stopped_while_it_is_idle_is_replaced(lane, monkeypatch):
    monkeypatch.setattr(spawner_client, "ANSWER_SECONDS", 2.0)
    warm = warmed_up(lane)
    signal.pidfd_send_signal(warm.fork_server._guard.pidfd, signal.SIGSTOP)

    run = lane.execute("field:a=1")

    assert error_of(run) == ("succeeded", "", "")
    assert way_of(run) == "cold"
    assert idle() == []
    lane.assert_well(run.input_document)


def test_a_stopped_engine_costs_a_run_its_time_and_no_more(lane, monkeypatch, settings):
    monkeypatch.setattr(spawner_client, "ANSWER_SECONDS", 2.0)
    warm = warmed_up(lane)
    signal.pidfd_send_signal(warm.fork_server._guard.pidfd, signal.SIGSTOP)
    settings.ADE_RUN_TIMEOUT_SECONDS = 1

    run = lane.execute("sleep:60")

    assert error_of(run)[:2] == ("failed", "TIMED_OUT")
    assert took(run) < 2 + 30
    assert idle() == []


def test_an_engine_is_replaced_after_so_many_runs(lane, settings):
    settings.ADE_WARM_RUNS = 2
    warm = warmed_up(lane)
    pidfd = os.dup(warm.fork_server._guard.pidfd)

    lane.execute("field:a=1")

    assert idle() == []
    assert select.select([pidfd], [], [], 2)[0]
    os.close(pidfd)
    assert warmed_up(lane).fork_server.forked == 1


def test_an_engine_that_nobody_has_needed_for_a_while_is_ended(lane, settings):
    settings.ADE_WARM_IDLE_SECONDS = 10
    warm = warmed_up(lane)

    periodic.retire_engines()
    assert idle() == [warm]
    warm.fork_server.used_at = time.monotonic() - 11
    periodic.retire_engines()

    assert idle() == []
    assert_no_process_is_left()
    lane.assert_well()


def test_no_engine_is_kept_when_memory_is_short(lane, monkeypatch):
    warmed_up(lane)
    monkeypatch.setattr(warm, "memory_is_short", lambda: True)

    periodic.retire_engines()

    assert idle() == []
    assert_no_process_is_left()
    assert way_of(lane.execute("field:a=1")) == "cold"
    monkeypatch.undo()


def test_memory_is_short_when_less_than_a_share_of_it_is_left(monkeypatch):
    class Memory:
        total, available = 1000, 1

    monkeypatch.setattr(warm.psutil, "virtual_memory", lambda: Memory)
    assert warm.memory_is_short()
    Memory.available = 500
    assert not warm.memory_is_short()


@needs_bubblewrap
def test_of_many_builds_the_latest_are_kept(lane, settings):
    settings.ADE_MAX_CONCURRENCY = 1
    for number in range(3):
        configuration, _ = lane.configure({"main.py": f"# {number}\n{STEP}"})
        assert way_of(lane.execute("", configuration=configuration)) == "warm"

    assert len(idle()) == 2


@each_level
@pytest.mark.parametrize(
    "code",
    [
        "import threading, time\nthreading.Thread(target=time.sleep, args=[60], daemon=True).start()\n",
        "import sys\nif 'serve' in sys.argv: raise ImportError('not today')\n",
        "import sys\nif 'serve' in sys.argv: sys.exit()\n",
        "import os, sys\nif 'serve' in sys.argv: os._exit(0)\n",
        "import os, sys\nif 'serve' in sys.argv: os.abort()\n",
        "import os, sys\nif 'serve' in sys.argv: os.close(int(sys.argv[-1]))\n",
    ],
    ids=["threads", "raises", "exits", "os-exits", "aborts", "deaf"],
)
def test_what_cannot_be_kept_warm_starts_cold_and_is_not_tried_again(lane, level, code, monkeypatch):
    configuration, fingerprint = lane.configure({"main.py": code + STEP})

    run = lane.execute("", configuration=configuration)

    assert error_of(run) == ("succeeded", "", "")
    assert way_of(run) == "cold"
    assert set(engines.POOL._hopeless) == {fingerprint}
    with monkeypatch.context() as patched:
        patched.setattr(Pool, "_spawn", None)
        assert way_of(lane.execute("", configuration=configuration)) == "cold"


def test_what_could_not_be_kept_warm_is_tried_again_after_a_while(lane, monkeypatch):
    """The cause may have been a temporary problem of the machine."""
    monkeypatch.setattr(warm, "HOPELESS_SECONDS", 0.0)
    configuration, _ = lane.configure({"main.py": "import sys\nif 'serve' in sys.argv: sys.exit()\n" + STEP})
    spawned = []
    spawn = Pool._spawn
    monkeypatch.setattr(Pool, "_spawn", lambda pool, *rest: spawned.append(rest) or spawn(pool, *rest))

    ways = [way_of(lane.execute("", configuration=configuration)) for _ in range(2)]

    assert ways == ["cold", "cold"]
    assert len(spawned) == 2


def test_an_import_that_takes_too_long_is_the_runs_own_time(lane, settings):
    settings.ADE_RUN_TIMEOUT_SECONDS = 1
    code = "import sys, time\nif 'serve' in sys.argv: time.sleep(600)\n"
    configuration, _ = lane.configure({"main.py": code + STEP})

    run = lane.execute("", configuration=configuration)

    assert error_of(run) == ("failed", "TIMED_OUT", "Timed out after 1 s while importing the configuration.")
    assert took(run) < 40
    assert idle() == []


def test_a_cancel_is_obeyed_while_an_engine_is_imported(lane, monkeypatch):
    code = "import sys, time\nif 'serve' in sys.argv: time.sleep(600)\n"
    configuration, _ = lane.configure({"main.py": code + STEP})
    run = lane.submit("", configuration=configuration)
    take = engines.take

    def cancel_and_take(claim, *rest):
        runs.cancel(run, actor="olga")
        claim.cancel_requested.set()
        return take(claim, *rest)

    monkeypatch.setattr(engines, "take", cancel_and_take)
    began = time.monotonic()
    lane.run_once()

    run.refresh_from_db()
    assert run.status == "cancelled"
    assert time.monotonic() - began < 40
