import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.work.supervised import (
    BUSY_SECONDS,
    Helper,
    Said,
    all_gone,
    as_nobody,
    carriers,
    each_level,
    gone,
    needs_nobody,
    token,
    wait_for,
    witness,
)
from work.processes import identity, supervise
from work.processes.supervise import ProcessId, end_recorded

pytestmark = pytest.mark.once


@pytest.fixture
def stranger():
    process = subprocess.Popen(witness("sleep"), stdout=subprocess.PIPE, start_new_session=True)
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def start(mode, word):
    """Start a session leader that its parent does not watch, as a killed guard leaves it."""
    process = subprocess.Popen(witness(mode, "sleep", word), stdout=subprocess.PIPE, start_new_session=True)
    lines = 1 if mode in ("sleep", "stubborn", "polite", "heir") else 2
    for _ in range(lines):
        process.stdout.readline()
    return process


def code_of(process):
    with process.stdout:
        return process.wait()


def test_this_process_is_alive():
    me = ProcessId.current()

    assert me.pid == os.getpid()
    assert me == ProcessId.of(os.getpid())
    assert me.alive() is True


def test_it_survives_json():
    me = ProcessId.current()

    assert ProcessId.from_json(json.loads(json.dumps(me.to_json()))) == me
    assert set(me.to_json()) == {"host", "machine", "pid", "start_ticks"}


def test_a_name_of_a_program_may_hold_anything(tmp_path):
    odd = tmp_path / "a) Z (b 1 2"
    odd.symlink_to("/bin/sleep")
    process = subprocess.Popen([odd, "20"])
    try:
        assert ProcessId.of(process.pid).alive() is True
    finally:
        process.kill()
        process.wait()


def test_nobody_is_there():
    assert ProcessId.of(1 << 22) is None


def test_the_dead_are_not_alive(stranger):
    process_id = ProcessId.of(stranger.pid)
    stranger.kill()
    stranger.wait()

    assert process_id.alive() is False


def test_a_zombie_is_not_alive(stranger):
    process_id = ProcessId.of(stranger.pid)
    stranger.kill()
    gone(stranger.pid)

    assert process_id.alive() is False


def test_who_got_the_number_later_is_not_alive():
    later = replace(ProcessId.current(), start_ticks=ProcessId.current().start_ticks - 1)

    assert later.alive() is False


@pytest.mark.parametrize("machine", ["00000000-0000-0000-0000-000000000000/4026531836", ""])
def test_other_machines_cannot_be_judged(machine):
    elsewhere = replace(ProcessId.current(), machine=machine)

    assert elsewhere.alive() is None
    assert end_recorded(replace(elsewhere, pid=1), 0) == "elsewhere"


def test_another_namespace_is_another_machine():
    boot, _, namespace = ProcessId.current().machine.partition("/")

    assert boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert replace(ProcessId.current(), machine=f"{boot}/{int(namespace) + 1}").alive() is None


@each_level
def test_a_child_is_named_as_it_is_seen_from_here(tmp_path, sandbox):
    with supervise.spawn(witness("sleep"), cwd=tmp_path, sandbox=sandbox) as child:
        assert child.process_id == ProcessId.of(child.process_id.pid)
        assert child.process_id.alive() is True

    assert child.process_id.alive() is False


def test_what_is_recorded_is_ended():
    word = token()
    process = start("polite", word)

    assert end_recorded(ProcessId.of(process.pid), 5) == "ended"
    assert code_of(process) == 7
    assert carriers(word) == []


def test_who_ignores_sigterm_is_killed_after_the_grace():
    process = start("stubborn", token())
    before = time.monotonic()

    assert end_recorded(ProcessId.of(process.pid), 0.3) == "ended"
    assert code_of(process) == -signal.SIGKILL
    assert 0.3 <= time.monotonic() - before < 0.3 + BUSY_SECONDS


def test_a_stopped_process_is_ended():
    process = start("polite", token())
    os.kill(process.pid, signal.SIGSTOP)

    assert end_recorded(ProcessId.of(process.pid), 5) == "ended"
    assert code_of(process) == 7


@pytest.mark.parametrize("mode", ["fork", "setsid", "orphan"])
def test_its_family_is_ended_with_it(mode):
    word = token()
    process = start(mode, word)
    assert len(carriers(word)) == 2

    assert end_recorded(ProcessId.of(process.pid), 0.2) == "ended"
    code_of(process)
    assert carriers(word) == []


def test_who_is_born_while_the_others_end_is_ended_too():
    word = token()
    process = start("heir", word)

    assert end_recorded(ProcessId.of(process.pid), 0.3) == "ended"
    code_of(process)
    assert carriers(word) == []


@each_level
def test_a_running_child_can_be_ended_by_its_record_alone(tmp_path, sandbox):
    """Another worker ends it, whose messages the guard does not obey."""
    word, said = token(), Said()
    with supervise.spawn(witness("double", "sleep", word), cwd=tmp_path, sandbox=sandbox, on_output=said) as child:
        wait_for("ready", child, said)
        record = json.dumps(child.process_id.to_json())
        program = f"from work.processes.supervise import *; print(end_recorded(ProcessId.from_json({record}), 0.2))"
        with Helper(program) as helper:
            assert helper.line() == "ended"
        ended = child.wait()

    assert ended.reason == "signalled"
    assert all_gone(word)


def test_the_dead_are_gone(stranger):
    process_id = ProcessId.of(stranger.pid)
    stranger.kill()
    stranger.wait()

    assert end_recorded(process_id, 5) == "gone"


def test_a_zombie_is_gone(stranger):
    process_id = ProcessId.of(stranger.pid)
    stranger.kill()
    gone(stranger.pid)

    assert end_recorded(process_id, 5) == "gone"


def test_who_got_the_number_later_is_not_touched(stranger):
    found = ProcessId.of(stranger.pid)

    assert end_recorded(replace(found, start_ticks=found.start_ticks - 1), 0) == "gone"
    assert not gone(stranger.pid, 0.3)


def test_who_gets_the_number_in_between_is_not_touched(stranger, monkeypatch):
    """One of the processes that were found ends before the signal is sent, and another process gets its PID."""
    found = identity.proc.process(stranger.pid)
    earlier = found._replace(start_ticks=found.start_ticks - 1)
    monkeypatch.setattr(identity, "_belonging_to", lambda process_id: {earlier})

    assert end_recorded(ProcessId.of(stranger.pid), 0) == "ended"
    assert not gone(stranger.pid, 0.3)


def test_a_worker_does_not_end_itself():
    with pytest.raises(ValueError, match="is this process itself"):
        end_recorded(ProcessId.current(), 0)


@needs_nobody
def test_the_process_of_another_user_is_unkillable(stranger, monkeypatch):
    if os.geteuid():
        pytest.skip("only root can start the process of another user")
    record = json.dumps(ProcessId.of(stranger.pid).to_json())
    program = f"""
from work.processes import identity
identity.KILL_SECONDS = 0.3
print(identity.end_recorded(identity.ProcessId.from_json({record}), 0))
"""
    with as_nobody(program) as helper:
        assert helper.line() == "unkillable"
    assert stranger.poll() is None
