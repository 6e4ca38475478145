import os
import signal
import socket
import threading
import time
from dataclasses import replace

import pytest

from tests.work.supervised import (
    PYTHON,
    ROOT,
    SHORT,
    Helper,
    Said,
    all_gone,
    carriers,
    children_of,
    each_level,
    run,
    token,
    wait_for,
    witness,
)
from work.processes import spawner_client, supervise
from work.processes.supervise import Ended, Limits

pytestmark = pytest.mark.once

NAMES = ["-rf", "--", "a b", "it's", '"', "$(id)", "`id`", ";", "*", "\n", "é", "\udcff", ""]


@each_level
@pytest.mark.parametrize("code", [0, 1, 3, 126, 127])
def test_an_exit_code_is_told(tmp_path, sandbox, code):
    ended, _ = run(["code", code], tmp_path, sandbox=sandbox)

    assert (ended.reason, ended.returncode, ended.signal, ended.stop_reason) == ("exited", code, None, None)
    assert str(ended).startswith(f"exited with code {code} after ")


@each_level
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGTERM", "SIGABRT"])
def test_a_crash_is_told_by_the_name_of_its_signal(tmp_path, sandbox, name):
    ended, _ = run(["crash", name], tmp_path, sandbox=sandbox)

    assert (ended.reason, ended.returncode, ended.signal) == ("signalled", -getattr(signal, name), name)
    assert str(ended).startswith(f"was killed by {name}")


def test_a_real_time_signal_has_a_number_for_a_name(tmp_path):
    ended, _ = run(["crash", "SIGRTMAX"], tmp_path, sandbox="limits")

    assert ended.signal == "SIGRTMAX"


@each_level
def test_time_and_memory_are_measured(tmp_path, sandbox):
    before = time.monotonic()

    ended, said = run(["memory", 64 << 20], tmp_path, sandbox=sandbox)

    assert said.heard("have")
    assert before <= ended.started <= ended.ended <= time.monotonic()
    assert ended.seconds == ended.ended - ended.started
    assert 64 << 20 <= ended.max_rss_bytes < 128 << 20
    assert 0 < ended.cpu_seconds < 5


def test_memory_is_the_childs_and_not_the_callers(tmp_path):
    ballast = bytearray(200 << 20)

    ended, _ = run(["code", 0], tmp_path, sandbox="limits")

    assert len(ballast) > ended.max_rss_bytes


@each_level
def test_arguments_arrive_as_they_are(tmp_path, sandbox):
    _, said = run(["arguments", *NAMES], tmp_path, sandbox=sandbox)

    assert said.json == NAMES


@each_level
def test_nothing_comes_from_stdin(tmp_path, sandbox):
    _, said = run(["stdin"], tmp_path, sandbox=sandbox)

    assert said.json == ""


@each_level
def test_a_given_stdin_arrives(tmp_path, sandbox):
    (tmp_path / "in").write_text("read me")

    with open(tmp_path / "in") as file:
        _, said = run(["stdin"], tmp_path, sandbox=sandbox, stdin=file.fileno())

    assert said.json == "read me"


def test_a_passed_descriptor_keeps_its_number(tmp_path):
    reading, writing = os.pipe()

    ended, _ = run(["write_to", writing], tmp_path, pass_fds=[writing])
    os.close(writing)

    assert ended.returncode == 0
    assert os.read(reading, 100) == b"hello"
    os.close(reading)


@each_level
def test_an_exit_is_seen_at_once(tmp_path, sandbox):
    delays = []
    # One quick end is enough, because the machine may be busy; polling every 50 ms would delay nearly all of them.
    while len(delays) < 20 and min(delays, default=1) >= 0.03:
        ended, _ = run(["code", 0], tmp_path, sandbox=sandbox, stop=lambda: None)
        delays.append(time.monotonic() - ended.ended)

    assert min(delays) < 0.03


def test_waiting_uses_no_time_of_the_processor(tmp_path):
    with supervise.spawn(witness("sleep"), cwd=tmp_path, sandbox="limits", limits=Limits(wall_seconds=0.5)) as child:
        before = time.thread_time()
        child.wait(lambda: None)

    assert time.thread_time() - before < 0.1


def test_a_child_can_be_polled_between_other_things(tmp_path):
    said = Said()
    child = supervise.spawn(witness("polite"), cwd=tmp_path, on_output=said, limits=SHORT)
    wait_for("ready", child, said)
    assert child.poll() is None
    assert child.process_id.alive()

    child.stop("done with it")
    while not child.poll(1):
        pass

    assert child.ended is not None
    assert (child.ended.reason, child.ended.stop_reason) == ("stopped", "done with it")
    assert child.poll() is child.ended
    assert child.wait() is child.ended
    assert child.process_id.alive() is False


@each_level
def test_leaving_the_block_ends_the_child(tmp_path, sandbox):
    word, said = token(), Said()

    with supervise.spawn(witness("setsid", "sleep", word), cwd=tmp_path, on_output=said, sandbox=sandbox) as child:
        wait_for("ready", child, said)

    assert carriers(word) == []
    assert child.poll() is None


class Trouble(Exception):
    pass


@pytest.mark.parametrize("callback", ["stop", "on_start", "on_output", "on_event"])
def test_a_callback_that_raises_ends_the_child_first(tmp_path, callback):
    word = token()

    def complain(*_):
        raise Trouble

    program = (
        "import os, time; os.write(1, b'ready\\n'); os.write(int(os.environ['ADE_EVENTS_FD']), b'{}\\n');"
        "os.fork(); time.sleep(600)"
    )
    options = {"on_event": lambda event: None} | {callback: complain}
    with pytest.raises(Trouble):
        supervise.run([*PYTHON, "-c", program, word], cwd=tmp_path, limits=SHORT, **options)

    assert carriers(word) == []


def test_many_threads_run_children_at_once(tmp_path):
    results = {}

    def one(number):
        results[number] = run(["arguments", number], tmp_path, sandbox="limits")

    threads = [threading.Thread(target=one, args=[number]) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {number: said.json for number, (_, said) in results.items()} == {n: [str(n)] for n in range(20)}
    assert all(ended.returncode == 0 for ended, _ in results.values())


@each_level
def test_nothing_is_left_open_and_no_zombies(tmp_path, sandbox):
    run(["code", 0], tmp_path, sandbox=sandbox)
    before = set(os.listdir("/proc/self/fd"))

    for _ in range(5):
        run(["double", "code"], tmp_path, sandbox=sandbox, on_event=print)

    assert set(os.listdir("/proc/self/fd")) == before
    guards = [pid for mine in children_of(os.getpid()) for pid in children_of(mine)]
    assert [pid for pid in guards if children_of(pid)] == []


def test_a_guard_is_used_again_and_idle_ones_are_few(tmp_path):
    spawner_client.close()
    run(["code", 0], tmp_path, sandbox="limits")
    [mine] = [pid for pid in children_of(os.getpid()) if children_of(pid)]
    [first] = children_of(mine)

    run(["code", 0], tmp_path, sandbox="limits")
    again = children_of(mine)
    many = [supervise.spawn(witness("sleep"), cwd=tmp_path, sandbox="limits") for _ in range(12)]
    for child in many:
        child.close()

    assert again == [first]
    until = time.monotonic() + 20
    while len(children_of(mine)) > spawner_client.IDLE_GUARDS:
        assert time.monotonic() < until


def test_a_late_stop_does_not_hit_the_next_child(tmp_path):
    child = supervise.spawn(witness("code", 0), cwd=tmp_path, sandbox="limits", limits=SHORT)
    guard = child._guard
    number = child._answer.number
    child.wait()
    child.stop("too late")
    child.trust_until(0)
    # Simulate messages that were under way when the report arrived.
    late = b'{"stop": 0, "number": %d}\n{"trust_until": 0, "number": %d}\n' % (number, number)
    guard.control.sendall(late)

    said = Said()
    with supervise.spawn(witness("sleep"), cwd=tmp_path, sandbox="limits", limits=SHORT, on_output=said) as following:
        assert following._guard is guard
        wait_for("ready", following, said)
        guard.control.sendall(late)

        assert [following.poll(0.1) for _ in range(3)] == [None] * 3
    assert child.ended.reason == "exited"


def test_a_forked_process_has_children_of_its_own(tmp_path):
    program = f"""
import os
from work.processes import supervise
from ade_keeper.proc import processes
def go(code):
    leave = f"import os; os._exit({{code}})"
    return supervise.run([sys.executable, "-I", "-S", "-c", leave], cwd={str(tmp_path)!r})
go(1)
if os.fork() == 0:
    code = go(2).returncode
    os._exit(code if any(each.parent == os.getpid() for each in processes()) else 9)
print(os.waitstatus_to_exitcode(os.wait()[1]), go(3).returncode)
"""
    with Helper(program) as helper:
        assert helper.line() == "2 3"


def test_the_end_of_the_program_ends_what_it_left_running(tmp_path):
    word = token()
    program = f"""
from work.processes import supervise
child = supervise.spawn({witness("double", "sleep", word)!r}, cwd={str(tmp_path)!r})
while b"forked" not in b"".join(l.text.encode() for l in said): child.poll(1)
""".replace("child = ", "said = []\nchild = ").replace(
        f"cwd={str(tmp_path)!r}", f"cwd={str(tmp_path)!r}, on_output=said.extend"
    )
    with Helper(program) as helper:
        helper.process.wait(20)

    assert all_gone(word)


def test_supervision_needs_neither_django_nor_anything_installed(tmp_path):
    program = f"""
from work.processes import supervise
print(supervise.run(["true"], cwd={str(tmp_path)!r}).returncode, "django" in sys.modules)
"""
    with Helper(program) as helper:
        assert helper.line() == "0 False"


def test_no_worker_thread_ever_forks_python():
    sources = [*ROOT.glob("work/**/*.py"), *ROOT.glob("builds/**/*.py"), *ROOT.glob("runs/**/*.py")]
    forking = {path.name for path in sources for word in ("preexec_fn", "os.fork(") if word in path.read_text()}

    # Both have a single thread and run in separate processes.
    assert forking <= {"spawner.py", "guard.py"}


def test_an_end_can_be_read_aloud():
    ended = Ended(
        reason="stopped",
        returncode=None,
        signal=None,
        stop_reason="cancelled by Olga",
        over_limit=None,
        started=1.0,
        ended=3.5,
        output_bytes=0,
        truncated=False,
        events_refused=0,
        max_rss_bytes=0,
        cpu_seconds=0.0,
        left_behind=(),
    )
    assert str(ended) == "stopped (cancelled by Olga) after 2.5 s"
    over = replace(ended, reason="over_limit", over_limit="disk: more than 1 MB in its files")
    assert str(over) == "exceeded its limit of disk: more than 1 MB in its files after 2.5 s"
    assert str(replace(ended, reason="timed_out")) == "timed out after 2.5 s"
    assert "over its limit of CPU time" in str(replace(ended, reason="signalled", signal="SIGXCPU"))
    assert "could not be killed: 7, 8" in str(replace(ended, left_behind=(7, 8)))


def test_sockets_of_the_pool_are_not_inherited(tmp_path):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.set_inheritable(True)
        _, said = run(["fds"], tmp_path, sandbox="limits")

    assert set(said.json) == {"0", "1", "2"}
