"""Workers that are killed at every moment of a run and of a build (faults A1 to A6 and A9).

A7 and A8 are in test_killed_extraction.py.
"""

import signal
from contextlib import suppress
from datetime import datetime, timedelta

import psutil
import pytest

from builds.models import Build
from runs import scratch
from runs.models import Artifact, Run
from tests.engines import kinds_of, outcome_of, until_ended
from tests.factories import events_of
from tests.races.invariants import assert_all_hold
from tests.stepping import until
from work import clock
from work.models import Event
from work.processes.scratch import sweep

LEASE = 3
ORPHANED = ("failed", "PROCESS_TERMINATED")

pytestmark = pytest.mark.long


def dies_at(site, point, **environment):
    """Start a worker and wait until it is killed at this point. The next worker with its name recovers its rows at
    once.
    """
    worker = site.worker("w1", "run=1", ADE_FAILPOINTS=f"{point}:kill9", **environment)
    assert worker.code() == -signal.SIGKILL, worker.logged()


def test_the_run_of_a_killed_worker_fails_its_engine_ends_and_the_next_of_its_document_starts(site, engines):
    document = site.document(seconds=600)
    run, following = site.submit(document), site.submit(document)
    first = site.worker("w1", ADE_LEASE_SECONDS=LEASE, **engines)
    engine = site.witness.until_at_work(run)
    second = site.worker("w2", ADE_LEASE_SECONDS=LEASE, **engines)
    second.until_logged("worker.recovered")

    first.kill()
    killed_at = clock.now()

    until(lambda: engine.gone)
    assert until_ended(run) == ORPHANED
    site.witness.until_at_work(following)
    assert kinds_of(run) == ["RUN_QUEUED", "RUN_STARTED", "RUN_FAILED", "RECOVERED"]
    receipt = events_of(run).get(kind="RECOVERED")
    assert receipt.data["verb"] == "orphan"
    # The lease was not renewed after the worker's death.
    assert datetime.fromisoformat(receipt.data["lease_expired_at"]) <= killed_at + timedelta(seconds=LEASE)
    assert not engine.finished
    assert not site.witness.overlaps()
    assert len(site.witness.of(run)) == 1
    assert_all_hold()


def test_a_run_whose_worker_is_killed_before_it_starts_an_engine_fails_without_one(site):
    run = site.submit()
    dies_at(site, "run.claimed")

    site.worker("w1")

    assert until_ended(run) == ORPHANED
    assert site.witness.running() == []
    assert_all_hold(quiet=True)


def test_a_run_whose_worker_is_killed_while_it_claims_waits_as_before_and_is_claimed_at_once(site):
    run = site.submit()

    dies_at(site, "run.claim.selected")

    assert outcome_of(run) == ("queued", "")
    assert kinds_of(run) == ["RUN_QUEUED"]
    assert run.claim_token == 0
    # Another name, and a lease that has not expired: there is nothing to recover.
    site.worker("w2")
    assert until_ended(run) == ("succeeded", "")
    assert kinds_of(run) == ["RUN_QUEUED", "RUN_STARTED", "RUN_SUCCEEDED"]
    assert_all_hold(quiet=True)


def test_a_run_whose_worker_is_killed_before_it_commits_the_end_fails_and_keeps_nothing(site, engines):
    run = site.submit(keeps="result.txt")

    dies_at(site, "run.finish.before_commit", **engines)
    assert outcome_of(run) == ("running", "")
    site.worker("w1", **engines)

    assert until_ended(run) == ORPHANED
    assert kinds_of(run) == ["RUN_QUEUED", "RUN_STARTED", "RUN_FAILED", "RECOVERED"]
    assert not Artifact.objects.exists()
    assert [(each.attempt, each.finished) for each in site.witness.of(run)] == [(1, True)]
    assert_all_hold(quiet=True)


def test_a_run_whose_worker_is_killed_after_it_has_committed_the_end_has_succeeded(site, engines):
    run = site.submit(keeps="result.txt")

    dies_at(site, "run.finish.after_commit", **engines)
    assert outcome_of(run) == ("succeeded", "")
    assert site.left_behind()
    second = site.worker("w2", **engines)
    second.until_logged("worker.recovered")

    until(lambda: not site.left_behind())
    assert kinds_of(run) == ["RUN_QUEUED", "RUN_STARTED", "ARTIFACT_PUBLISHED", "RUN_SUCCEEDED"]
    assert Artifact.objects.get().run_id == run.pk
    until(lambda: not site.engines())
    assert_all_hold(quiet=True)


def test_a_sweep_takes_what_the_dead_have_left_and_nothing_of_the_living(site):
    dead, alive = site.submit(seconds=600), site.submit(seconds=600)
    first = site.worker("w1", "run=1")
    site.witness.until_at_work(dead)
    second = site.worker("w2", "run=1")
    site.witness.until_at_work(alive)
    first.kill()
    until(lambda: len(site.witness.at_work()) == 1)
    before = site.left_behind()

    swept = sweep(scratch.root())

    (left,) = site.left_behind()
    assert (swept, len(before)) == (1, 2)
    assert list(left.rglob("input.json"))
    assert second.is_alive()


@pytest.mark.parametrize("point", ["build.claimed", "build.exited", "build.finish.before_commit"])
def test_a_build_whose_worker_is_killed_is_made_again_by_another(unbuilt, point):
    run = unbuilt.submit()

    dies_at(unbuilt, point)
    build = Build.objects.get()
    assert build.status == "building"
    unbuilt.worker("w1")

    assert until_ended(run) == ("succeeded", "")
    assert kinds_of(build) == [
        *("BUILD_QUEUED", "BUILD_STARTED", "BUILD_RELEASED", "RECOVERED"),
        *("BUILD_STARTED", "BUILD_READY"),
    ]
    assert_all_hold(quiet=True)


def test_a_build_whose_worker_is_killed_half_way_leaves_nothing_that_could_be_taken_for_an_environment(unbuilt):
    unbuilt.configuration.files["seconds.txt"] = "5"
    unbuilt.configuration.save()
    run = unbuilt.submit()
    first = unbuilt.worker("w1")
    until(lambda: unbuilt.witness.making())
    environments = unbuilt.directory / "environments"

    first.kill()

    # No other worker is running that could end it.
    until(lambda: unbuilt.witness.making()[0].gone)
    assert not [path for path in environments.iterdir() if not path.name.startswith(".")]
    assert list(environments.glob(".building-*"))
    unbuilt.worker("w1")
    assert until_ended(run) == ("succeeded", "")
    assert [each.finished for each in unbuilt.witness.making()] == [False, True]
    assert unbuilt.witness.making()[1].beside == []
    assert not list(environments.glob(".building-*"))
    assert Event.objects.filter(kind="BUILD_STARTED").count() == 2
    assert_all_hold(quiet=True)


def test_a_machine_that_is_lost_costs_its_own_work_and_nobody_elses(site, engines):
    lost = [site.submit(seconds=600) for _ in range(2)]
    first = site.worker("w1", ADE_LEASE_SECONDS=LEASE, **engines)
    theirs = [site.witness.until_at_work(run) for run in lost]
    kept = [site.submit(seconds=4) for _ in range(2)]
    second = site.worker("w2", ADE_LEASE_SECONDS=LEASE, **engines)
    for run in kept:
        site.witness.until_at_work(run)

    # As simultaneous as possible: none of the processes can react to the death of another.
    group = [psutil.Process(first.pid), *first.children()]
    for signalled in ("suspend", "kill"):
        for each in group:
            # A short-lived process may have ended meanwhile.
            with suppress(psutil.NoSuchProcess):
                getattr(each, signalled)()
    first.kill()

    assert until_ended(*lost, *kept) == ORPHANED
    assert outcome_of(lost[1]) == ORPHANED
    assert [outcome_of(run) for run in kept] == [("succeeded", "")] * 2
    assert all(each.gone and not each.finished for each in theirs)
    assert [kinds_of(run) for run in kept] == [["RUN_QUEUED", "RUN_STARTED", "RUN_SUCCEEDED"]] * 2
    assert second.is_alive()
    assert Run.objects.filter(status="running").count() == 0
    assert_all_hold(quiet=True)
