"""Every pair of verbs that can meet on a running run, in both orders.

The first has written and not yet committed, the second starts and waits, then the first commits.
"""

from datetime import timedelta

import pytest

from runs import lifecycle as runs
from runs.models import Artifact, Run
from tests.factories import W1, W2, RunFactory, age, claim_of, expire_lease, write
from tests.races.invariants import assert_all_hold
from work import clock, lifecycle, recovery
from work.models import Event
from work.work_types import work_type_named

ARTIFACT = {"name": "result.json", "file": "a", "size_bytes": 2, "sha256": "0" * 64, "content_type": "application/json"}

# Each returns the answer that a caller sees.
VERBS = {
    "succeed": lambda run, claim: runs.succeed(claim),
    "fail": lambda run, claim: runs.fail(claim, "ENGINE_FAILED", "exit code 1"),
    "stop": lambda run, claim: runs.stop(claim),
    "cancel": lambda run, claim: runs.cancel(run, actor="olga"),
    "recover": lambda run, claim: recovery.rescue_expired([work_type_named("run")], W2),
    "renew": lambda run, claim: not lifecycle.renew(W1, [claim]),
    "record": lambda run, claim: lifecycle.record(runs.RUN_STATES, run.pk, "NOTED", claim=claim),
    "publish": lambda run, claim: runs.publish_artifact(claim, ARTIFACT),
}


def expired(run):
    expire_lease(run)


def over_time(run):
    age(run, 1000)
    write(run, lease_expires_at=clock.now() + timedelta(seconds=30))


def asked_to_stop(run):
    expire_lease(run)
    assert runs.cancel(run, actor="olga") == "running"


# PostgreSQL shows the second verb the state before, SQLite the state after the first: both are correct.
ANY = None
# arranged, first, second: final status, answer of the first, answer of the second, refused late writes, receipts
CASES = [
    (expired, "succeed", "recover", "succeeded", True, 0, 0, 0),
    (expired, "recover", "succeed", "failed", 1, False, 1, 1),
    (expired, "fail", "recover", "failed", True, 0, 0, 0),
    (expired, "recover", "fail", "failed", 1, False, 1, 1),
    (expired, "recover", "recover", "failed", 1, 0, 0, 1),
    (expired, "renew", "recover", "running", True, 0, 0, 0),
    (expired, "recover", "renew", "failed", 1, False, 1, 1),
    (expired, "record", "recover", "failed", True, 1, 0, 1),
    (expired, "recover", "record", "failed", 1, False, 1, 1),
    (expired, "publish", "recover", "failed", True, 1, 0, 1),
    (expired, "recover", "publish", "failed", 1, False, 1, 1),
    (expired, "cancel", "recover", "cancelled", "running", ANY, 0, 1),
    (expired, "recover", "cancel", "failed", 1, "failed", 0, 1),
    (expired, "succeed", "cancel", "succeeded", True, "succeeded", 0, 0),
    (expired, "cancel", "succeed", "cancelled", "running", False, 0, 0),
    (expired, "fail", "cancel", "failed", True, "failed", 0, 0),
    (expired, "cancel", "fail", "cancelled", "running", False, 0, 0),
    (expired, "cancel", "cancel", "cancelled", "running", "running", 0, 1),
    (expired, "renew", "succeed", "succeeded", True, True, 0, 0),
    (expired, "succeed", "renew", "succeeded", True, False, 0, 0),
    (expired, "cancel", "publish", "cancelled", "running", True, 0, 1),
    (over_time, "succeed", "recover", "succeeded", True, 0, 0, 0),
    (over_time, "recover", "succeed", "failed", 1, False, 1, 1),
    (over_time, "cancel", "recover", "cancelled", "running", ANY, 0, 1),
    (over_time, "recover", "cancel", "failed", 1, "failed", 0, 1),
    (over_time, "renew", "recover", "failed", True, 1, 0, 1),
    (over_time, "recover", "renew", "failed", 1, False, 1, 1),
    (asked_to_stop, "stop", "recover", "cancelled", True, 0, 0, 0),
    (asked_to_stop, "recover", "stop", "cancelled", 1, False, 1, 1),
    (asked_to_stop, "succeed", "recover", "cancelled", False, 0, 0, 0),
    (asked_to_stop, "recover", "succeed", "cancelled", 1, False, 1, 1),
    (asked_to_stop, "recover", "fail", "cancelled", 1, False, 1, 1),
    (asked_to_stop, "stop", "cancel", "cancelled", True, ANY, 0, 0),
    (asked_to_stop, "recover", "cancel", "cancelled", 1, ANY, 0, 1),
]


@pytest.mark.parametrize(
    ("arranged", "first", "second", "status", "first_answers", "second_answers", "late", "receipts"),
    [pytest.param(*case, id="-".join([case[1], case[2], case[0].__name__])) for case in CASES],
)
def test_the_first_to_write_decides(
    writer, threads, arranged, first, second, status, first_answers, second_answers, late, receipts
):
    run = RunFactory(status="running")
    claim, others_claim = claim_of(run), claim_of(run)
    arranged(run)

    one = threads.hold(lambda: VERBS[first](run, claim))
    two = threads.start(lambda: VERBS[second](run, others_claim))
    waited = two.waits()
    answers = one.commit(), two.answer()
    if Run.objects.filter(pk=run.pk, status="running", cancel_requested_at__isnull=False).exists():
        # An accepted cancel that no worker could obey yet binds recovery too.
        recovery.rescue_expired([work_type_named("run")], W2)

    assert answers[0] == first_answers
    assert answers[1] == second_answers or second_answers is ANY
    assert waited or second_answers is ANY
    assert Run.objects.get(pk=run.pk).status == status
    assert events("LATE_WRITE_REFUSED") == late
    assert events("RECOVERED") == receipts
    published = [answer for verb, answer in zip((first, second), answers, strict=True) if verb == "publish"]
    assert Artifact.objects.count() == sum(published)
    assert_all_hold()


def events(kind):
    return Event.objects.filter(kind=kind).count()
