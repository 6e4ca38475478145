"""Which processes die together: the child with its worker, its spawner and its guard, but not with the thread that
started it.
"""

import os
import select
import signal
import threading
import time

import pytest

from ade_keeper import guard, proc
from tests.work.supervised import (
    SHORT,
    Helper,
    Said,
    all_gone,
    carriers,
    children_of,
    each_level,
    gone,
    run,
    token,
    wait_for,
    witness,
)
from work.processes import spawner_client, supervise

pytestmark = pytest.mark.once

SUPERVISOR = """
from work.processes import supervise
said = []
child = supervise.spawn({argv!r}, cwd={cwd!r}, sandbox={sandbox!r}, on_output=said.extend)
while len(said) < {lines}: child.poll(1)
print(child.process_id.pid, os.getpid())
sys.stdout.flush()
child.wait()
"""


def supervisor(argv, cwd, sandbox, lines):
    return "import os\n" + SUPERVISOR.format(argv=argv, cwd=str(cwd), sandbox=sandbox, lines=lines)


@each_level
@pytest.mark.parametrize(("mode", "lines"), [("stubborn", 1), ("fork", 2), ("setsid", 2), ("double", 2)])
def test_a_killed_worker_takes_all_with_it(tmp_path, sandbox, mode, lines):
    word = token()
    with Helper(supervisor(witness(mode, "sleep", word), tmp_path, sandbox, lines)) as helper:
        assert helper.line()
        assert carriers(word)
        others = [pid for child in children_of(helper.pid) for pid in [child, *children_of(child)]]

        os.kill(helper.pid, signal.SIGKILL)
        helper.process.wait()

        assert all_gone(word)
        assert all(gone(pid) for pid in others)


def test_a_killed_worker_takes_all_with_it_though_a_fork_of_it_lives(tmp_path):
    """The fork holds copies of all sockets, so their end does not show that the worker has died."""
    word = token()
    program = supervisor(witness("stubborn", word), tmp_path, "limits", 1).replace(
        "child.wait()",
        "import time\nif os.fork() == 0: time.sleep(200)\nprint('forked')\nsys.stdout.flush()\nchild.wait()",
    )
    with Helper(program) as helper:
        helper.line()
        helper.line()
        [fork] = [pid for pid in children_of(helper.pid) if not children_of(pid)]
        try:
            os.kill(helper.pid, signal.SIGKILL)
            helper.process.wait()

            assert all_gone(word)
        finally:
            os.kill(fork, signal.SIGKILL)


@each_level
def test_a_killed_spawner_takes_all_with_it_and_the_next_child_gets_another(tmp_path, sandbox):
    word, said = token(), Said()
    with supervise.spawn(
        witness("double", "sleep", word), cwd=tmp_path, sandbox=sandbox, on_output=said, limits=SHORT
    ) as child:
        wait_for("ready", child, said)
        wait_for("forked", child, said)

        [mine] = [pid for pid in children_of(os.getpid()) if children_of(pid)]
        os.kill(mine, signal.SIGKILL)
        ended = child.wait()
    again, _ = run(["code", 3], tmp_path, sandbox=sandbox)

    assert ended.reason == "lost" or ended.signal == "SIGKILL"
    assert all_gone(word)
    assert again.returncode == 3


@each_level
@pytest.mark.parametrize(("mode", "lines"), [("sleep", ["ready"]), ("double", ["ready", "forked"])])
def test_a_killed_guard_takes_all_with_it_and_no_other(tmp_path, sandbox, mode, lines):
    word, other, said = token(), token(), Said()
    with (
        supervise.spawn(witness("sleep", other), cwd=tmp_path, sandbox=sandbox, limits=SHORT) as bystander,
        supervise.spawn(witness(mode, "sleep", word), cwd=tmp_path, sandbox=sandbox, on_output=said) as child,
    ):
        for line in lines:
            wait_for(line, child, said)

        signal.pidfd_send_signal(child._guard.pidfd, signal.SIGKILL)
        ended = child.wait()

        assert (ended.reason, ended.returncode, ended.left_behind) == ("lost", None, ())
        assert str(ended).startswith("lost: its process guard was killed")
        assert all_gone(word)
        assert bystander.poll() is None
        assert carriers(other)


@each_level
@pytest.mark.parametrize("mode", ["stubborn", "double"])
def test_when_all_in_between_are_killed_the_kernel_ends_the_child(tmp_path, sandbox, mode):
    """Without the sandbox, only the child itself ends: this is the one gap that `limits` leaves."""
    spawner_client.close()
    word, said = token(), Said()
    with supervise.spawn(witness(mode, "sleep", word), cwd=tmp_path, sandbox=sandbox, on_output=said) as child:
        wait_for("ready", child, said)
        if mode == "double":
            wait_for("forked", child, said)
        [mine] = [pid for pid in children_of(os.getpid()) if children_of(pid)]
        os.kill(mine, signal.SIGSTOP)
        signal.pidfd_send_signal(child._guard.pidfd, signal.SIGKILL)
        os.kill(mine, signal.SIGKILL)

        assert child.wait().reason == "lost"

    assert child.process_id.alive() is False
    if sandbox == "bubblewrap" or mode == "stubborn":
        assert all_gone(word)
    for left in carriers(word):
        os.kill(left.pid, signal.SIGKILL)


def test_what_a_killed_guard_left_is_also_reaped(tmp_path):
    said = Said()
    with supervise.spawn(witness("double", "sleep"), cwd=tmp_path, sandbox="limits", on_output=said) as child:
        wait_for("ready", child, said)
        [mine] = [pid for pid in children_of(os.getpid()) if children_of(pid)]
        signal.pidfd_send_signal(child._guard.pidfd, signal.SIGKILL)
        child.wait()

    until = time.monotonic() + 20
    while any(each.state == "Z" for each in proc.processes() if each.parent == mine):
        assert time.monotonic() < until


def test_an_idle_guard_that_was_killed_is_not_noticed(tmp_path):
    run(["code", 0], tmp_path, sandbox="limits")
    for idle in spawner_client._pool._idle:
        signal.pidfd_send_signal(idle.pidfd, signal.SIGKILL)
        select.select([idle.pidfd], [], [], 5)

    ended, _ = run(["code", 3], tmp_path, sandbox="limits")

    assert ended.returncode == 3


@pytest.mark.parametrize(
    "nonsense",
    [
        {"status": 1 << 70},
        {"status": "0"},
        {"why": "because"},
        {"at": None},
        {"cpu_seconds": float("inf")},
        {"max_rss_bytes": -1},
        {"left_behind": [float("inf")]},
        {"left_behind": 7},
    ],
    ids=str,
)
def test_nonsense_from_a_guard_counts_as_a_lost_child(tmp_path, monkeypatch, nonsense):
    """A guard inside a sandbox is under the control of its run."""
    parse = spawner_client.parse

    def spoiled(line):
        answer = parse(line)
        return answer | nonsense if "left_behind" in answer else answer

    monkeypatch.setattr(spawner_client, "parse", spoiled)

    ended, _ = run(["code", 0], tmp_path, sandbox="limits")

    assert (ended.reason, ended.returncode) == ("lost", None)


@each_level
def test_a_child_outlives_the_thread_that_started_it(tmp_path, sandbox):
    """PR_SET_PDEATHSIG alone would end it, because it applies to the thread. The spawner watches the process."""
    spawner_client.close()
    word, said, started = token(), Said(), []
    options = {"cwd": tmp_path, "sandbox": sandbox, "on_output": said, "limits": SHORT}
    thread = threading.Thread(target=lambda: started.append(supervise.spawn(witness("polite", word), **options)))
    thread.start()
    thread.join()

    [child] = started
    with child:
        wait_for("ready", child, said)
        # A death signal would have arrived by now: it is sent before join returns.
        assert child.poll(0.3) is None
        child.stop("enough")
        assert child.wait().returncode == 7


def test_the_kernel_ends_the_child_with_its_guard(tmp_path):
    _, said = run(["facts"], tmp_path, sandbox="limits")

    assert said.json["death_signal"] == signal.SIGKILL


def test_a_child_whose_guard_died_before_it_asked_for_the_signal_does_not_start(tmp_path):
    program = f"""
import os
from ade_keeper import guard
order = {{"argv": ["/bin/sh", "-c", "touch {tmp_path}/started"], "env": {{}}, "cwd": "/", "numbers": [], "limits": {{}},
    "sandboxed": False, "is_fork": False}}
if os.fork() == 0:
    guard.become(order, [], 1 if {{wrong}} else os.getppid(), 2, guard.execute, None)
print(os.waitstatus_to_exitcode(os.wait()[1]), os.path.exists("{tmp_path}/started"))
"""
    with Helper(program.replace("{wrong}", "True")) as helper:
        assert helper.line() == "1 False"


def test_a_spawner_of_another_parent_does_not_serve():
    program = """
import os, socket
from work.processes.spawner import serve
ours, theirs = socket.socketpair()
try: serve(theirs.detach(), os.getpid())
except SystemExit as error: print(error)
"""
    with Helper(program) as helper:
        assert helper.line().startswith("This program must be started by process ")


def test_the_times_of_the_guard_fit_the_promise():
    """The guard checks more often than the second that a stop may exceed its grace period."""
    assert guard.SWEEP_SECONDS < 0.1
