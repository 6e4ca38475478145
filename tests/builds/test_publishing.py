import shutil
import time

import pytest

from builds import environments
from builds.environments import tidy
from tests.builds.making import built, left_behind, log_of, path_of, queued, ran, step, work_on, writable
from work.processes import filelocks

pytestmark = pytest.mark.django_db


def test_half_an_environment_is_none(host):
    path = environments.path_of("f" * 64)
    path.mkdir(parents=True)
    assert not environments.exists(path.name)

    (path / environments.MARKER).write_text("{}")
    assert not environments.exists(path.name)


def test_one_whose_python_has_gone_is_none_and_is_made_again(host):
    build = built()
    with writable(path_of(build) / "bin"):
        (path_of(build) / "bin" / "python").unlink()
    assert not environments.exists(path_of(build).name)

    run = ran(build)

    assert run.status == "succeeded"
    assert environments.exists(path_of(build).name)


def test_nothing_is_there_until_all_of_it_is(host):
    main = step(before="import os, sys\nprint('there:', os.listdir(os.path.dirname(os.path.dirname(sys.prefix))))")
    build = queued(main)

    work_on(build)

    assert path_of(build).exists()
    (said,) = (line for line in log_of(build) if line.startswith("there:"))
    assert build.fingerprint not in said


def test_whoever_comes_second_uses_what_is_there(host):
    build = built()
    made_at = (path_of(build) / environments.MARKER).stat().st_mtime_ns

    with environments.staging(build.fingerprint) as staged:
        shutil.copytree(path_of(build), staged.home, symlinks=True)
        with writable(staged.home / environments.MARKER):
            (staged.home / environments.MARKER).write_text("{}")
        environments.seal(staged)
        published = environments.publish(staged, build.fingerprint)

    assert not published
    assert (path_of(build) / environments.MARKER).stat().st_mtime_ns == made_at
    assert left_behind() == []


def test_a_disk_that_takes_nothing_is_told(host):
    """A file in the place of the environments directory fails like a full disk."""
    host.mkdir()
    environments.root().write_text("")

    build = built()

    assert (build.status, build.failure_type) == ("failed", "BUILD_FAILED")
    assert build.error_message.startswith("The environment could not be written: ")
    assert str(environments.root()) in build.error_message


def test_what_died_half_made_is_swept_and_what_is_being_made_is_not(host):
    dead = environments.root() / f"{environments.BUILDING}dead"
    removed = environments.root() / f"{environments.REMOVED}dead"
    for path in (dead, removed):
        (path / "environment").mkdir(parents=True)

    with environments.staging("f" * 64) as alive:
        tidy()

        assert left_behind() == [alive.root.name]
    assert left_behind() == []
    assert not list((environments.root() / environments.LOCKS).iterdir())


def test_environments_and_the_cache_are_not_swept(host):
    build = built()

    assert environments.sweep() == 0

    assert environments.exists(path_of(build).name)
    assert environments.root().joinpath(".cache").exists()


def test_its_use_is_noted_and_waits_for_nobody(host):
    build = built()
    before = time.time()

    with environments.in_use(path_of(build).name), environments.in_use(path_of(build).name):
        (stored,) = environments.all_environments()

    assert stored.used_at >= before - 1


def test_what_is_being_removed_is_waited_for(host, threads):
    """A run that arrives during the removal waits, finds nothing and builds again; it never uses a half-removed
    environment.
    """
    build = built()
    name = path_of(build).name

    def use():
        with environments.in_use(name):
            return environments.exists(name)

    with filelocks.alone_at_once(environments.root() / environments.LOCKS / name) as ours:
        assert ours
        user = threads.start(use)
        environments.erase(path_of(build))
        assert user.is_under_way()

    assert user.answer() is False
