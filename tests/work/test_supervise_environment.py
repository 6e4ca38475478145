"""What a child sees, and what it may and may not do."""

import os
import resource
import signal
import socket
import stat

import pytest

from tests.work.supervised import (
    LEVELS,
    ROOT,
    Helper,
    as_nobody,
    each_level,
    needs_bubblewrap,
    needs_nobody,
    run,
    witness,
)
from work.processes import supervise
from work.processes.sandbox import environment
from work.processes.supervise import Limits

pytestmark = pytest.mark.once

# Python adds the first, bubblewrap the second.
NOT_OURS = {"LC_CTYPE", "PWD"}

# Signals 32 and 33 belong to the C library: processes started with posix_spawn, as by make, ignore them, and no program
# can change that.
LIBRARY = 3 << 31


@each_level
def test_the_environment_is_a_list_of_what_is_allowed(tmp_path, sandbox, monkeypatch):
    for name in ("DATABASE_URL", "SECRET_KEY", "DJANGO_SETTINGS_MODULE", "ADE_VAR_DIR", "HTTPS_PROXY", "LD_PRELOAD"):
        monkeypatch.setenv(name, "/nothing/to/see")
    monkeypatch.setenv("PYTHONPATH", "/nothing/to/see")

    _, said = run(["env"], tmp_path, sandbox=sandbox, env={"ENGINE": "é"})

    assert {name: value for name, value in said.json.items() if name not in NOT_OURS} == {
        "PATH": os.environ["PATH"],
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "HOME": str(tmp_path),
        "TMPDIR": f"{tmp_path}/.tmp",
        "PYTHONUTF8": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONFAULTHANDLER": "1",
        "ENGINE": "é",
    }


def test_the_caller_may_change_what_is_allowed(tmp_path):
    assert environment("/d", "/d/.tmp", {"PATH": "/engine/bin", "PYTHONUTF8": "0"})["PATH"] == "/engine/bin"


@pytest.mark.parametrize(
    "name",
    ["DATABASE_URL", "REPLICA_DATABASE_URL", "SECRET_KEY", "DJANGO_SECRET_KEY", "AZURE_SECRET_KEY", "PGPASSWORD",
     "DJANGO_SETTINGS_MODULE", "DJANGO_DEBUG", "DJANGO_"],
)  # fmt: skip
def test_a_secret_in_the_environment_is_refused_by_name(tmp_path, name):
    with pytest.raises(ValueError, match=f"must not have secrets such as {name}\\.") as caught:
        supervise.run(["true"], cwd=tmp_path, env={"ENGINE": "1", name: "postgres://user:password@host"})

    assert "password" not in str(caught.value)


def test_our_own_environment_passed_by_mistake_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "sqlite:///")

    with pytest.raises(ValueError, match="must not have secrets such as "):
        supervise.run(["true"], cwd=tmp_path, env=os.environ)


def test_names_that_only_look_like_secrets_pass():
    names = ["DJANGOLOGY", "SECRET_KEYS_OF_MUSIC", "THE_DATABASE_URL_COUNT"]

    assert set(names) < set(environment("/d", "/d/.tmp", dict.fromkeys(names, "")))


def test_the_spawner_and_its_guards_know_no_secrets(tmp_path):
    program = f"""
import os
os.environ["SECRET_KEY"] = "hidden-thing"
from work.processes import supervise
from ade_keeper.proc import descendants
child = supervise.spawn(["sleep", "20"], cwd={str(tmp_path)!r}, sandbox="limits")
for each in descendants(os.getpid()):
    for name in ("environ", "cmdline"): assert b"hidden-thing" not in open(f"/proc/{{each.pid}}/{{name}}", "rb").read()
print(len(descendants(os.getpid())))
child.close()
"""
    with Helper(program) as helper:
        assert helper.line() == "3"


@each_level
def test_no_descriptor_is_inherited(tmp_path, sandbox):
    with open(os.devnull) as file, socket.socket() as connection:
        for each in (file, connection):
            os.set_inheritable(each.fileno(), True)
        _, said = run(["fds"], tmp_path, sandbox=sandbox)

    assert said.json["0"] == "/dev/null"
    assert set(said.json) == {"0", "1", "2"}


@each_level
def test_only_the_passed_descriptors_are_inherited(tmp_path, sandbox):
    reading, writing = os.pipe()
    _, said = run(["fds"], tmp_path, sandbox=sandbox, pass_fds=[writing], on_event=print)
    os.close(reading)
    os.close(writing)

    assert set(said.json) == {"0", "1", "2", "3", str(writing)}


@each_level
def test_what_a_child_is(tmp_path, sandbox):
    _, said = run(["facts"], tmp_path, sandbox=sandbox)
    facts = said.json

    assert facts["no_new_privs"] == "1"
    assert facts["core"] == [0, 0]
    assert facts["umask"] == 0o077
    assert facts["cwd"] == str(tmp_path)
    assert int(facts["blocked"], 16) == 0
    # Python itself ignores two signals; the next test covers a program that is not Python.
    assert int(facts["ignored"], 16) & ~LIBRARY == 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1
    assert facts["processes"] == [Limits.processes] * 2
    assert facts["session"] != os.getsid(0)
    if sandbox == "limits":
        assert facts["session"] == facts["pid"]
        assert facts["oom_score"] == 800


def test_no_signal_is_ignored(tmp_path):
    program = f"""
import signal
from work.processes import supervise
signal.signal(signal.SIGHUP, signal.SIG_IGN)
said = []
supervise.run(["grep", "SigIgn", "/proc/self/status"], cwd={str(tmp_path)!r}, sandbox="limits", on_output=said.extend)
print(said[0].text.split()[1])
"""
    with Helper(program) as helper:
        assert int(helper.line(), 16) & ~LIBRARY == 0


@each_level
def test_what_a_child_writes_is_for_its_owner_only(tmp_path, sandbox):
    run(["touch", f"{tmp_path}/made", f"{tmp_path}/.tmp/made"], tmp_path, sandbox=sandbox)

    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / ".tmp").stat().st_mode) == 0o700
    assert (tmp_path / ".tmp/made").exists()


@each_level
def test_memory_is_limited(tmp_path, sandbox):
    limits = Limits(wall_seconds=20, address_space_bytes=256 << 20)

    within, said = run(["memory", 64 << 20], tmp_path, sandbox=sandbox, limits=limits)
    beyond, complaint = run(["memory", 512 << 20], tmp_path, sandbox=sandbox, limits=limits)

    assert (within.returncode, said.texts) == (0, [f"have {64 << 20}"])
    assert (beyond.returncode, complaint.texts[-1]) == (1, "MemoryError")


@each_level
def test_time_of_the_processor_is_limited(tmp_path, sandbox):
    ended, _ = run(["burn"], tmp_path, sandbox=sandbox, limits=Limits(wall_seconds=20, cpu_seconds=1))

    assert (ended.reason, ended.signal) == ("signalled", "SIGXCPU")
    assert "over its limit of CPU time" in str(ended)
    # The kernel checks the limit by ticks, but reports the exact time.
    assert 0.5 <= ended.cpu_seconds < 2


@each_level
def test_open_files_are_limited(tmp_path, sandbox):
    _, said = run(["open_files", 200], tmp_path, sandbox=sandbox, limits=Limits(wall_seconds=20, open_files=64))

    assert said.texts == ["refused 24", "opened 61"]


@each_level
def test_the_size_of_a_file_is_limited(tmp_path, sandbox):
    ended, said = run(
        ["big_file", 64 << 20], tmp_path, sandbox=sandbox, limits=Limits(wall_seconds=20, file_size_bytes=2 << 20)
    )

    assert ended.returncode == 1
    assert "File too large" in said.texts[-1]
    assert (tmp_path / "big").stat().st_size == 2 << 20


@needs_nobody
@pytest.mark.parametrize("sandbox", LEVELS)
def test_processes_are_limited_for_users_other_than_root(sandbox):
    program = f"""
import shutil, tempfile
from work.processes import supervise
from work.processes.supervise import Limits
cwd, said = tempfile.mkdtemp(), []
argv = [*{["python", "-I", "-S"]!r}, *{witness("bomb", 1000)[3:]!r}]
argv[0] = sys.executable
ended = supervise.run(argv, cwd=cwd, sandbox={sandbox!r}, limits=Limits(wall_seconds=20, processes=200),
    on_output=said.extend)
print([line.text for line in said], ended)
shutil.rmtree(cwd)
"""
    with as_nobody(program) as helper:
        line = helper.line()

    assert "'refused 11'" in line
    assert "exited with code 0" in line


def test_a_limit_may_be_left_out(tmp_path):
    assert "RLIMIT_AS" not in Limits(address_space_bytes=None).rlimits()
    assert set(Limits().rlimits()) == {
        "RLIMIT_CORE", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_AS",
    }  # fmt: skip
    assert all(hasattr(resource, name) for name in Limits().rlimits())


@needs_bubblewrap
def test_the_machine_is_read_only_but_for_named_places(tmp_path):
    cwd, writable, other = (tmp_path / name for name in ("cwd", "writable", "other"))
    for each in (cwd, writable, other):
        each.mkdir()
    (other / "file").write_text("as it was")
    paths = [f"{cwd}/made", f"{writable}/made", f"{other}/made", f"{other}/file", "/tmp/ade-made", "/dev/made"]

    _, said = run(["touch", *paths], cwd, sandbox="bubblewrap", writable=[writable])

    assert list(said.json.values()) == [
        *["written"] * 2, *["No such file or directory"] * 2, *["Read-only file system"] * 2
    ]  # fmt: skip
    assert (other / "file").read_text() == "as it was"


@needs_bubblewrap
def test_hidden_places_are_empty_but_for_what_is_shown(tmp_path):
    var = tmp_path / "var"
    for name in ("cwd", "environment", "uploads", "out"):
        (var / name).mkdir(parents=True)
        (var / name / "file").write_text("content")
    (var / "db.sqlite3").write_text("secrets")
    (tmp_path / ".env").write_text("SECRET_KEY=x")
    shown = [f"{var}/{name}/file" for name in ("cwd", "environment", "out")]
    covered = [f"{var}/uploads", f"{var}/db.sqlite3", f"{tmp_path}/.env"]

    _, said = run(
        ["show", *shown, *covered],
        var / "cwd",
        sandbox="bubblewrap",
        hidden=[var, tmp_path / ".env"],
        readable=[var / "environment"],
        writable=[var / "out"],
    )
    _, written = run(
        ["touch", f"{var}/environment/new", f"{var}/out/new"],
        var / "cwd",
        sandbox="bubblewrap",
        hidden=[var],
        readable=[var / "environment"],
        writable=[var / "out"],
    )

    assert said.json == dict.fromkeys(shown, True) | dict.fromkeys(covered, False)
    assert list(written.json.values()) == ["Read-only file system", "written"]
    assert (tmp_path / ".env").read_text() == "SECRET_KEY=x"


@needs_bubblewrap
def test_what_is_hidden_stays_hidden_in_a_folder_that_is_shown(tmp_path):
    (tmp_path / "var/cwd").mkdir(parents=True)
    (tmp_path / "var/secret").write_text("content")
    (tmp_path / "code").write_text("content")

    _, said = run(
        ["show", f"{tmp_path}/var/secret", f"{tmp_path}/code"],
        tmp_path / "var/cwd",
        sandbox="bubblewrap",
        hidden=[tmp_path / "var"],
        readable=[tmp_path],
    )

    assert list(said.json.values()) == [False, True]


@needs_bubblewrap
def test_no_network_unless_asked_for(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        _, without = run(["connect", port], tmp_path, sandbox="bubblewrap")
        _, within = run(["connect", port], tmp_path, sandbox="bubblewrap", network=True)

    assert (without.texts, within.texts) == (["refused 111"], ["connected"])


@needs_bubblewrap
def test_sockets_of_the_machine_are_out_of_reach(tmp_path):
    """A Unix socket answers every process that can reach its path, without a network."""
    path = tmp_path / "listener"
    (tmp_path / "cwd").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        _, said = run(["connect_to", path], tmp_path / "cwd", sandbox="bubblewrap")
        _, shown = run(["connect_to", path], tmp_path / "cwd", sandbox="limits")

    assert (said.texts, shown.texts) == (["refused 2"], ["connected"])


@needs_bubblewrap
def test_the_rest_of_the_machine_is_not_there(tmp_path):
    paths = ["/home", "/root/.ssh", "/run", "/var/tmp", "/srv", "/mnt", "/boot", "/etc/shadow", "/etc/ssl/private"]

    _, said = run(["show", *paths, f"{ROOT}/manage.py"], tmp_path, sandbox="bubblewrap")

    assert not any(said.json.values())


@needs_bubblewrap
@pytest.mark.parametrize("network", [False, True], ids=["without-network", "with-network"])
def test_devices_and_switches_of_the_kernel_stay_as_they_are(tmp_path, network):
    """They belong to root, and so to every program of a worker that is root."""
    _, said = run(["meddle"], tmp_path, sandbox="bubblewrap", network=network)

    assert said.json == []


@needs_bubblewrap
def test_only_its_own_processes_are_seen_and_it_has_no_capabilities(tmp_path):
    _, said = run(["facts"], tmp_path, sandbox="bubblewrap")

    assert said.json["shown"] == [1, 2]
    assert all(os.readlink(f"/proc/self/ns/{name}") != seen for name, seen in said.json["namespaces"].items())
    assert int(said.json["capabilities"], 16) == 0


@needs_bubblewrap
def test_locks_between_processes_work(tmp_path):
    ended, said = run(["lock"], tmp_path, sandbox="bubblewrap")

    assert (ended.returncode, said.texts) == (0, ["locked"])


@needs_bubblewrap
def test_arguments_of_the_program_are_not_bubblewraps(tmp_path):
    _, said = run(["arguments", "--bind", "/", "/", "--share-net"], tmp_path, sandbox="bubblewrap")

    assert said.json == ["--bind", "/", "/", "--share-net"]


def level_with(path, cwd):
    """Determine the level in another process, because each process does so once."""
    program = f"""
import logging, os
logging.basicConfig(stream=sys.stdout, format="%(message)s")
os.environ["PATH"] = {str(path)!r}
from work.processes import supervise
print(supervise.sandbox_level())
print(supervise.run(["/bin/true"], cwd={str(cwd)!r}).returncode)
"""
    with Helper(program) as helper:
        return helper.process.stdout.read().splitlines()


@needs_bubblewrap
def test_the_level_is_found_by_trying():
    assert supervise.sandbox_level() == "bubblewrap"


def test_without_bubblewrap_there_are_limits(tmp_path):
    assert level_with(tmp_path, tmp_path) == ["limits", "0"]


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo 'bwrap: No permissions to create new namespace' >&2; exit 1", "No permissions to create new namespace"),
        # Runs the program without any of the requested isolation.
        ('while [ "$1" != -- ]; do shift; done; shift; exec "$@"', "runs but does not isolate"),
        ("kill -9 $$", "runs but does not isolate"),
    ],
)
def test_bubblewrap_that_does_not_work_here_is_not_used(tmp_path, script, complaint):
    bwrap = tmp_path / "bwrap"
    bwrap.write_text(f"#!/bin/sh\n{script}\n")
    bwrap.chmod(0o755)

    *warning, level, code = level_with(tmp_path, tmp_path)

    assert (level, code) == ("limits", "0")
    assert complaint in " ".join(warning)


def test_children_get_the_level_of_the_machine(tmp_path):
    _, said = run(["facts"], tmp_path)

    walled = said.json["shown"] == [1, 2]
    assert walled == (supervise.sandbox_level() == "bubblewrap")
