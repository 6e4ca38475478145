import errno
import os
import time

import pytest

from tests.work.supervised import (
    PYTHON,
    Helper,
    Said,
    as_nobody,
    children_of,
    each_level,
    needs_nobody,
    run,
    witness,
)
from work.processes import spawner_client, supervise
from work.processes.supervise import CannotStart

pytestmark = pytest.mark.once


def refused(argv, cwd, **options):
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(CannotStart) as caught:
        supervise.run(argv, cwd=cwd, **options)
    assert set(os.listdir("/proc/self/fd")) == before
    return caught.value


def program(path, text, mode=0o755):
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@each_level
def test_a_name_that_is_not_on_the_path(tmp_path, sandbox):
    error = refused(["no-such-program"], tmp_path, sandbox=sandbox, env={"PATH": "/usr/bin:/bin"})

    assert error.errno == errno.ENOENT
    assert str(error) == "Cannot start no-such-program: there is no such program on PATH /usr/bin:/bin."


@each_level
def test_a_path_where_nothing_is(tmp_path, sandbox):
    error = refused([f"{tmp_path}/nothing"], tmp_path, sandbox=sandbox)

    assert error.errno == errno.ENOENT
    assert f"{tmp_path}/nothing must be a program, but it does not exist." in str(error)


def test_a_relative_path_is_of_the_childs_directory(tmp_path):
    program(tmp_path / "engine", "#!/bin/sh\nexit 3\n")

    assert supervise.run(["./engine"], cwd=tmp_path).returncode == 3


@each_level
def test_a_directory(tmp_path, sandbox):
    error = refused([str(tmp_path)], tmp_path, sandbox=sandbox)

    assert "must be a program, but it is a directory." in str(error)


@each_level
def test_a_file_that_may_not_be_executed(tmp_path, sandbox):
    path = program(tmp_path / "engine", "#!/bin/sh\n", mode=0o644)

    error = refused([path], tmp_path, sandbox=sandbox)

    assert error.errno == errno.EACCES
    assert "is not executable." in str(error)


@each_level
def test_a_script_whose_interpreter_is_missing(tmp_path, sandbox):
    path = program(tmp_path / "engine", "#!/no/such/python\n")

    error = refused([path], tmp_path, sandbox=sandbox)

    assert "No such file or directory" in str(error)
    if sandbox == "limits":
        assert error.errno == errno.ENOENT
        assert "(exec): its loader, or the interpreter in its #! line, does not exist" in str(error)
    else:
        assert "bubblewrap ended without running it. Output: bwrap: execvp" in str(error)


def test_a_file_that_is_no_program(tmp_path):
    error = refused([program(tmp_path / "engine", "neither\n")], tmp_path, sandbox="limits")

    assert error.errno == errno.ENOEXEC
    assert "neither a program for this machine nor a script" in str(error)


@each_level
def test_arguments_that_are_too_long(tmp_path, sandbox):
    error = refused([*PYTHON, "-c", "pass", "x" * (1 << 20)], tmp_path, sandbox=sandbox)

    assert error.errno == errno.E2BIG
    assert "too long" in str(error)


def test_a_nul_in_an_argument(tmp_path):
    error = refused(["true", "a\0b"], tmp_path, sandbox="limits")

    assert "embedded null" in str(error)


@pytest.mark.parametrize("argv", [[], [""]])
def test_no_program_at_all(tmp_path, argv):
    assert "Cannot start: no program was given." in str(refused(argv, tmp_path))


@each_level
def test_a_directory_that_is_missing(tmp_path, sandbox):
    error = refused(["true"], tmp_path / "gone", sandbox=sandbox)

    assert error.errno == errno.ENOENT
    assert "it must be a directory, but it does not exist." in str(error)


def test_a_directory_that_is_a_file(tmp_path):
    (tmp_path / "file").touch()

    assert "it must be a directory, but it is a file." in str(refused(["true"], tmp_path / "file"))


def test_a_scratch_directory_that_is_a_trap(tmp_path):
    (tmp_path / supervise.SCRATCH).symlink_to("/")

    assert ".tmp must be a directory, but it is a symbolic link." in str(refused(["true"], tmp_path))


@pytest.mark.parametrize("wall", ["writable", "readable", "hidden"])
def test_a_wall_around_nothing(tmp_path, wall):
    error = refused(["true"], tmp_path, sandbox="bubblewrap", **{wall: [tmp_path / "gone"]})

    assert f"{tmp_path}/gone, which should be shown or hidden, does not exist." in str(error)


def test_a_descriptor_that_is_not_open(tmp_path):
    error = refused(["true"], tmp_path, pass_fds=[4000])

    assert error.errno == errno.EBADF


def test_what_cannot_start_runs_nothing_and_keeps_the_guard(tmp_path):
    run(["code", 0], tmp_path, sandbox="limits")
    [mine] = [pid for pid in children_of(os.getpid()) if children_of(pid)]
    guards = children_of(mine)

    refused([program(tmp_path / "engine", "#!/no/such/python\n")], tmp_path, sandbox="limits")
    ended, _ = run(["code", 3], tmp_path, sandbox="limits")

    assert ended.returncode == 3
    assert children_of(mine) == guards
    assert [pid for guard in guards for pid in children_of(guard)] == []


@pytest.mark.parametrize("room", range(9))
def test_too_many_open_files(tmp_path, room):
    """Wherever the descriptors run out, nothing stays open or running, and the next child starts."""
    program = f"""
import os, resource
from work.processes import supervise
from work.processes.supervise import CannotStart
supervise.run(["true"], cwd={str(tmp_path)!r}, sandbox="limits")
before = len(os.listdir("/proc/self/fd"))
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
# So many numbers are free below the limit.
hold = [os.dup(0) for _ in range(100)]
for each in hold[:{room}]: os.close(each)
resource.setrlimit(resource.RLIMIT_NOFILE, (hold[-1] + 1, hard))
try:
    supervise.run(["true"], cwd={str(tmp_path)!r}, sandbox="limits")
    answer = "started"
except CannotStart as error:
    answer = str(error)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
for each in hold[{room}:]: os.close(each)
again = supervise.run(["true"], cwd={str(tmp_path)!r}, sandbox="limits").returncode
print(before == len(os.listdir("/proc/self/fd")), again, answer)
"""
    with Helper(program) as helper:
        closed, again, answer = helper.line().split(" ", 2)

    assert (closed, again) == ("True", "0")
    # Six are enough for two pipes, the null device and the child's pidfd; a guard already exists.
    assert answer == "started" if room >= 6 else "too many open files" in answer.lower()


@pytest.mark.parametrize("who", ["spawner", "guard"])
def test_those_in_between_have_too_many_open_files(tmp_path, who):
    program = f"""
import os, resource
from work.processes import supervise
from ade_keeper.proc import processes
def children(of): return [each.pid for each in processes() if each.parent == of]
hold = [supervise.spawn(["sleep", "30"], cwd={str(tmp_path)!r}, sandbox="limits")]
[target] = [spawner] = children(os.getpid())
if {who!r} == "guard":
    before = children(spawner)
    supervise.spawn(["true"], cwd={str(tmp_path)!r}, sandbox="limits").wait()
    [target] = set(children(spawner)) - set(before)
# The lowest number that is free, and for a guard a few that it needs before the order comes.
taken = {{int(name) for name in os.listdir(f"/proc/{{target}}/fd")}}
lowest = min(set(range(100)) - taken)
before = resource.prlimit(target, resource.RLIMIT_NOFILE)
resource.prlimit(target, resource.RLIMIT_NOFILE, (lowest + ({who!r} == "guard"), before[1]))
try: supervise.run(["true"], cwd={str(tmp_path)!r}, sandbox="limits")
except supervise.CannotStart as error: print(error)
resource.prlimit(target, resource.RLIMIT_NOFILE, before)
print(supervise.run(["true"], cwd={str(tmp_path)!r}, sandbox="limits").returncode, hold[0].poll())
hold[0].close()
"""
    with Helper(program) as helper:
        assert "too many open files" in helper.line()
        assert helper.line() == "0 None"


@needs_nobody
@pytest.mark.parametrize("who", ["spawner", "guard"])
def test_too_many_processes(who):
    """The limit does not apply to root, so another user tries."""
    program = f"""
import os, resource, tempfile
from work.processes import supervise
from ade_keeper.proc import processes
cwd = tempfile.mkdtemp()
def children(of): return [each.pid for each in processes() if each.parent == of]
def attempt():
    try: return supervise.run(["true"], cwd=cwd, sandbox="limits").returncode
    except supervise.CannotStart as error: return f"{{error.errno}} {{error}}"
attempt()
[spawner] = children(os.getpid())
[target] = [spawner] if {who!r} == "spawner" else children(spawner)
if {who!r} == "spawner": hold = supervise.spawn(["sleep", "30"], cwd=cwd, sandbox="limits")
before = resource.prlimit(target, resource.RLIMIT_NPROC)
resource.prlimit(target, resource.RLIMIT_NPROC, (1, before[1]))
print(attempt())
resource.prlimit(target, resource.RLIMIT_NPROC, before)
print(attempt())
import shutil; shutil.rmtree(cwd)
"""
    with as_nobody(program) as helper:
        refusal, again = helper.line(), helper.line()

    assert refusal.startswith(f"{errno.EAGAIN} Cannot start ")
    assert "(fork): the process limit" in refusal
    assert again == "0"


def test_a_spawner_that_does_not_answer(tmp_path, monkeypatch):
    spawner_client.close()
    before = children_of(os.getpid())
    monkeypatch.setattr(spawner_client, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(spawner_client, "_PROGRAM", "import time; time.sleep(600)")
    with pytest.raises(CannotStart, match="timed out"):
        supervise.run(["true"], cwd=tmp_path, sandbox="limits")
    monkeypatch.undo()

    assert run(["code", 3], tmp_path, sandbox="limits")[0].returncode == 3
    spawner_client.close()
    assert children_of(os.getpid()) == before


def test_no_python_to_launch_with(tmp_path, monkeypatch):
    spawner_client.close()
    monkeypatch.setattr(spawner_client, "_PYTHON", ("/no/such/python",))

    error = refused(["true"], tmp_path, sandbox="limits")
    monkeypatch.undo()

    assert error.errno == errno.ENOENT
    assert run(["code", 3], tmp_path, sandbox="limits")[0].returncode == 3


def test_limits_above_what_is_allowed_are_what_is_allowed(tmp_path):
    program = f"""
import resource
from work.processes import supervise
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
resource.setrlimit(resource.RLIMIT_CPU, (50, 50))
said = []
ended = supervise.run({witness("open_files", 200)!r}, cwd={str(tmp_path)!r}, sandbox="limits", on_output=said.extend)
print(ended.returncode, [line.text for line in said])
"""
    with Helper(program) as helper:
        assert helper.line() == f"0 ['refused {errno.EMFILE}', 'opened 97']"


def test_starting_is_timed_from_the_start_of_the_program(tmp_path):
    before = time.monotonic()
    said = Said()
    with supervise.spawn(witness("code", 0), cwd=tmp_path, on_output=said) as child:
        ended = child.wait()

    assert before < ended.started < ended.ended


def test_a_name_with_dashes_is_a_name(tmp_path):
    path = program(tmp_path / "--version", '#!/bin/sh\necho "$0"\n')
    said = Said()

    supervise.run(["--version"], cwd=tmp_path, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, on_output=said)

    assert said.texts == [path]
