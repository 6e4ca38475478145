"""Packages that attack the build, other packages, other environments or the cache, and files that are changed
afterwards. The wheels are real, and so is uv.
"""

import os
from dataclasses import replace

import pytest

from builds import builder, environments, uv
from tests.builds.making import (
    built,
    files_below,
    log_of,
    path_of,
    queued,
    ran,
    run_of,
    step,
    value_of,
    work_on,
    writable,
)
from tests.builds.wheels import put_wheel
from tests.factories import events_of, told
from tests.runs.engine.running import each_level
from work.processes import supervise

pytestmark = [pytest.mark.long, pytest.mark.django_db]

EAT = step("import apple", "context.field('apple', apple.VERSION)")
# As long as the file in the wheel.
EVIL = "VERSION = '6.6'\n"
# Writes wherever a program of the build may write.
TRACE = (
    "import os, sys\n"
    "for place in (sys.prefix, os.environ.get('UV_CACHE_DIR', ''), os.path.dirname(sys.prefix)):\n"
    "    try:\n"
    "        open(os.path.join(place, f'trace-{os.getpid()}'), 'w').close()\n"
    "    except OSError:\n"
    "        pass\n"
)
# Every Python with this environment executes a line of a .pth file that begins with "import".
PTH = f"import os; exec({TRACE!r})\n"
HOOKS = {"hook.pth": PTH, "sitecustomize.py": TRACE, "usercustomize.py": TRACE}
NOT_DECLARED = "The installed files do not match the RECORD of their packages: "


@pytest.fixture
def level(request, monkeypatch):
    monkeypatch.setattr(supervise, "sandbox_level", lambda: request.param)
    return request.param


@pytest.fixture(autouse=True)
def looks_each_time(monkeypatch):
    """Check the environment for each run: runs of a test follow each other faster than a worker checks."""
    monkeypatch.setattr(environments, "LOOK_SECONDS", 0)


def traces(folder):
    return [path for path in files_below(folder) if "trace-" in path]


def module_of(build, name="apple.py"):
    (path,) = path_of(build).glob(f"lib/python*/site-packages/{name}")
    return path


def change(path, text):
    """Change a file and hide it: with the same size and the same times."""
    before = path.stat()
    with writable(path):
        path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


@pytest.mark.parametrize("hook", HOOKS)
def test_no_code_of_a_package_is_run_where_it_can_write(index, settings, hook):
    put_wheel(index, "evil", more={hook: HOOKS[hook]})

    build = built(requirements="evil")

    assert (build.status, build.error_message) == ("ready", "")
    assert module_of(build, hook).exists()
    assert traces(settings.VAR_DIR) == []


def test_a_source_that_takes_too_much_to_compile_fails_the_build(index, monkeypatch):
    monkeypatch.setattr(builder, "COMPILE_LIMITS", replace(builder.COMPILE_LIMITS, memory_bytes=64 << 20))
    put_wheel(index, "evil", more={"large.py": f"many = [{'a, ' * 2_000_000}]\n"})

    build = built(requirements="evil")

    assert (build.status, build.failure_type) == ("failed", "BUILD_FAILED")
    assert build.error_message.startswith("Compiling exceeded its limit of memory: ")


def test_uv_that_takes_too_much_fails_the_build(index, monkeypatch):
    monkeypatch.setattr(builder, "UV_LIMITS", replace(builder.UV_LIMITS, tasks=2))
    monkeypatch.setattr(uv, "install", lambda *_, **__: ["/bin/sh", "-c", "echo said; sleep 60 & sleep 60 & sleep 60"])
    put_wheel(index, "evil")

    build = built(requirements="evil")

    assert (build.status, build.failure_type) == ("failed", "BUILD_FAILED")
    assert "exceeded its limit of processes and threads: more than 2 at the same time" in build.error_message


def test_uv_compiles_nothing_whatever_its_variables_say(index, settings, monkeypatch):
    """Compiling would run the Python of the environment with write access to the cache of all builds."""
    monkeypatch.setenv("UV_COMPILE_BYTECODE", "1")
    put_wheel(index, "evil", more={"hook.pth": PTH})

    assert built(requirements="evil").status == "ready"
    assert traces(settings.VAR_DIR) == []


@pytest.mark.parametrize("level", ["limits"], indirect=True)
def test_a_build_whose_import_changes_the_environment_fails(index, settings, level):
    """Without bubblewrap the import can write to the environment."""
    put_wheel(index, "evil", more={"hook.pth": PTH})

    build = built(requirements="evil")

    assert (build.status, build.failure_type) == ("failed", "CHECK_FAILED")
    assert build.error_message.startswith("Importing the entry point changed the environment")
    assert "trace-" in build.error_message
    assert environments.all_environments() == []


def test_a_file_that_no_record_has_is_refused(index):
    wheel = put_wheel(index, "evil", more={"sitecustomize.py": "VERSION = 1\n"}, unlisted=["sitecustomize.py"])
    assert wheel.exists()

    build = built(requirements="evil")

    assert (build.status, build.failure_type) == ("failed", "BUILD_FAILED")
    assert build.error_message.startswith(NOT_DECLARED)
    assert "sitecustomize.py has no checksum in the RECORD of evil-1.0" in build.error_message


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("apple.py", "apple.py belongs to apple-1.0 and evil-1.0, which overwrite each other's files"),
        ("evil-1.0.data/purelib/apple-1.0.dist-info/RECORD", "RECORD belongs to apple-1.0 and evil-1.0"),
        ("evil-1.0.data/data/pyvenv.cfg", "pyvenv.cfg of the environment was overwritten by evil-1.0"),
        ("evil-1.0.data/scripts/activate", "bin/activate of the environment was overwritten by evil-1.0"),
    ],
)
def test_a_file_of_somebody_else_is_not_overwritten(index, path, said):
    put_wheel(index, "evil", requires=["apple"], more={path: "VERSION = 'evil'\n"})

    build = built(EAT, requirements="evil")

    assert (build.status, build.failure_type) == ("failed", "BUILD_FAILED")
    assert build.error_message.startswith(NOT_DECLARED)
    assert said in build.error_message


def test_two_packages_may_have_the_same_file(index):
    for name in ("pear", "plum"):
        put_wheel(index, name, more={"fruits/__init__.py": "", "fruits/common.py": "SWEET = True\n"})

    assert built(requirements="pear\nplum").status == "ready"


def test_bytecode_of_a_package_is_not_used(index):
    put_wheel(index, "evil", more={"__pycache__/apple.cpython-311.pyc": "evil", "__pycache__/ghost.pyc": "evil"})

    build = built(requirements="evil\napple")

    assert build.status == "ready"
    assert not module_of(build, "__pycache__").joinpath("ghost.pyc").exists()
    assert all(path.read_bytes() != b"evil" for path in path_of(build).rglob("*.pyc"))


def test_uv_can_write_nothing_but_what_it_makes(index, monkeypatch):
    ready = built(EAT, requirements="apple")
    root = environments.root()
    places = [root, root / environments.SEALS, path_of(ready), module_of(ready).parent]
    writes = "; ".join(f"touch {place}/trace-uv" for place in places)
    real = uv.install

    def install(home, lock, **options):
        return ["/bin/sh", "-c", f'{writes}; touch {home}/../trace-made; exec "$@"', "sh", *real(home, lock, **options)]

    monkeypatch.setattr(uv, "install", install)
    build = built(EAT, requirements="apple  # another one")

    assert build.status == "ready"
    assert traces(root) == []
    assert value_of(ran(ready), "apple") == "1.0"


def test_a_write_into_the_cache_reaches_no_environment(index, settings):
    first = built(EAT, requirements="apple")
    cached = [path for path in settings.ADE_CACHE_DIR.rglob("apple.py") if path.is_file()]
    assert cached
    for path in cached:
        change(path, EVIL)

    second = built(EAT, requirements="apple  # another fingerprint")

    assert [value_of(ran(build), "apple") for build in (first, second)] == ["1.0", "1.0"]
    assert any("apple.py differs from the RECORD of apple-1.0" in line for line in log_of(second))
    assert all(path.stat().st_nlink == 1 for path in files_below(path_of(first)).values())


def test_a_write_into_an_environment_does_not_reach_the_cache(index, settings):
    first = built(EAT, requirements="apple")
    change(module_of(first), EVIL)

    second = built(EAT, requirements="apple  # another fingerprint")

    assert value_of(ran(second), "apple") == "1.0"


def test_an_offline_host_says_that_its_cache_was_changed(index, settings):
    built(EAT, requirements="apple")
    for path in settings.ADE_CACHE_DIR.rglob("apple.py"):
        change(path, EVIL)
    settings.ADE_BUILD_OFFLINE = True

    build = built(EAT, requirements="apple  # another fingerprint")

    assert build.failure_type == "BUILD_FAILED"
    assert "apple.py differs from the RECORD of apple-1.0" in build.error_message


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_an_environment_that_was_changed_by_hand_is_made_again(index, settings, warm):
    settings.ADE_WARM_ENGINES = warm
    build = built(EAT, requirements="apple")
    assert value_of(ran(build), "apple") == "1.0"
    with writable(module_of(build).parent, module_of(build, "__pycache__")):
        for bytecode in module_of(build, "__pycache__").iterdir():
            bytecode.unlink()
    change(module_of(build), EVIL)

    run = ran(build)

    assert (run.status, value_of(run, "apple")) == ("succeeded", "1.0")
    (event,) = [event for event in events_of(run) if event.kind == "ENVIRONMENT_MATERIALIZED"]
    assert "was changed after it was made" in event.message
    assert environments.is_usable(path_of(build).name)
    assert "ENVIRONMENT_MATERIALIZED" not in told(ran(build))


def test_every_kind_of_change_is_seen_and_named(host):
    build = built()
    name, home = path_of(build).name, path_of(build)
    changes = {
        "configuration/main.py was changed": lambda: change(home / "configuration/main.py", step("pasz")),
        "lib/sitecustomize.py was added": lambda: (home / "lib/sitecustomize.py").write_text(""),
        "bin/activate is missing": lambda: (home / "bin/activate").unlink(),
        "pyvenv.cfg was changed": lambda: (home / "pyvenv.cfg").chmod(0o666),
        "bin/python3 was changed": lambda: ((home / "bin/python3").unlink(), (home / "bin/python3").symlink_to("sh")),
    }
    assert environments.why_unusable(name) == ""

    for said, make in changes.items():
        with writable(home / "lib", home / "bin"):
            make()
        assert said in environments.why_unusable(name)
        environments.remove(name)
        work_on(run_of(build))
        assert environments.is_usable(name)


def test_what_only_has_new_times_stays_in_use(host):
    """For example after a backup that makes hard links, or after restoring one."""
    build = built()
    name, seal = path_of(build).name, environments.read_seal(path_of(build).name)
    os.utime(path_of(build) / "configuration" / "main.py", (1, 1))

    assert environments.is_usable(name)

    assert environments.read_seal(name) != seal
    assert "ENVIRONMENT_MATERIALIZED" not in told(ran(build))


@pytest.mark.parametrize("seal", [None, "{", "[]", '{"pyvenv.cfg": 3}'])
def test_without_its_seal_it_is_made_again(host, seal):
    build = built()
    path = environments.root() / environments.SEALS / f"{path_of(build).name}.json"
    path.unlink() if seal is None else path.write_text(seal)

    run = ran(build)

    assert run.status == "succeeded"
    assert "ENVIRONMENT_MATERIALIZED" in told(run)
    assert environments.is_usable(path_of(build).name)


def test_what_is_ready_is_read_only_and_can_be_removed(host):
    build = built()

    writable = [path for path in path_of(build).rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o222]
    assert writable == []
    assert environments.remove(path_of(build).name)
    assert not list((environments.root() / environments.SEALS).iterdir())


def test_seals_of_what_is_gone_are_swept(host):
    build = built()
    environments.erase(path_of(build))

    environments.sweep()

    assert not list((environments.root() / environments.SEALS).iterdir())


@each_level
def test_a_configuration_cannot_poison_the_next_build(index, settings, level):
    """The hostile configuration writes everywhere it can, at import and in its step."""
    hostile = TRACE.replace("(sys.prefix,", f"({str(settings.ADE_CACHE_DIR)!r}, {str(settings.VAR_DIR)!r}, sys.prefix,")
    build = queued(step("exec(HOSTILE)", before=f"HOSTILE = {hostile!r}\nif 'environment' not in __file__: 0\n"))
    work_on(build)
    ran(build)

    if level == "bubblewrap":
        assert traces(settings.VAR_DIR) == []
    assert traces(path_of(build)) == [] or not environments.is_usable(path_of(build).name)
