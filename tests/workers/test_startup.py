"""Workers that start while others work, or under an identity that another worker has or had (faults A13, A16)."""

import os

import pytest

from builds import lifecycle as builds
from tests.engines import kinds_of, outcome_of, until_ended
from tests.factories import BuildFactory, events_of, expire_lease, write
from tests.races.invariants import assert_all_hold
from tests.stepping import until
from work import recovery
from work.models import Worker
from work.work_types import all_work_types

ORPHANED = ("failed", "PROCESS_TERMINATED")
# The first processes of two containers with the same host name have the same identity.
ALWAYS_THE_SAME = "w1@container:1:boot"

pytestmark = pytest.mark.long


def started_by(run):
    return events_of(run).get(kind="RUN_STARTED").actor


def test_a_worker_that_starts_fails_its_own_orphans_before_it_claims_and_leaves_the_runs_of_others(site, engines):
    orphan = site.submit(seconds=600)
    earlier = site.worker("w2", "run=1", **engines)
    site.witness.until_at_work(orphan)
    # Longer than the other worker takes to start.
    others = site.submit(seconds=8)
    site.worker("w1", "run=1", **engines)
    at_work = site.witness.until_at_work(others)
    earlier.kill()
    following = site.submit(orphan.input_document)

    again = site.worker("w2", "run=1", **engines)

    successor = site.witness.until_at_work(following)
    assert outcome_of(orphan) == ORPHANED
    assert not at_work.gone
    assert f":{again.pid}:" in started_by(following)
    receipt = events_of(orphan).get(kind="RECOVERED")
    assert receipt.data["rule"] == recovery.EARLIER_BOOT
    assert receipt.pk < events_of(following).get(kind="RUN_STARTED").pk
    assert successor.run == following.pk
    assert until_ended(others) == ("succeeded", "")
    assert kinds_of(others) == ["RUN_QUEUED", "RUN_STARTED", "RUN_SUCCEEDED"]
    assert not site.witness.overlaps()
    assert_all_hold()


def test_two_workers_of_one_name_leave_each_others_engines_alone(site):
    first_run = site.submit(seconds=3)
    first = site.worker("w1", "run=1")
    site.witness.until_at_work(first_run)
    second_run = site.submit(seconds=1)

    second = site.worker("w1", "run=1")

    site.witness.until_at_work(second_run)
    assert until_ended(first_run, second_run) == ("succeeded", "")
    assert [f":{worker.pid}:" in started_by(run) for worker, run in ((first, first_run), (second, second_run))]
    for run in (first_run, second_run):
        assert kinds_of(run) == ["RUN_QUEUED", "RUN_STARTED", "RUN_SUCCEEDED"]
        assert events_of(run).get(kind="RUN_SUCCEEDED").actor == started_by(run)
        assert len(site.witness.of(run)) == 1
    assert_all_hold()


def test_a_dead_worker_whose_pid_another_process_has_by_now_is_known_to_be_dead(site):
    orphan = killed_at_work(site)
    Worker.objects.update(pid=os.getpid())
    write(orphan, lease_owner=Worker.objects.get().owner)

    site.worker("w1")

    assert until_ended(orphan) == ORPHANED
    assert events_of(orphan).get(kind="RECOVERED").data["rule"] == recovery.EARLIER_BOOT


def test_a_worker_of_another_container_is_not_taken_for_dead_because_its_pid_is_not_here(site):
    theirs = killed_at_work(site)
    # Make the row look as if PID 1 of another container with this host name had written it and were alive.
    Worker.objects.update(machine="another/1", pid=1)
    write(theirs, lease_owner=Worker.objects.get().owner)

    here = site.worker("w1", "run=1")

    here.until_logged("worker.recovered")
    assert until_ended(site.submit()) == ("succeeded", "")
    assert outcome_of(theirs) == ("running", "")
    assert kinds_of(theirs) == ["RUN_QUEUED", "RUN_STARTED"]


def test_of_two_workers_of_one_identity_the_claim_token_tells_which_holds_the_work(db):
    build = BuildFactory()
    first = builds.claim_next_build(ALWAYS_THE_SAME)
    build.refresh_from_db()
    expire_lease(build)
    recovery.rescue_expired(all_work_types(), ALWAYS_THE_SAME)
    second = builds.claim_next_build(ALWAYS_THE_SAME)

    late, in_time = builds.succeed(first), builds.succeed(second)

    assert (late, in_time) == (False, True)
    assert (first.holder.owner, first.holder.token + 1) == (second.holder.owner, second.holder.token)
    assert events_of(build).get(kind="BUILD_READY").claim_token == second.holder.token
    assert_all_hold(quiet=True)


def killed_at_work(site):
    run = site.submit(seconds=600)
    worker = site.worker("w1")
    seen = site.witness.until_at_work(run)
    worker.kill()
    until(lambda: seen.gone)
    return run
