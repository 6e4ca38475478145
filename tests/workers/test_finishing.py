"""Workers that cannot write how a run ended, but stay alive (fault A14)."""

from datetime import datetime

import pytest

from runs.models import Artifact
from tests.engines import kinds_of, outcome_of, until_ended
from tests.factories import events_of
from tests.races.invariants import assert_all_hold

LEASE = 3

pytestmark = pytest.mark.long


def test_an_end_that_the_database_refuses_thrice_is_written_the_fourth_time(site, engines):
    run = site.submit(keeps="result.txt")

    worker = site.worker(ADE_FAILPOINTS="run.finish.before_commit:raise*3", **engines)

    assert until_ended(run) == ("succeeded", "")
    assert worker.logged().count("slot.cannot_end") == 3
    assert kinds_of(run) == ["RUN_QUEUED", "RUN_STARTED", "ARTIFACT_PUBLISHED", "RUN_SUCCEEDED"]
    assert Artifact.objects.count() == 1
    assert len(site.witness.of(run)) == 1
    assert worker.is_alive()
    assert_all_hold(quiet=True)


def test_a_run_whose_end_is_always_refused_fails_while_its_worker_lives_and_does_not_stop_the_next(site, engines):
    document = site.document(keeps="result.txt")
    run, following = site.submit(document), site.submit(document)
    values = {"ADE_LEASE_SECONDS": LEASE, "ADE_FAILPOINTS": "run.finish.before_commit:raise"}
    worker = site.worker(slots="run=1", **values, **engines)
    assert until_ended(run) == ("failed", "PROCESS_TERMINATED")

    assert kinds_of(run) == ["RUN_QUEUED", "RUN_STARTED", "RUN_FAILED", "RECOVERED"]
    receipt = events_of(run).get(kind="RECOVERED")
    assert f":{worker.pid}:" in receipt.actor
    # The slot retries while it trusts its lease of that moment; afterwards recovery is responsible.
    assert receipt.at >= datetime.fromisoformat(receipt.data["lease_expired_at"])
    assert not Artifact.objects.exists()
    assert until_ended(following) == ("failed", "PROCESS_TERMINATED")
    assert [len(site.witness.of(each)) for each in (run, following)] == [1, 1]
    assert worker.is_alive()
    assert not site.witness.overlaps()
    assert outcome_of(run) == ("failed", "PROCESS_TERMINATED")
    assert_all_hold(quiet=True)
