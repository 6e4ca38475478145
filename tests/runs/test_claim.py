from datetime import timedelta

import pytest
from django.conf import settings
from django.db import IntegrityError, transaction

from builds.models import Build
from runs import gates, lifecycle
from runs.models import Run
from tests.factories import BuildFactory, DocumentFactory, RunFactory, bring_to, events_of, force_status, write
from tests.writers import WRITERS
from work import clock
from work import lifecycle as kernel
from work.sql.contention import Contended

pytestmark = pytest.mark.django_db


@pytest.fixture(params=WRITERS, autouse=True)
def writer(request, monkeypatch):
    monkeypatch.setattr(kernel, "_writer", lambda: request.param)
    return request.param


@pytest.fixture
def queue(configuration, build):
    """Return a function that creates runs that are ready to be claimed."""

    def queue(number, **values):
        return [RunFactory(configuration=configuration, **values) for _ in range(number)]

    return queue


def claimed(owner="w1"):
    claims = iter(lambda: lifecycle.claim_next_run(owner), None)
    return [claim.id for claim in claims]


def test_a_claim_starts_the_run_and_holds_it(queue, w1):
    (run,) = queue(1)
    before = clock.now()

    claim = lifecycle.claim_next_run(w1)

    run.refresh_from_db()
    assert (claim.id, claim.holder.owner, claim.holder.token) == (run.pk, w1, 1)
    assert (run.status, run.lease_owner, run.claim_token) == ("running", w1, 1)
    lease = timedelta(seconds=settings.ADE_LEASE_SECONDS)
    assert before + lease <= run.lease_expires_at <= clock.now() + lease
    assert before <= run.started_at <= clock.now()
    assert claim.values == {
        "input_document_id": run.input_document_id,
        "configuration_id": run.configuration_id,
        "build_id": run.build_id,
        "publishes": False,
    }


def test_a_claim_is_told(queue, w1):
    (run,) = queue(1)

    lifecycle.claim_next_run(w1)

    event = events_of(run).last()
    assert (event.kind, event.from_status, event.to_status) == ("RUN_STARTED", "queued", "running")
    assert (event.actor, event.claim_token, event.sequence) == (w1, 1, 2)


def test_nothing_queued_is_nothing_claimed(w1):
    assert lifecycle.claim_next_run(w1) is None


@pytest.mark.parametrize("status", ["running", "succeeded", "failed", "cancelled"])
def test_only_a_queued_run_is_claimed(status, w1):
    RunFactory(status=status)

    assert lifecycle.claim_next_run(w1) is None


def test_the_oldest_run_is_claimed_first(queue):
    runs = queue(3)
    oldest = write(runs[2], created_at=runs[0].created_at - timedelta(seconds=1))

    assert claimed() == [oldest.pk, runs[0].pk, runs[1].pk]


def test_of_runs_of_the_same_moment_the_first_submitted_is_claimed_first(queue):
    runs = queue(3, created_at=clock.now())

    assert claimed() == [run.pk for run in runs]


def test_one_run_of_a_document_runs_at_a_time(queue, document, w1, w2):
    first, second = queue(2, input_document=document)

    claim = lifecycle.claim_next_run(w1)
    assert lifecycle.claim_next_run(w2) is None
    lifecycle.succeed(claim)

    assert (claim.id, lifecycle.claim_next_run(w2).id) == (first.pk, second.pk)


def test_the_runs_of_a_document_are_claimed_in_their_order(queue, document, w1):
    runs = queue(3, input_document=document, created_at=clock.now())
    order = []

    while claim := lifecycle.claim_next_run(w1):
        order.append(claim.id)
        lifecycle.succeed(claim)

    assert order == [run.pk for run in runs]


def test_a_busy_document_does_not_keep_others_waiting(queue, document):
    first, *_ = queue(3, input_document=document)
    other, _ = queue(2, input_document=DocumentFactory(workspace=document.workspace, status="processed"))

    assert claimed() == [first.pk, other.pk]


def test_a_run_does_not_overtake_an_older_one_of_its_document_that_is_open_too(queue, document, w1):
    younger, older = (write(run, gate="") for run in queue(2, input_document=document))
    write(older, created_at=younger.created_at - timedelta(seconds=1))

    assert lifecycle.claim_next_run(w1).id == older.pk


@pytest.mark.parametrize("status", ["queued", "building", "failed", "cancelled"])
def test_a_run_whose_build_is_not_ready_is_skipped_whatever_its_gate_says(configuration, queue, status, w1):
    waiting = RunFactory(build=BuildFactory(status=status), gate="")
    (ready,) = queue(1)

    assert lifecycle.claim_next_run(w1).id == ready.pk
    assert lifecycle.claim_next_run(w1) is None
    waiting.refresh_from_db()
    assert waiting.status == "queued"


def test_a_run_whose_build_waits_does_not_keep_a_younger_one_of_its_document_waiting(queue, document, w1):
    RunFactory(build=BuildFactory(status="building"), input_document=document)
    (ready,) = queue(1, input_document=document)

    assert lifecycle.claim_next_run(w1).id == ready.pk


@pytest.mark.parametrize("status", ["ready", "failed", "cancelled"])
def test_a_younger_run_does_not_pass_one_whose_build_has_ended_before_its_gate_says_so(queue, document, status, w1):
    older = RunFactory(build=BuildFactory(status="building"), input_document=document)
    (younger,) = queue(1, input_document=document)
    (other,) = queue(1)
    if status == "cancelled":
        force_status(older.build, "cancelled")
    else:
        bring_to(older.build, status)

    assert claimed() == [other.pk]
    assert Run.objects.get(pk=older.pk).gate == "build"

    lifecycle.apply_build_results(w1)
    assert lifecycle.claim_next_run(w1).id == (older.pk if status == "ready" else younger.pk)


def test_a_younger_run_does_not_pass_one_whose_gate_was_left_shut(queue, document, w1):
    older, younger = queue(2, input_document=document)
    write(older, gate="document")
    write(younger, gate="")
    assert lifecycle.claim_next_run(w1) is None

    assert gates.open_forgotten() == 1

    assert lifecycle.claim_next_run(w1).id == older.pk


def test_two_claims_take_two_runs(queue, w1, w2):
    first, second = queue(2)

    assert lifecycle.claim_next_run(w1).id == first.pk
    assert lifecycle.claim_next_run(w2).id == second.pk


def test_a_run_is_never_claimed_twice():
    run = RunFactory(status="running")
    # No verb of the product puts a run back into the queue.
    write(run, status="queued", lease_owner=None, lease_expires_at=None, started_at=None)

    with pytest.raises(Contended) as met, transaction.atomic():
        lifecycle.claim_next_run("w1")

    assert isinstance(met.value.__cause__, IntegrityError)


def test_the_second_running_run_of_a_document_is_refused_by_the_database_alone(queue, document, w1):
    queue(1, input_document=document, status="running")
    (waiting,) = queue(1, input_document=document)
    by_status_only = lambda now: Run.objects.filter(status="queued").order_by("created_at", "id")  # noqa: E731  # a queryset

    with pytest.raises(Contended), transaction.atomic():
        kernel.claim_next(lifecycle.RUN_STATES, "start", w1, by_status_only)

    assert Run.objects.get(pk=waiting.pk).status == "queued"


def test_a_build_that_becomes_ready_lets_its_runs_start(configuration, document, w1):
    run = lifecycle.submit(configuration, document, actor="olga")
    assert lifecycle.claim_next_run(w1) is None

    bring_to(Build.objects.get(), "ready")
    lifecycle.apply_build_results(w1)

    assert lifecycle.claim_next_run(w1).id == run.pk
