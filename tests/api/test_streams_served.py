"""Streams from a real gunicorn with two web processes, over the network."""

import os
import signal
import time

import psutil
import pytest
from django.db import connection

from api import tokens
from config import databases
from tests.api.streaming import Served
from tests.factories import RunFactory, bring_to
from tests.stepping import terminate, until
from work import lifecycle
from work.work_types import work_type_named

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

# Generous, because the machine is shared; `python -m benchmarks.streams` measures against the real goals.
PATIENCE = 10


@pytest.fixture
def serve(programs):
    served = []
    yield lambda **given: served.append(Served(programs, **given)) or served[-1]
    for each in served:
        each.close()


@pytest.fixture
def token(ravi, workspace):
    return tokens.issue(workspace, ravi, "follows", [], actor="olga")[1]


@pytest.fixture
def run(document, configuration, build):
    return RunFactory(workspace=document.workspace, configuration=configuration, build=build, input_document=document)


@pytest.fixture
def path(workspace):
    return f"/api/v1/workspaces/{workspace.pk}/stream"


def note(run, message=""):
    assert lifecycle.record(work_type_named("run").states, run.pk, "NOTE", message=message)


def web_processes(served):
    return psutil.Process(served.program.pid).children()


def connections_of(program):
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", [program])
        return cursor.fetchone()[0]


def test_both_processes_tell_of_a_run_to_its_end(serve, run, token):
    served = serve()
    streams = [served.follow(f"/api/v1/runs/{run.pk}/stream", token) for _ in range(8)]

    bring_to(run, "succeeded")

    assert until(lambda: all(stream.is_over for stream in streams))
    assert {tuple(stream.kinds) for stream in streams} == {("RUN_QUEUED", "RUN_STARTED", "RUN_SUCCEEDED")}
    assert all(stream.said == [("end", "finished")] for stream in streams)


def test_heartbeats_come_and_the_end_after_a_while(serve, path, token):
    served = serve(TEST_HEARTBEAT_SECONDS=0.3, TEST_LONGEST_SECONDS=2)

    stream = served.follow(path, token)

    assert until(lambda: stream.is_over)
    assert stream.comments >= 3
    assert stream.said == [("again", "time")]


def test_clients_that_go_away_leave_nothing_behind(serve, run, path, token):
    served = serve(web_processes=1)
    (web,) = web_processes(served)
    threads, files = web.num_threads(), web.num_fds()
    streams = [served.follow(path, token) for _ in range(30)]
    until(lambda: all(stream.last_id for stream in streams))
    # The hub and the threads that query the database, instead of one thread per stream.
    assert web.num_threads() < threads + 12

    for stream in streams:
        stream.close()

    # The threads that query the database remain, without open connections.
    assert until(lambda: web.num_fds() <= files + 6)
    again = [served.follow(path, token) for _ in range(100)]
    assert all(stream.status == 200 for stream in again)
    assert served.get(path, token)[0] == 429
    for stream in again:
        stream.close()
    assert until(lambda: web.num_fds() <= files + 6)


@pytest.mark.only_on("postgresql")
def test_open_streams_have_a_connection_together(serve, run, path, token):
    served = serve(web_processes=1)
    streams = [served.follow(path, token) for _ in range(30)]
    until(lambda: all(stream.last_id for stream in streams))
    name = f"program 0 of {os.getpid()}"

    # The pool keeps its connections open for minutes.
    assert connections_of(name) <= databases.POOL["max_size"] < len(streams)
    for stream in streams:
        stream.close()
    assert served.get("/admin/login/")[0] == 200


@pytest.mark.only_on("postgresql")
def test_a_connection_that_the_server_ends_is_made_again(serve, run, path, token):
    served = serve(web_processes=1)
    stream = served.follow(path, token)
    until(lambda: stream.last_id)
    with connection.cursor() as cursor:
        name = f"program 0 of {os.getpid()}"
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE application_name = %s", [name])
        backends = [backend for (backend,) in cursor.fetchall()]

    for backend in backends:
        terminate(backend)
    note(run)

    assert until(lambda: stream.events)
    assert stream.said == []


def test_told_to_end_gunicorn_does_not_wait_for_streams(serve, run, path, token):
    served = serve()
    streams = [served.follow(path, token) for _ in range(20)]
    until(lambda: all(stream.last_id for stream in streams))
    began = time.monotonic()

    served.program.send(signal.SIGTERM)
    code = served.program.code()

    assert code == 0
    assert time.monotonic() - began < 5 + PATIENCE
    assert until(lambda: all(stream.is_over for stream in streams))
    assert all(stream.said == [("again", "stopping")] for stream in streams)
    assert "Forcing close" not in served.program.logged()


def test_streams_are_told_soon_and_others_do_not_wait(serve, run, path, token):
    """A smaller and more tolerant version of `python -m benchmarks.streams`."""
    served = serve()
    streams = [served.follow(path, token) for _ in range(60)]
    until(lambda: all(stream.last_id for stream in streams))
    delays, pages = [], []

    for n in range(10):
        note(run, str(n))
        written = time.monotonic()
        until(lambda n=n: all(len(stream.events) > n for stream in streams), every=0.005)
        delays.append(time.monotonic() - written)
        asked = time.monotonic()
        assert served.get("/api/v1/runs", token)[0] == 200
        pages.append(time.monotonic() - asked)

    assert sorted(delays)[5] < 0.1 * PATIENCE
    assert sorted(pages)[5] < 0.05 * PATIENCE
    assert sum(web.memory_full_info().pss for web in web_processes(served)) < 300 * 10**6
    assert [event["message"] for event in streams[0].events] == [str(n) for n in range(10)]
