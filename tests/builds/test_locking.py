import hashlib
import re
import shutil
import sys

import pytest

from builds import environments
from tests.builds.making import built, log_of, path_of, pinned, ran, run_of, step, value_of, work_on
from tests.builds.wheels import put_sdist, put_wheel
from tests.factories import told

pytestmark = [pytest.mark.long, pytest.mark.django_db]

EAT = step("import apple", "context.field('apple', apple.VERSION)")
# Setup code that leaves a trace if it is ever executed.
SETUP = (
    "import os\nopen(os.environ['UV_CACHE_DIR'] + '/setup-ran', 'w').close()\nraise SystemExit('the setup code ran')\n"
)


def test_without_requirements_there_is_no_lock(host):
    assert built(requirements="# nothing yet\n\n").lock == ""


def test_all_that_is_needed_is_pinned_with_the_hashes_of_its_files(index):
    wheels = {"apple": put_wheel(index, "apple", "1.0", requires=["core>=2"]), "core": put_wheel(index, "core", "2.1")}

    build = built(requirements="apple")

    assert pinned(build) == {"apple": "1.0", "core": "2.1"}
    digests = {hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels.values()}
    assert set(re.findall(r"--hash=sha256:(\w+)", build.lock)) == digests


def test_it_says_nothing_of_where_packages_come_from(index):
    assert str(index) not in built(requirements="apple").lock


def test_what_is_installed_is_what_the_lock_says(index):
    put_wheel(index, "pear", "2.0", requires=["apple<2"])
    put_wheel(index, "apple", "1.5")
    put_wheel(index, "apple", "2.0")
    told = [
        "from importlib.metadata import distributions",
        "context.field('all', {d.name: d.version for d in distributions()})",
    ]

    build = built(step(*told), requirements="pear  # the newest\n\napple!=1.0\n")

    assert pinned(build) == {"pear": "2.0", "apple": "1.5"}
    assert value_of(ran(build), "all") == pinned(build)


def test_a_marker_is_obeyed(index):
    build = built(requirements="apple; python_version < '3'\n")

    assert (build.status, pinned(build)) == ("ready", {})


@pytest.mark.parametrize(
    ("requirements", "said"),
    [
        ("pear", "pear was not found"),
        ("apple>=7", "apple>=7"),
        ("apple==1.0\napple==2.0\n", "apple==2.0"),
        ("not a requirement", "not a requirement"),
    ],
)
def test_requirements_that_cannot_be_met_are_told_in_a_line(index, requirements, said):
    build = built(requirements=requirements)

    assert (build.status, build.failure_type, build.lock) == ("failed", "BUILD_FAILED", "")
    assert build.error_message.startswith("The requirements cannot be met: ")
    assert said in build.error_message
    assert "\n" not in build.error_message


def test_two_packages_that_do_not_go_together(index):
    put_wheel(index, "left", requires=["apple<2"])
    put_wheel(index, "right", requires=["apple>=2"])
    put_wheel(index, "apple", "2.0")

    message = built(requirements="left\nright\n").error_message

    assert "left" in message
    assert "right" in message


def test_the_setup_code_of_strangers_is_never_run(index, settings):
    put_sdist(index, "source", setup=SETUP)

    build = built(requirements="source")

    assert build.status == "failed"
    assert "source" in build.error_message
    assert "the setup code ran" not in f"{build.error_message}{log_of(build)}"
    assert not (settings.ADE_CACHE_DIR / "setup-ran").exists()


def test_not_even_when_a_newer_version_has_nothing_else(index, settings):
    put_sdist(index, "apple", "2.0", setup=SETUP)

    build = built(requirements="apple")

    assert pinned(build) == {"apple": "1.0"}
    assert not (settings.ADE_CACHE_DIR / "setup-ran").exists()


def test_a_package_for_other_machines(index):
    put_wheel(index, "foreign", tag="cp311-cp311-win_amd64")

    build = built(requirements="foreign")

    assert build.status == "failed"
    assert "foreign" in build.error_message


def test_a_file_that_is_not_what_was_locked_is_refused(index, settings):
    build = built(EAT, requirements="apple")
    environments.erase(path_of(build))
    shutil.rmtree(settings.ADE_CACHE_DIR)
    put_wheel(index, "apple", "1.0", more={"apple.py": "VERSION = 'evil'\n"})

    run = ran(build)

    assert (run.status, run.failure_type) == ("failed", "BUILD_FAILED")
    assert run.error_message.startswith("Build failed on this host: The packages cannot be installed: ")
    assert "Hash mismatch" in run.error_message
    assert not path_of(build).exists()
    assert "STEP_STARTED" not in told(run)


def test_a_hash_that_is_missing_is_refused(index):
    build = built(EAT, requirements="apple")
    environments.erase(path_of(build))
    build.lock = "apple==1.0\n"
    build.save(update_fields=["lock"])

    run = ran(build)

    assert run.failure_type == "BUILD_FAILED"
    assert "--require-hashes" in run.error_message


def test_the_same_configuration_of_another_day_has_the_versions_of_its_own_lock(index):
    """Two workspaces have the configuration; a new version of the package is published between their builds."""
    early = built(EAT, requirements="apple")
    put_wheel(index, "apple", "2.0")
    late = built(EAT, requirements="apple")

    assert early.fingerprint == late.fingerprint
    assert (pinned(early), pinned(late)) == ({"apple": "1.0"}, {"apple": "2.0"})
    assert [value_of(work_on(run_of(build)), "apple") for build in (early, late)] == ["1.0", "2.0"]


def test_the_same_configuration_with_the_same_lock_has_one_environment(index):
    first, second = built(EAT, requirements="apple"), built(EAT, requirements="apple")

    assert first.lock == second.lock
    assert len(environments.all_environments()) == 1


def test_a_configuration_may_ask_for_another_python_and_its_packages(index, monkeypatch, tmp_path):
    """The other Python is this one under another name: uv looks for the name that the configuration requests."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (tmp_path / name).symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("builds.fingerprint.PYTHON_VERSION", "3.99")

    build = built(EAT, requirements="apple", python_version=f"{sys.version_info.major}.{sys.version_info.minor}")

    assert (build.status, build.error_message) == ("ready", "")
    assert value_of(ran(build), "apple") == "1.0"
