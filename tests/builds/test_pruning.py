import os
import time
from datetime import timedelta

import pytest

from builds import environments
from builds.environments import tidy
from runs import engines
from runs.work_types import RUN
from tests.builds.making import built, left_behind, path_of, ran, run_of, slot, step, value_of
from tests.factories import told
from tests.stepping import until
from tests.work.supervised import needs_bubblewrap

pytestmark = pytest.mark.long

DAY = timedelta(days=1).total_seconds()


def unused(*builds, days):
    for build in builds:
        moment = time.time() - days * DAY
        os.utime(path_of(build), (moment, moment))


def different(number):
    return [built(step(f"context.field('number', {n})")) for n in range(number)]


def here(*builds):
    return [path_of(build).exists() for build in builds]


def prune(**rules):
    """Return the names of the removed environments."""
    return [stored.name for stored in pruned(**rules).removed]


def pruned(**rules):
    return environments.prune(**({"unused_seconds": None, "most_bytes": None} | rules))


@pytest.mark.django_db
def test_what_nobody_has_used_for_long_goes(host):
    old, new = different(2)
    unused(old, days=3)
    unused(new, days=1)

    assert prune(unused_seconds=2 * DAY) == [path_of(old).name]

    assert here(old, new) == [False, True]
    assert left_behind() == []


@pytest.mark.django_db
def test_of_too_much_the_longest_unused_goes_first(host):
    builds = different(3)
    for build, days in zip(builds, (2, 3, 1), strict=True):
        unused(build, days=days)
    size = max(build.size_bytes for build in builds)

    assert prune(most_bytes=2 * size) == [path_of(builds[1]).name]

    assert here(*builds) == [True, False, True]


@pytest.mark.django_db
def test_as_much_as_is_allowed_stays(host):
    builds = different(2)

    assert prune(most_bytes=sum(build.size_bytes for build in builds), unused_seconds=DAY) == []


@pytest.mark.django_db
def test_a_rehearsal_says_what_would_go_and_removes_nothing(host):
    builds = different(2)
    unused(*builds, days=3)

    assert len(prune(unused_seconds=DAY, rehearse=True)) == 2

    assert here(*builds) == [True, True]


@pytest.mark.django_db
def test_a_run_makes_it_young_again(host):
    (build,) = different(1)
    unused(build, days=3)

    assert ran(build).status == "succeeded"

    assert prune(unused_seconds=DAY) == []


@pytest.mark.django_db
def test_what_was_pruned_is_made_again_when_it_is_needed(host):
    (build,) = different(1)
    unused(build, days=3)
    prune(unused_seconds=DAY)

    run = ran(build)

    assert (run.status, value_of(run, "number")) == ("succeeded", 0)
    assert "ENVIRONMENT_MATERIALIZED" in told(run)
    assert here(build) == [True]


@pytest.mark.django_db
def test_a_worker_prunes_by_its_settings(host, settings):
    old, new = different(2)
    unused(old, days=3)
    settings.ADE_ENVIRONMENT_UNUSED_SECONDS = 2 * DAY

    tidy()
    assert here(old, new) == [False, True]

    settings.ADE_ENVIRONMENTS_BYTES = 1
    tidy()
    assert here(old, new) == [False, False]


@pytest.mark.django_db
def test_what_another_has_pruned_meanwhile_is_no_trouble(host, monkeypatch):
    (build,) = different(1)
    found = environments.all_environments()
    prune(most_bytes=1)
    monkeypatch.setattr(environments, "all_environments", lambda: found)

    assert prune(most_bytes=1) == [path_of(build).name]


@pytest.mark.django_db
def test_where_there_is_nothing_nothing_is_pruned(host):
    assert prune(unused_seconds=0, most_bytes=1) == []


def test_what_a_run_uses_stays_whatever_its_age(host, threads):
    """The limits apply to every environment, but only the unused one is removed."""
    busy, free = built(step("import time", "time.sleep(1)", "import calendar")), built(step("pass  # free"))
    run = run_of(busy)
    worker = threads.start(slot(RUN).run_once)
    until(lambda: "STEP_STARTED" in told(run))
    unused(busy, free, days=3)

    assert prune(most_bytes=1, unused_seconds=1, rehearse=True) == [path_of(free).name]
    found = pruned(most_bytes=1, unused_seconds=1)
    assert [stored.name for stored in found.removed] == [path_of(free).name]
    assert [stored.name for stored in found.in_use] == [path_of(busy).name]
    assert worker.is_under_way()

    assert worker.answer()
    run.refresh_from_db()
    assert (run.status, run.error_message) == ("succeeded", "")
    assert prune(most_bytes=1) == [path_of(busy).name]


@needs_bubblewrap
@pytest.mark.django_db
def test_what_a_warm_engine_is_kept_for_stays_until_it_is_given_up(host, settings):
    settings.ADE_WARM_ENGINES = True
    build = built()
    assert ran(build).status == "succeeded"
    unused(build, days=3)

    assert prune(most_bytes=1, unused_seconds=1) == []

    engines.POOL.retire(everything=True)
    assert prune(most_bytes=1) == [path_of(build).name]
