import os
import sys

import pytest
from django.db import connection

from builds import environments
from tests.builds.making import (
    built,
    files_below,
    fingerprint_of,
    left_behind,
    log_of,
    path_of,
    queued,
    ran,
    step,
    value_of,
    work_on,
)
from tests.builds.wheels import put_wheel
from tests.factories import events_of, told
from tests.work.supervised import needs_bubblewrap
from work.processes.sandbox import bubblewrap

pytestmark = [pytest.mark.long, pytest.mark.django_db]

SCRIPT = {
    "{told}/entry_points.txt": "[console_scripts]\npeel = peeler:main\n",
    "peeler.py": "def main():\n    print(7)\n",
}
DIAL = """
import socket
try:
    socket.create_connection(('127.0.0.1', 80), 5)
except OSError as error:
    print(error)
print(sorted(name for _, name in socket.if_nameindex()))
"""


def test_a_build_is_made_and_tells_how(index):
    build = built(requirements="apple")

    assert (build.status, build.error_message) == ("ready", "")
    assert told(build) == ["BUILD_QUEUED", "BUILD_STARTED", *["LOG"] * len(log_of(build)), "BUILD_READY"]
    ours = [event.message for event in events_of(build) if (event.data or {}).get("stream") == "build"]
    assert ours[:4] == [
        "making the environment",
        "locking the requirements",
        "installing",
        "importing the entry point",
    ]
    assert ours[4].startswith("ready in ")
    assert " + apple==1.0" in log_of(build)
    assert left_behind() == []


def test_its_size_is_that_of_its_files(host):
    build = built()

    assert build.size_bytes == pytest.approx(environments.size_of(path_of(build)), abs=100)
    (stored,) = environments.all_environments()
    assert (stored.name, stored.fingerprint) == (path_of(build).name, build.fingerprint)
    assert stored.size_bytes == build.size_bytes


def test_steps_find_what_is_required(index):
    run = ran(built(step("import apple", "context.field('apple', apple.VERSION)"), requirements="apple"))

    assert run.status == "succeeded"
    assert value_of(run, "apple") == "1.0"


def test_what_packages_install_as_programs_runs_where_the_environment_is_now(index):
    put_wheel(index, "orange", more=SCRIPT)
    peel = ["import subprocess, sys", "said = subprocess.check_output([sys.prefix + '/bin/peel'], text=True)"]

    run = ran(built(step(*peel, "context.field('said', said.strip())"), requirements="orange"))

    assert (run.status, run.error_message) == ("succeeded", "")
    assert value_of(run, "said") == "7"


def test_tracebacks_show_where_files_are_now(index):
    put_wheel(index, "sour", more={"sour.py": "def bite():\n    return 1 / 0\n"})
    build = built(step("import sour", "sour.bite()"), requirements="sour")

    run = ran(build)

    shown = "\n".join(log_of(run))
    assert f'"{path_of(build)}/configuration/main.py", line 7' in shown
    assert f'"{path_of(build)}/lib/python3.{sys.version_info.minor}/site-packages/sour.py", line 2' in shown
    assert environments.BUILDING not in shown


def test_all_is_compiled(index):
    build = built(files={"main.py": step(before="import rules"), "rules.py": ""}, requirements="apple")

    files = files_below(path_of(build))
    for source in (path for path in files if path.endswith(".py") and not path.startswith("bin/")):
        folder, _, name = source.rpartition("/")
        assert f"{folder}/__pycache__/{name[:-3]}.{sys.implementation.cache_tag}.pyc" in files, source


@needs_bubblewrap
def test_no_engine_can_write_to_what_others_run(index):
    tries = ["import os", "for top, _, names in os.walk(sys.prefix):", "    for name in names:"]
    tries += ["        path = os.path.join(top, name)", "        if os.access(path, os.W_OK):"]
    tries += ["            context.field('writable', path)", "context.field('done', True)"]
    build = built(step(*tries, before="import sys"), requirements="apple")

    run = ran(build)

    assert dict(run.fields.values_list("name", "value")) == {"done": True}


def test_what_is_built_is_what_was_asked_for_whatever_becomes_of_the_configuration(host):
    files = {"main.py": step(), "ä/b.txt": "one\r\ntwo\u2028three\n", "empty.txt": ""}
    build = queued(files=files)
    edited = build.configuration
    edited.files = {"main.py": step("raise ValueError('edited')")}
    edited.save()

    work_on(build)

    copied = files_below(path_of(build) / environments.CONFIGURATION)
    texts = {path: file.read_bytes().decode() for path, file in copied.items() if "__pycache__" not in path}
    assert fingerprint_of(build.snapshot | {"files": texts}) == build.fingerprint
    assert ran(build).status == "succeeded"


def test_what_is_none_of_its_business_is_not_in_the_environment_variables_of_the_entry_point(host, monkeypatch):
    plant_canaries(monkeypatch)

    build = built(step(before="import os; print(sorted(os.environ.items()))"))

    assert build.status == "ready"
    assert "PATH" in str(log_of(build))
    assert "canary" not in str(log_of(build))


def test_nor_in_those_of_what_uv_starts(host, monkeypatch, tmp_path):
    plant_canaries(monkeypatch)
    (tmp_path / "bin").mkdir()
    spy = tmp_path / "bin" / "python3.99"
    spy.write_text("#!/bin/sh\nenv >&2\nexit 1\n")
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{spy.parent}:{os.environ['PATH']}")

    build = built(python_version="3.99")

    assert "PATH=" in build.error_message
    assert "canary" not in f"{build.error_message}{log_of(build)}"


@needs_bubblewrap
def test_the_entry_point_sees_neither_the_database_nor_the_files_of_others(host):
    (host / "media").mkdir(parents=True)
    (host / "media" / "document").write_text("canary")
    look = f"import os\nprint('seen', sorted(os.listdir({str(host)!r})))\n"
    if connection.vendor == "sqlite":
        look += f"try:\n    print('found', open({str(connection.settings_dict['NAME'])!r}, 'rb').read(9))\n"
        look += "except OSError as error:\n    print('found', error.strerror)\n"

    build = built(step(before=look))

    assert "seen ['environments']" in log_of(build)
    assert connection.vendor != "sqlite" or {
        "found b''",
        "found Permission denied",
        "found No such file or directory",
    } & {*log_of(build)}


@needs_bubblewrap
def test_the_entry_point_has_no_network(host):
    build = built(step(before=DIAL))

    assert "['lo']" in log_of(build)


def test_an_entry_point_may_print_and_start_threads(host):
    starts = "import threading, time\nprint('hello')\nthreading.Thread(target=time.sleep, args=(60,)).start()"
    build = built(step(before=starts))

    assert build.status == "ready"
    assert "hello" in log_of(build)
    assert ran(build).status == "succeeded"


def test_an_entry_point_may_be_one_function(host):
    build = built(files={"rules.py": "def read(context):\n    context.field('ok', True)\n"}, entry_point="rules:read")

    assert build.status == "ready"
    assert value_of(ran(build), "ok") is True


def test_a_configuration_may_ask_for_the_python_that_ade_has_though_nobody_else_finds_it(host, monkeypatch, tmp_path):
    if found := bubblewrap():
        (tmp_path / "bwrap").symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"

    build = built(step("import sys", "context.field('python', sys.version.split()[0])"), python_version=version)

    assert build.status == "ready", build.error_message
    assert value_of(ran(build), "python") == ".".join(map(str, sys.version_info[:3]))


def plant_canaries(monkeypatch):
    for name in ("SECRET_KEY", "DATABASE_URL", "ADE_TOKEN", "AWS_ACCESS_KEY", "PIP_INDEX_URL"):
        monkeypatch.setenv(name, "canary")
