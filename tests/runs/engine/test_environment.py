"""What the engine of a run sees of its worker, its machine and other runs."""

import os
import random
import signal
import socket
import sys
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from tests.runs.engine.running import (
    STEP,
    data_of,
    each_level,
    error_of,
    facts_of,
    field,
    lines,
    needs_bubblewrap,
)
from work.processes.fork_server import EVENTS_NUMBER

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.usefixtures("way")]

CANARY = "canary-4711"
# Python adds the first, bubblewrap the second.
NOT_OURS = {"LC_CTYPE", "PWD"}


@each_level
def test_the_environment_of_a_run_is_a_list_of_what_is_allowed(lane, level, monkeypatch):
    for name in ("DATABASE_URL", "SECRET_KEY", "DJANGO_SETTINGS_MODULE", "AZURE_KEY", "LD_PRELOAD", "PYTHONPATH"):
        monkeypatch.setenv(name, f"/{CANARY}")

    environ = facts_of(lane)["environ"]

    assert CANARY not in str(environ)
    assert {name for name in environ if name not in NOT_OURS} == {
        "PATH", "LANG", "HOME", "TMPDIR", "PYTHONUTF8", "PYTHONUNBUFFERED", "PYTHONNOUSERSITE",
        "PYTHONDONTWRITEBYTECODE", "PYTHONFAULTHANDLER", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    }  # fmt: skip


@each_level
def test_a_run_inherits_no_descriptor_but_that_of_its_events(lane, level, way):
    with open(os.devnull) as file, socket.socket() as connection:
        for each in (file, connection):
            os.set_inheritable(each.fileno(), True)
        facts = facts_of(lane)

    assert set(facts["descriptors"]) == {"0", "1", "2", str(facts["event_descriptor"])}
    assert facts["descriptors"]["0"] == "/dev/null"
    assert facts["stdin"] == ""
    assert way == "cold" or facts["event_descriptor"] == EVENTS_NUMBER


@each_level
def test_nothing_that_a_run_changes_is_there_in_the_next(lane, level):
    first = facts_of(lane)
    facts_of(lane, "litter_in:..", "litter:1")

    second = facts_of(lane)

    assert second["seen"] == []
    assert second["random"] != first["random"]
    assert second["random"] != random.Random(7).random()
    assert "LITTER" not in second["environ"]
    assert second["cwd"] != first["cwd"]
    assert second["here"] == first["here"] == [".tmp", "document.txt", "input.json"]
    assert len(second["beside"]) == len(first["beside"])
    assert second["scratch"] == []
    assert second["temporary"] == second["environ"]["TMPDIR"] == f"{second['cwd']}/.tmp"
    assert second["gc"]
    assert second["umask"] == 0o077
    assert second["signals"] == first["signals"]


def test_a_run_has_of_ours_only_the_engine_and_its_configuration(lane):
    facts = facts_of(lane)

    assert {"ade_engine", "main"} <= set(facts["modules"])
    assert not {"django", "work", "runs", "builds", "documents", "config"} & set(facts["modules"])
    assert not [each for each in facts["path"] if each.startswith(str(django_settings.BASE_DIR))]


@needs_bubblewrap
def test_a_walled_off_run_sees_nothing_of_ours_and_of_other_runs(lane):
    hidden = [str(django_settings.VAR_DIR), f"{django_settings.VAR_DIR}/media", f"{django_settings.VAR_DIR}/secret_key"]

    run = lane.execute(f"look:{','.join(hidden)}")

    looked = field(run, "looked")
    # Only its own environment and directory are visible there.
    assert set(looked[hidden[0]]) <= {"environments", "engines"}
    assert looked[hidden[1]] == looked[hidden[2]] == "No such file or directory"


@needs_bubblewrap
def test_a_walled_off_run_writes_only_to_its_directory(lane, tmp_path):
    environment = next(Path(django_settings.VAR_DIR, "environments").glob("[0-9a-f]*"))
    outside = [
        "/etc/written", "/tmp/written", f"{tmp_path}/written", f"{django_settings.BASE_DIR}/written",
        f"{environment}/ade.json", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/written",
    ]  # fmt: skip

    run = lane.execute(f"write:{','.join([*outside, 'inside'])}")

    written = field(run, "written")
    assert written.pop("inside") == "written"
    assert "written" not in written.values()
    assert not (tmp_path / "written").exists()


@needs_bubblewrap
def test_a_walled_off_run_has_no_network(lane):
    with socket.create_server(("127.0.0.1", 0)) as server:
        run = lane.execute(f"connect:{server.getsockname()[1]}")

    assert field(run, "connected") != "connected"


@pytest.mark.parametrize(
    "name",
    ["-rf.txt", "--help", "-c import os", "$(id).txt", "; rm -rf *", "../../etc/passwd", "a\nb.txt", "…" * 60, "x.-rf"],
)
def test_the_name_of_a_document_is_data_and_nothing_else(lane, name):
    document = lane.document("facts", "log_name:", name=name)

    run = lane.execute(document=document)

    assert error_of(run) == ("succeeded", "", "")
    assert field(run, "name") == name
    facts = field(run, "facts")
    assert [each for each in facts["here"] if each != ".tmp"] in (["document.txt", "input.json"],)
    assert name not in facts["arguments"]


@each_level
def test_the_code_of_a_configuration_runs_only_in_its_environment(lane, level, tmp_path):
    """The code reports where it is imported, and kills any other process that imports it."""
    code = "import os, sys\nif not os.path.exists(os.path.join(sys.prefix, 'ade.json')): os.kill(os.getpid(), 9)\n"
    code += "print('imported by', os.getpid(), sys.prefix)\n"
    configuration, _ = lane.configure({"marked.py": code + STEP}, entry_point="marked")

    run = lane.execute("", configuration=configuration)

    assert error_of(run) == ("succeeded", "", "")
    assert data_of(run, "RUN_SUCCEEDED")["fields"] == 1
    assert not [line for line in lines(run) if line.startswith(f"imported by {os.getpid()} ")]
    assert "marked" not in sys.modules


@each_level
def test_signals_are_as_in_any_python(lane, level):
    """A broken pipe and a file that is too large raise exceptions, warm and cold."""
    handlers = facts_of(lane)["signals"]

    assert handlers == [str(each) for each in (signal.SIG_DFL, signal.SIG_IGN, signal.SIG_IGN)]


def test_what_an_import_has_set_is_set_for_its_steps(lane):
    code = "import os\nos.environ |= {'OMP_NUM_THREADS': '3', 'FROM_IMPORT': '4'}\ndel os.environ['LANG']\n"
    code += "from ade_engine import step\n@step\ndef only(context):\n    context.field('environ', dict(os.environ))\n"
    configuration, _ = lane.configure({"main.py": code})

    for _ in range(2):
        run = lane.execute("", configuration=configuration)

    environ = field(run, "environ")
    assert (environ["OMP_NUM_THREADS"], environ["FROM_IMPORT"]) == ("3", "4")
    assert "LANG" not in environ
    assert environ["TMPDIR"].endswith(f"/{run.pk}-1/.tmp")
