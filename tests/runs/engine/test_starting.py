"""Engines that cannot start: the run fails with a clear message, or its environment is built again; the worker goes on.

D18, a PID that another process has by now, is covered in tests/work/test_supervise_identity.py; forking without holding
locks of threads (D21) in the next test and in tests/work/test_supervise_start.py.
"""

import os
import resource
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from django.conf import settings as django_settings
from django.core.files.storage import default_storage

from builds import environments, integrity
from builds.models import Build
from runs import periodic
from tests.builds.making import writable
from tests.factories import force_status, told, write
from tests.runs.engine.running import STEP, assert_no_directory_is_left, each_level, error_of, idle, way_of
from work.processes import supervise

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.usefixtures("way")]


def test_nothing_of_ours_runs_code_between_fork_and_exec():
    """In a process with threads, such code may wait for a lock that is never released."""
    folders = [django_settings.BASE_DIR / app for app in ("work", "builds", "runs", "documents", "schedules")]
    sources = [path for folder in folders for path in folder.rglob("*.py")]

    assert sources
    assert [path for path in sources if "preexec_fn" in path.read_text() or "os.fork()" in path.read_text()] == [
        django_settings.BASE_DIR / "work" / "processes" / "spawner.py"
    ]


@contextmanager
def few_descriptors(free):
    """Limit this process to this many more open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(max(map(int, os.listdir("/proc/self/fd"))) + 20)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(opened) + 1, hard))
    for _ in range(free):
        os.close(opened.pop())
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in opened:
            os.close(each)


@pytest.fixture
def other(lane):
    """A build with an environment that no other test uses."""
    number = os.urandom(8).hex()
    configuration, name = lane.configure({"main.py": f"# {number}\n{STEP}"})
    yield configuration, environments.path_of(name)
    environments.erase(environments.path_of(name))


@each_level
def test_an_environment_that_was_removed_behind_our_back_is_made_again(lane, level, other):
    configuration, path = other
    environments.erase(path)

    run = lane.execute("", configuration=configuration)

    assert error_of(run) == ("succeeded", "", "")
    assert "ENVIRONMENT_MATERIALIZED" in told(run)
    assert (path / "ade.json").exists()
    assert Build.objects.get(configuration=configuration).status == "ready"


@each_level
def test_no_engine_is_forked_that_knows_only_an_environment_that_was_removed(lane, level, other, way):
    configuration, path = other
    code = "from ade_engine import step\n@step\ndef only(context):\n    import wave\n    import late\n"
    configuration, name = lane.configure({"main.py": f"# {os.urandom(8).hex()}\n{code}", "late.py": ""})
    path = environments.path_of(name)
    before = lane.execute("", configuration=configuration)
    environments.erase(path)

    run = lane.execute("", configuration=configuration)

    assert error_of(before) == error_of(run) == ("succeeded", "", "")
    assert way_of(run) == way
    environments.erase(path)


def test_an_environment_whose_python_is_gone_from_this_machine_is_made_again(lane, other):
    configuration, path = other
    python = path / "bin" / "python"
    with writable(python.parent):
        python.unlink()
        python.symlink_to("/nowhere/python3")

    run = lane.execute("", configuration=configuration)

    assert error_of(run) == ("succeeded", "", "")
    assert "ENVIRONMENT_MATERIALIZED" in told(run)


@each_level
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "is not executable"),
        ("#!/nowhere/python\n", "does not exist"),
        ("#!/bin/sh\nexit 3\n", "exited with code 3"),
        ("#!/bin/sh\nkill -9 $$\n", "was killed by SIGKILL"),
    ],
    ids=["forbidden", "no-interpreter", "exits", "killed"],
)
def test_a_python_that_does_not_start_fails_the_run_in_words(lane, level, other, content, words):
    configuration, path = other
    python = path / "bin" / "python"
    with writable(python.parent):
        python.unlink()
        python.write_text(content or "")
    python.chmod(0o755 if content else 0o644)
    # Renew the seal as if the environment had been built this way; otherwise it would be built again.
    integrity.write_seal(environments.root() / environments.SEALS / f"{path.name}.json", integrity.make_seal(path))

    run = lane.execute("", configuration=configuration)

    assert error_of(run)[:2] == ("failed", "ENGINE_FAILED")
    assert words in run.error_message or "bubblewrap ended without running it" in run.error_message
    assert "Internal error" not in run.error_message
    assert idle() == []
    lane.assert_well()


def test_a_worker_without_descriptors_fails_the_run_in_words_and_goes_on(lane):
    lane.assert_well()
    run = lane.submit("field:a=1")
    with few_descriptors(0):
        lane.run_once()

    run.refresh_from_db()
    assert error_of(run)[:2] == ("failed", "ENGINE_FAILED")
    assert "Too many open files" in run.error_message
    lane.assert_well(run.input_document)


@pytest.mark.parametrize("free", range(1, 12))
def test_whichever_descriptor_is_the_one_too_many_nothing_is_left_and_none_lost(lane, free):
    lane.assert_well()
    run = lane.submit("field:a=1")
    before = len(os.listdir("/proc/self/fd"))
    with few_descriptors(free):
        lane.run_once()

    periodic.tidy()
    run.refresh_from_db()
    assert run.status in ("failed", "succeeded")
    assert_no_directory_is_left()
    lane.assert_well(run.input_document)
    # The guards of cold starts remain for the next run.
    assert len(os.listdir("/proc/self/fd")) <= before + 6


def test_a_document_whose_file_is_gone_fails_its_run_in_words(lane):
    document = lane.document("field:a=1", name="invoice.txt")
    default_storage.delete(document.file.name)

    run = lane.execute(document=document)

    assert error_of(run) == ("failed", "ENGINE_FAILED", "The stored file of document 'invoice.txt' is missing.")
    lane.assert_well()


def test_a_document_that_was_purged_all_the_same_fails_its_run_in_words(lane):
    document = force_status(lane.document("field:a=1", name="invoice.txt"), "processed")
    run = lane.submit(document=document)
    # Written past ADE's checks, which make this impossible.
    write(document, file="", purged_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC))

    lane.run_once()

    said = "The content of document 'invoice.txt' was purged on 2026-01-02 03:04 UTC."
    run.refresh_from_db()
    assert error_of(run) == ("failed", "ENGINE_FAILED", said)
    lane.assert_well()


def test_a_machine_without_processes_fails_the_run_in_words(lane, monkeypatch, way):
    def refuse(*_, **__):
        raise BlockingIOError(11, os.strerror(11))

    with monkeypatch.context() as patched:
        patched.setattr(supervise.spawner_client, "start", refuse)
        run = lane.execute("field:a=1")

    assert error_of(run)[:2] == ("failed", "ENGINE_FAILED")
    assert "the process limit of this user or machine is reached" in run.error_message
    # A temporary problem of the machine does not disable warm engines.
    assert way_of(lane.execute("field:a=1")) == way
