"""Workers that are killed, stopped or asked to cancel while they build."""

import socket
import time
from contextlib import contextmanager, suppress

import psutil
import pytest

from builds import environments, lifecycle
from tests.builds.making import left_behind, log_of, path_of, pinned, queued, run_of, step, value_of
from tests.builds.wheels import put_wheel
from tests.factories import told
from tests.stepping import until

EAT = step("import apple", "context.field('apple', apple.VERSION)")
SLEEPS = "import time\n\ntime.sleep(600)\n"
# A cancel takes effect within a second; the rest is for a machine with other load.
CANCEL_SECONDS = 60


@pytest.fixture
def start(programs, host, index):
    """Return a function that starts a worker with this machine's var directory."""

    def start(name="w1", **environment):
        return programs.worker(name, "build=1", ADE_VAR_DIR=host, **environment)

    return start


def until_status(row, status):
    until(lambda: type(row).objects.filter(pk=row.pk, status=status).exists())
    row.refresh_from_db()


def ran_there(build):
    run = run_of(build)
    until_status(run, "succeeded")
    return run


def until_all_are_gone(processes):
    """Wait until these processes, which a worker and its children have started, have ended."""
    until(lambda: not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in processes))


def of_the_check(process):
    with suppress(psutil.NoSuchProcess):
        return "ade_engine" in process.cmdline()
    return False


def everything_is_gone():
    return left_behind() == [] and environments.all_environments() == []


@pytest.mark.long
def test_one_build_is_made_by_one_of_two_workers(start):
    build = queued(step(before="import time\ntime.sleep(0.5)"))
    start("w1")
    start("w2")

    until_status(build, "ready")

    assert told(build).count("BUILD_STARTED") == 1
    assert build.size_bytes
    assert path_of(build).exists()
    assert left_behind() == []


def test_a_cancel_ends_what_is_being_made(start):
    build = queued(SLEEPS)
    worker = start()
    until(lambda: "importing the entry point" in log_of(build))
    programs = worker.children()
    assert any(of_the_check(each) for each in programs)

    asked_at = time.monotonic()
    assert lifecycle.cancel(build, actor="olga") == "building"
    until_status(build, "cancelled")

    assert time.monotonic() - asked_at < CANCEL_SECONDS
    assert everything_is_gone()
    assert told(build)[-1] == "BUILD_CANCELLED"
    until(lambda: not any(of_the_check(each) for each in programs))


@pytest.mark.long
def test_a_cancel_ends_uv_while_it_waits_for_an_index(start):
    with silent_index() as address:
        build = queued(EAT, requirements="apple")
        start(UV_DEFAULT_INDEX=address)
        until(lambda: "locking the requirements" in log_of(build))

        asked_at = time.monotonic()
        lifecycle.cancel(build, actor="olga")
        until_status(build, "cancelled")

    assert time.monotonic() - asked_at < CANCEL_SECONDS
    assert everything_is_gone()


@pytest.mark.long
def test_a_worker_that_is_killed_while_uv_is_at_work_leaves_nothing_that_is_used(start):
    with silent_index() as address:
        build = queued(EAT, requirements="apple")
        first = start("w1", UV_DEFAULT_INDEX=address)
        until(lambda: "locking the requirements" in log_of(build))
        programs = first.children()
        assert any("pip compile" in " ".join(each.cmdline()) for each in programs)

        first.kill()
        until_all_are_gone(programs)

    assert environments.all_environments() == []
    assert len(left_behind()) == 1
    start("w2")
    until_status(build, "ready")
    assert told(build).count("BUILD_STARTED") == 2
    assert "RECOVERED" in told(build)
    until(lambda: left_behind() == [])
    assert value_of(ran_there(build), "apple") == "1.0"


@pytest.mark.long
def test_an_environment_that_nobody_came_to_tell_of_is_not_taken_for_that_of_another_lock(start, index):
    build = queued(EAT, requirements="apple")
    first = start("w1", ADE_FAILPOINTS="build.exited:kill9")
    assert first.code() == -9
    (lost,) = environments.all_environments()
    put_wheel(index, "apple", "2.0")

    start("w2")
    until_status(build, "ready")

    assert pinned(build) == {"apple": "2.0"}
    assert path_of(build).name != lost.name
    assert value_of(ran_there(build), "apple") == "2.0"


@pytest.mark.long
def test_a_worker_that_is_told_to_stop_gives_the_build_back(start):
    build = queued(SLEEPS)
    worker = start()
    until(lambda: "importing the entry point" in log_of(build))

    worker.end_at_once()

    assert worker.code() == 0
    build.refresh_from_db()
    assert (build.status, told(build)[-2:]) == ("queued", ["BUILD_RELEASED", "RECOVERED"])
    assert everything_is_gone()


@contextmanager
def silent_index():
    """An index that accepts every connection and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/simple"
