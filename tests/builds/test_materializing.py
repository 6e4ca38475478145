import shutil

import pytest

from builds import environments
from runs.work_types import RUN
from tests.builds.making import built, left_behind, path_of, ran, run_of, slot, step, value_of
from tests.builds.wheels import put_wheel
from tests.factories import W1, W2, columns_of, told

pytestmark = pytest.mark.long

EAT = step("import apple", "context.field('apple', apple.VERSION)")
MADE_AGAIN = "ENVIRONMENT_MATERIALIZED"


@pytest.mark.django_db
def test_what_is_not_on_this_host_is_made_again_exactly_as_it_was(index):
    build = built(EAT, requirements="apple>=1")
    before = columns_of(build)
    environments.erase(path_of(build))
    put_wheel(index, "apple", "2.0")

    run = ran(build)

    assert (run.status, run.error_message) == ("succeeded", "")
    assert value_of(run, "apple") == "1.0"
    assert told(run).index(MADE_AGAIN) < told(run).index("STEP_STARTED")
    assert columns_of(build) == before
    assert environments.exists(path_of(build).name)
    assert left_behind() == []


@pytest.mark.django_db
def test_it_is_made_once_for_all_that_follow(index):
    build = built(EAT, requirements="apple")
    environments.erase(path_of(build))

    first, second = ran(build), ran(build)

    assert (MADE_AGAIN in told(first), MADE_AGAIN in told(second)) == (True, False)


@pytest.mark.django_db
def test_a_build_that_is_ready_is_not_made_again(host):
    run = ran(built())

    assert MADE_AGAIN not in told(run)


@pytest.mark.django_db
def test_what_cannot_be_made_again_fails_the_run_and_not_the_build(index):
    build = built(EAT, requirements="apple")
    before = columns_of(build)
    environments.erase(path_of(build))
    shutil.rmtree(environments.root() / ".cache")
    (index / "apple-1.0-py3-none-any.whl").unlink()

    run = ran(build)

    assert (run.status, run.failure_type) == ("failed", "BUILD_FAILED")
    assert run.error_message.startswith("Build failed on this host: The packages cannot be installed: ")
    assert "apple" in run.error_message
    assert columns_of(build) == before
    assert left_behind() == []


@pytest.mark.django_db
def test_the_time_of_the_run_counts(host, settings):
    slow = step(before="import time\ntime.sleep(1.5)")
    build = built(slow)
    environments.erase(path_of(build))
    settings.ADE_RUN_TIMEOUT_SECONDS = 1

    run = ran(build)

    assert (run.status, run.outcome) == ("failed", "timed_out")
    assert "ADE_RUN_TIMEOUT_SECONDS" in run.error_message
    assert left_behind() == []


def test_two_runs_that_make_it_at_once_do_each_other_no_harm(index, threads):
    build = built(EAT, requirements="apple")
    environments.erase(path_of(build))
    runs = [run_of(build), run_of(build)]

    threads.together([slot(RUN, W1).run_once, slot(RUN, W2).run_once])

    for run in runs:
        run.refresh_from_db()
        assert (run.status, run.error_message) == ("succeeded", "")
        assert value_of(run, "apple") == "1.0"
        assert MADE_AGAIN in told(run)
    assert left_behind() == []
    assert [stored.name for stored in environments.all_environments()] == [path_of(build).name]
