import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from ade_keeper import guard
from tests.stepping import until
from tests.work.supervised import (
    BUSY_SECONDS,
    SHORT,
    Helper,
    Said,
    all_gone,
    carriers,
    each_level,
    run,
    run_until,
    token,
    wait_for,
    witness,
)
from work.processes import spawner_client, supervise
from work.processes.supervise import Limits, ProcessId

pytestmark = [pytest.mark.once, pytest.mark.long]

FAMILIES = ["fork", "setsid", "double", "orphan", "heir"]
# The freezer of control groups version 1, in which a frozen process cannot be killed.
FREEZER = Path("/sys/fs/cgroup/freezer")


@each_level
def test_a_stop_gives_time_to_leave(tmp_path, sandbox):
    ended, said = run_until("ready", ["polite"], tmp_path, sandbox=sandbox, grace_seconds=BUSY_SECONDS)

    assert (ended.reason, ended.stop_reason, ended.returncode) == ("stopped", "enough", 7)
    assert said.heard("leaving")
    assert ended.seconds < BUSY_SECONDS


@each_level
def test_sigterm_is_the_first_word(tmp_path, sandbox):
    ended, _ = run_until("ready", ["sleep"], tmp_path, sandbox=sandbox, grace_seconds=BUSY_SECONDS)

    assert (ended.reason, ended.signal) == ("stopped", "SIGTERM")
    assert ended.seconds < BUSY_SECONDS


@each_level
def test_who_ignores_sigterm_is_killed_after_the_grace(tmp_path, sandbox):
    ended, _ = run_until("ready", ["stubborn"], tmp_path, sandbox=sandbox, grace_seconds=0.5)

    assert (ended.reason, ended.signal, ended.left_behind) == ("stopped", "SIGKILL", ())
    assert 0.5 <= ended.seconds < 0.5 + BUSY_SECONDS


@each_level
def test_without_grace_the_first_word_is_the_last(tmp_path, sandbox):
    ended, said = run_until("ready", ["polite"], tmp_path, sandbox=sandbox, grace_seconds=0)

    assert (ended.reason, ended.signal, said.heard("leaving")) == ("stopped", "SIGKILL", False)


@each_level
def test_time_out_takes_the_wall_clock_and_the_grace_and_no_longer(tmp_path, sandbox):
    ended, _ = run(["stubborn"], tmp_path, sandbox=sandbox, limits=Limits(wall_seconds=1.5), grace_seconds=0.3)

    assert (ended.reason, ended.signal, ended.stop_reason) == ("timed_out", "SIGKILL", None)
    assert 1.8 <= ended.seconds < 1.8 + BUSY_SECONDS


@each_level
def test_time_out_asks_first(tmp_path, sandbox):
    ended, said = run(["polite"], tmp_path, sandbox=sandbox, limits=Limits(wall_seconds=1.5))

    assert (ended.reason, ended.returncode, said.heard("leaving")) == ("timed_out", 7, True)


def test_no_wall_clock_is_no_time_out(tmp_path):
    ended, _ = run(["code", 0], tmp_path, limits=Limits(wall_seconds=None))

    assert ended.reason == "exited"


def test_the_wall_clock_holds_while_a_callback_hangs(tmp_path):
    word, gone_meanwhile = token(), []

    def hang(_):
        gone_meanwhile.append(all_gone(word))

    ended = supervise.run(witness("sleep", word), cwd=tmp_path, limits=Limits(wall_seconds=1), on_output=hang)

    assert ended.reason == "timed_out"
    assert all(gone_meanwhile)


@each_level
@pytest.mark.parametrize("then", ["stop", "time out"])
def test_a_stopped_child_ends_all_the_same(tmp_path, sandbox, then):
    word, said = token(), Said()
    limits = Limits(wall_seconds=20 if then == "stop" else 2)
    with supervise.spawn(
        witness("polite", word), cwd=tmp_path, on_output=said, sandbox=sandbox, limits=limits, grace_seconds=5
    ) as child:
        wait_for("ready", child, said)
        for each in carriers(word):
            if sandbox == "limits" or each.pid != child.process_id.pid:
                os.kill(each.pid, signal.SIGSTOP)
        if then == "stop":
            child.stop("enough")
        ended = child.wait()

    assert ended.reason == ("stopped" if then == "stop" else "timed_out")
    assert ended.returncode == 7
    assert all_gone(word, 0)


def test_a_child_that_stops_itself_again_is_killed(tmp_path):
    program = "import os, signal; signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGSTOP));"
    program += "os.write(1, b'ready\\n'); signal.pause(); signal.pause(); signal.pause()"
    said = Said()

    ended = supervise.run(
        [*witness()[:3], "-c", program],
        cwd=tmp_path,
        sandbox="limits",
        grace_seconds=0.3,
        on_output=said,
        stop=lambda: "enough" if said.heard("ready") else None,
    )

    assert (ended.reason, ended.signal) == ("stopped", "SIGKILL")


@each_level
@pytest.mark.parametrize("mode", FAMILIES)
@pytest.mark.parametrize("how", ["exit", "stop", "time out", "no grace"])
def test_no_descendant_outlives_the_child(tmp_path, sandbox, mode, how):
    word, said = token(), Said()

    ended = supervise.run(
        witness(mode, "exit" if how == "exit" else "sleep", word),
        cwd=tmp_path,
        sandbox=sandbox,
        on_output=said,
        limits=Limits(wall_seconds=0.7 if how == "time out" else 20),
        grace_seconds=0 if how == "no grace" else 0.2,
        stop=lambda: (
            how
            if how in ("stop", "no grace") and said.heard("ready") and (said.heard("forked") or mode == "heir")
            else None
        ),
    )

    assert carriers(word) == []
    assert ended.reason == {"exit": "exited", "time out": "timed_out"}.get(how, "stopped")
    assert ended.seconds < 1 + BUSY_SECONDS


@each_level
def test_a_crowd_is_killed(tmp_path, sandbox):
    word = token()

    ended, said = run(["bomb", 300, word], tmp_path, sandbox=sandbox)

    assert said.texts == ["made 300"]
    assert carriers(word) == []
    assert ended.left_behind == ()


def test_stop_is_asked_often_while_nothing_happens(tmp_path):
    looks = []

    def stop():
        looks.append(time.monotonic())
        return "enough" if len(looks) > 10 else None

    run(["sleep"], tmp_path, sandbox="limits", stop=stop)

    # Not every interval, because the machine may be busy.
    assert sorted(later - earlier for earlier, later in pairwise(looks))[3] < 0.1


def test_stop_is_not_asked_for_a_second_reason(tmp_path):
    reasons = iter(["first", "second"])

    ended, _ = run(["stubborn"], tmp_path, sandbox="limits", stop=lambda: next(reasons), grace_seconds=0.3)

    assert ended.stop_reason == "first"


def test_another_thread_may_stop_a_child_and_hurry_it(tmp_path):
    said, ends = Said(), []
    with supervise.spawn(
        witness("stubborn"), cwd=tmp_path, sandbox="limits", on_output=said, limits=SHORT, grace_seconds=30
    ) as child:
        wait_for("ready", child, said)
        waiting = threading.Thread(target=lambda: ends.append(child.wait()))
        waiting.start()

        child.stop("shutting down")
        child.stop("at once", grace_seconds=0)
        waiting.join(20)

    assert (ends[0].reason, ends[0].stop_reason, ends[0].signal) == ("stopped", "shutting down", "SIGKILL")


@each_level
def test_trust_that_is_not_renewed_ends_the_child(tmp_path, sandbox):
    ended, _ = run(
        ["polite"], tmp_path, sandbox=sandbox, on_start=lambda child: child.trust_until(time.monotonic() + 0.5)
    )

    # There is no grace period after the claim is no longer trusted.
    assert (ended.reason, ended.stop_reason, ended.signal) == ("stopped", "no longer trusted", "SIGKILL")
    assert 0.4 < ended.seconds < 0.5 + BUSY_SECONDS


def test_trust_that_is_renewed_does_not(tmp_path):
    with supervise.spawn(witness("sleep"), cwd=tmp_path, sandbox="limits", limits=SHORT) as child:
        for _ in range(6):
            child.trust_until(time.monotonic() + 2)
            assert child.poll(0.4) is None


def test_trust_ends_while_the_worker_is_frozen(tmp_path):
    word = token()
    program = f"""
import time
from work.processes import supervise
child = supervise.spawn({witness("stubborn", word)!r}, cwd={str(tmp_path)!r})
child.trust_until(time.monotonic() + 2)
print("trusted")
sys.stdout.flush()
time.sleep(600)
"""
    with Helper(program) as helper:
        assert helper.line() == "trusted"
        os.kill(helper.pid, signal.SIGSTOP)
        assert carriers(word)

        assert all_gone(word)
        helper.process.send_signal(signal.SIGCONT)


@pytest.mark.skipif(
    not (FREEZER / "cgroup.procs").exists() or not os.access(FREEZER, os.W_OK),
    reason="only root, with control groups of version 1, can make a process that SIGKILL does not end",
)
def test_who_cannot_be_killed_is_named_and_not_waited_for(tmp_path):
    spawner_client.close()
    group, word, said = FREEZER / token(), token(), Said()
    group.mkdir()
    child = supervise.spawn(witness("sleep", word), cwd=tmp_path, sandbox="limits", on_output=said, grace_seconds=0.2)
    try:
        wait_for("ready", child, said)
        (group / "cgroup.procs").write_text(str(child.process_id.pid))
        (group / "freezer.state").write_text("FROZEN")

        child.stop("enough")
        ended = child.wait()
        other, _ = run(["code", 3], tmp_path, sandbox="limits")

        assert (ended.reason, ended.returncode, ended.left_behind) == ("stopped", None, (child.process_id.pid,))
        assert 0.2 + guard.KILL_SECONDS <= ended.seconds < 0.2 + guard.KILL_SECONDS + BUSY_SECONDS
        assert "could not be killed" in str(ended)
        assert other.returncode == 3
    finally:
        (group / "freezer.state").write_text("THAWED")
        assert all_gone(word)
        # The kernel takes a moment to forget a process that has ended.
        until(lambda: is_removed(group))


def is_removed(group):
    with suppress(OSError):
        group.rmdir()
    return not group.exists()


def test_a_guard_that_is_stuck_is_killed_with_its_child(tmp_path, monkeypatch):
    monkeypatch.setattr("work.processes.child.KILL_SECONDS", 0.5)
    monkeypatch.setattr("work.processes.child.GUARD_SECONDS", 0.2)
    word, said = token(), Said()
    with supervise.spawn(
        witness("double", "sleep", word), cwd=tmp_path, sandbox="limits", on_output=said, grace_seconds=0.1
    ) as child:
        wait_for("ready", child, said)
        wait_for("forked", child, said)
        signal.pidfd_send_signal(child._guard.pidfd, signal.SIGSTOP)

        child.stop("enough")
        ended = child.wait()

    assert (ended.reason, ended.stop_reason, ended.returncode) == ("stopped", "enough", None)
    assert all_gone(word)


def test_the_dead_are_not_signalled(tmp_path):
    """A stop reaches neither a child that has ended nor a process that got its PID."""
    stranger = subprocess.Popen(witness("sleep"), stdout=subprocess.DEVNULL)
    try:
        found = ProcessId.of(stranger.pid)
        earlier = supervise.ProcessId(found.host, found.machine, found.pid, found.start_ticks - 1)

        assert supervise.end_recorded(earlier, 0) == "gone"
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
