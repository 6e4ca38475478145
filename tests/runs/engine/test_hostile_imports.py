"""Code at the top level of a configuration runs in the process that its runs are forked from: it can make anything of
that, also of what that says to the worker. It harms only its own runs.
"""

import time
from pathlib import Path

import psutil
import pytest

from runs import periodic
from tests.runs.engine.running import (
    STEP,
    assert_no_process_is_left,
    cold_only,
    error_of,
    idle,
    needs_bubblewrap,
    warm_only,
    way_of,
)
from tests.stepping import until
from work.processes import spawner_client

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.usefixtures("way"), needs_bubblewrap]

MB = 1 << 20
WHEN_WARM = "import json, os, signal, socket, sys, time\nif 'serve' in sys.argv:\n    "
# A process of its own, which keeps the socket to the worker.
IN_A_FORK = f"{WHEN_WARM}control = int(sys.argv[-1])\n    if os.fork() == 0:\n        "
FLOODS = {
    "bytes": "while True: os.write(control, b'x' * 65536)\n",
    "drops": "while True: os.write(control, b'x'); time.sleep(0.01)\n",
    "descriptors": "s = socket.socket(fileno=control)\n        while True: socket.send_fds(s, [b'x'], [1])\n",
    "lines": "while True: os.write(control, b'[]' + bytes([10]))\n",
}
# Instead of the guard, which is in the same process.
INSTEAD = (
    f"{WHEN_WARM}from ade_keeper.guard import ProcessGuard\n"
    "    def run(guard):\n"
    "        line = lambda **said: [json.dumps(said).encode() + bytes([10])]\n"
    "        me = [os.pidfd_open(os.getpid())]\n"
    "        socket.send_fds(guard.control, line(keeper=1), me)\n"
    "        guard.control.recv(65536)\n"
    "        {said}\n"
    "        time.sleep(600)\n"
    "    ProcessGuard.run = run\n"
)
ANSWER = "socket.send_fds(guard.control, line(pid=1, start_ticks=1, at={at}), me)"
REPORT = "guard.control.sendall(line(status={status}, why={why}, at=0, max_rss_bytes={rss}, cpu_seconds=0, {rest}))"
REST = "left_behind=[], keeper_is_free=True"
LIES = {
    "no answer": "guard.control.sendall(b'nonsense' + bytes([10]))",
    "deep": "guard.control.sendall(b'[' * 100000 + bytes([10]))",
    "no descriptor": "guard.control.sendall(line(pid=1, start_ticks=1, at=1))",
    "no numbers": "socket.send_fds(guard.control, line(pid='x', start_ticks=[], at={}), me)",
    "strange failure": "guard.control.sendall(line(failed=[1], step=7, error=None))",
    "status": f"{ANSWER}; {REPORT}".format(at=1, status="'x'", why=None, rss=1, rest=REST),
    "reason": f"{ANSWER}; {REPORT}".format(at=1, status=0, why="'because'", rss=1, rest=REST),
    "size": f"{ANSWER}; {REPORT}".format(at=1, status=0, why=None, rss="float('nan')", rest=REST),
    "left": f"{ANSWER}; {REPORT}".format(at=1, status=0, why=None, rss=1, rest="left_behind=9, keeper_is_free=[]"),
    "nothing more": f"{ANSWER}; guard.control.close()".format(at=1),
}


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(spawner_client, "ANSWER_SECONDS", 2.0)


@warm_only
@pytest.mark.parametrize("flood", FLOODS)
def test_what_an_import_says_in_the_place_of_the_guard_costs_the_worker_nothing(lane, flood, impatient):
    worker = psutil.Process()
    descriptors, memory = worker.num_fds(), worker.memory_info().rss
    configuration, _ = lane.configure({"main.py": IN_A_FORK + FLOODS[flood] + STEP})

    run = lane.execute("", configuration=configuration)

    assert error_of(run) == ("succeeded", "", "")
    assert way_of(run) == "cold"
    assert worker.num_fds() < descriptors + 20
    assert worker.memory_info().rss < memory + 64 * MB
    assert_no_process_is_left()


@warm_only
@pytest.mark.parametrize("lie", LIES)
def test_a_guard_that_lies_harms_only_its_own_run(lane, lie, impatient, settings):
    settings.ADE_RUN_TIMEOUT_SECONDS = 20
    configuration, _ = lane.configure({"main.py": INSTEAD.format(said=LIES[lie]) + STEP})

    run = lane.execute("", configuration=configuration)

    assert "Internal error" not in run.error_message
    assert idle() == []
    assert_no_process_is_left()
    lane.assert_well()


@warm_only
@pytest.mark.parametrize("at", ["1e17", "float('nan')", "float('inf')"])
def test_a_guard_cannot_give_its_run_more_time(lane, at, impatient, settings, stuck_soon):
    settings.ADE_RUN_TIMEOUT_SECONDS = 2
    configuration, _ = lane.configure({"main.py": INSTEAD.format(said=ANSWER.format(at=at)) + STEP})
    began = time.monotonic()

    run = lane.execute("", configuration=configuration)

    assert run.status in ("failed", "succeeded")
    assert time.monotonic() - began < 40
    assert_no_process_is_left()


@warm_only
def test_an_import_that_starts_processes_is_not_kept_warm(lane):
    configuration, _ = lane.configure({"main.py": f"{WHEN_WARM}if os.fork() == 0: time.sleep(600)\n{STEP}"})

    run = lane.execute("", configuration=configuration)

    assert (run.status, way_of(run)) == ("succeeded", "cold")
    assert idle() == []


@warm_only
def test_an_engine_that_does_something_while_it_is_idle_is_ended(lane):
    later = "def later(*_):\n        if os.fork() == 0: time.sleep(600)\n    "
    later += "signal.signal(signal.SIGALRM, later)\n    signal.setitimer(signal.ITIMER_REAL, 3)\n"
    configuration, _ = lane.configure({"main.py": WHEN_WARM + later + STEP})
    run = lane.execute("", configuration=configuration)
    assert way_of(run) == "warm"
    (engine,) = idle()
    until(lambda: not engine.fork_server.is_alone())

    periodic.look_at_engines()

    assert idle() == []
    assert_no_process_is_left()


@warm_only
def test_an_engine_that_is_idle_stays(lane):
    lane.assert_well()
    before = idle()

    periodic.look_at_engines()

    assert idle() == before != []


@warm_only
def test_what_an_idle_engine_writes_is_limited(lane, settings):
    settings.ADE_RUN_DISK_BYTES = 32 * MB
    later = "def later(*_):\n        open('much', 'wb').write(bytes(64 << 20))\n    "
    later += "signal.signal(signal.SIGALRM, later)\n    signal.setitimer(signal.ITIMER_REAL, 3)\n"
    configuration, _ = lane.configure({"main.py": WHEN_WARM + later + STEP})
    lane.execute("", configuration=configuration)
    (engine,) = idle()
    much = Path(engine.folder, "much")
    until(lambda: much.exists() and much.stat().st_size == 64 * MB)

    until(lambda: periodic.look_at_engines() == 0 and idle() == [])

    assert not much.exists()


@warm_only
def test_what_the_engine_itself_takes_counts_for_its_runs(lane, settings):
    settings.ADE_ENGINE_MEMORY_BYTES = 320 * MB
    grow = "def grow():\n        global held\n        held = b'x' * (200 << 20)\n"
    grow += "    os.register_at_fork(after_in_parent=grow)\n"
    step = "import time\nfrom ade_engine import step\n@step\ndef only(context):\n"
    step += "    held = b'x' * (200 << 20)\n    time.sleep(30)\n"
    configuration, _ = lane.configure({"main.py": WHEN_WARM + grow + step})

    run = lane.execute("", configuration=configuration)

    assert error_of(run)[:2] == ("failed", "LIMIT_EXCEEDED")
    assert "exceeded its limit of memory: " in run.error_message


@cold_only
def test_what_an_import_starts_ends_with_a_cold_run(lane):
    configuration, _ = lane.configure({"main.py": f"import os, time\nif os.fork() == 0: time.sleep(600)\n{STEP}"})

    run = lane.execute("", configuration=configuration)

    assert run.status == "succeeded"
    assert_no_process_is_left()
