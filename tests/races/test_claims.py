import time
from collections import Counter
from itertools import chain
from types import SimpleNamespace

import pytest
from django.db import connection

from builds import lifecycle as builds
from builds.models import Build
from documents import lifecycle as documents
from documents.models import DocumentProcessingJob, Stage
from runs import gates
from runs import lifecycle as runs
from runs.models import Run
from tests.factories import (
    W1,
    W2,
    BuildFactory,
    ConfigurationFactory,
    DocumentFactory,
    ErrandFactory,
    JobFactory,
    RunFactory,
    StageFactory,
    bring_to,
    expire_lease,
    told,
    write,
)
from tests.races.invariants import assert_all_hold
from tests.testwork import lifecycle as errands
from tests.testwork.models import Errand
from work import clock, lifecycle, recovery
from work.sql.contention import Contended
from work.work_types import work_type_named

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("writer")]

CLAIMS = {
    "run": (RunFactory, "queued", runs.claim_next_run),
    "build": (BuildFactory, "queued", builds.claim_next_build),
    "stage": (StageFactory, "READY", documents.claim_stage),
    "job": (JobFactory, "PENDING", documents.begin_next_job),
    "errand": (ErrandFactory, "queued", errands.claim_next),
}
every_kind = pytest.mark.parametrize(("factory", "status", "claim"), CLAIMS.values(), ids=CLAIMS)


def two_runs_of_one_document():
    older = RunFactory()
    younger = RunFactory(configuration=older.configuration, input_document=older.input_document)
    assert (older.gate, younger.gate) == ("", "document")
    return older, younger


@every_kind
def test_of_two_claimers_of_one_row_the_second_goes_away_empty(threads, factory, status, claim):
    row = factory(status=status)

    first = threads.hold(lambda: claim(W1))
    second = threads.start(lambda: claim(W2))
    if connection.vendor == "postgresql":
        assert second.answer() is None

    assert first.commit().holder.owner == W1
    assert second.answer() is None
    row.refresh_from_db()
    assert (row.status, row.claim_token) == (factory._meta.model.ACTIVE, 0 if row.CLAIMED is None else 1)
    assert_all_hold()


@every_kind
def test_a_claim_that_was_not_committed_leaves_the_row_to_others_at_once(threads, factory, status, claim):
    row = factory(status=status)

    threads.hold(lambda: claim(W1)).roll_back()

    assert claim(W2).id == row.pk
    assert_all_hold()


@every_kind
def test_a_second_claimer_takes_the_next_row(threads, factory, status, claim):
    rows = [factory(status=status) for _ in range(2)]

    first = threads.hold(lambda: claim(W1))
    second = threads.start(lambda: claim(W2))

    assert first.commit().id == rows[0].pk
    assert second.answer().id == rows[1].pk
    assert_all_hold()


@every_kind
def test_many_claimers_take_each_row_once(threads, factory, status, claim):
    rows = [factory(status=status) for _ in range(20)]

    def take_all(owner):
        taken = []
        while found := claim(owner):
            taken.append(found.id)
        return taken

    taken = threads.together(lambda n=n: take_all(f"w{n}@here:1:boot{n}") for n in range(6))

    assert sorted(chain(*taken)) == sorted(row.pk for row in rows)
    assert_all_hold()


def test_the_second_run_of_a_document_is_not_claimed_beside_the_first(threads):
    older, younger = two_runs_of_one_document()
    write(younger, gate="")

    first = threads.hold(lambda: runs.claim_next_run(W1))
    second = threads.start(lambda: runs.claim_next_run(W2))

    assert first.commit().id == older.pk
    assert second.answer() is None
    assert runs.claim_next_run(W2) is None


def test_the_database_alone_keeps_a_document_to_one_running_run(threads):
    _, younger = two_runs_of_one_document()

    def without_looking_at_the_document(now):
        return Run.objects.filter(status="queued").order_by("id")

    def without_looking(owner):
        return lifecycle.claim_next(runs.RUN_STATES, "start", owner, without_looking_at_the_document)

    first = threads.hold(lambda: without_looking(W1))
    second = threads.start(lambda: without_looking(W2))
    assert second.waits()
    first.commit()

    assert isinstance(second.error(), Contended)
    younger.refresh_from_db()
    assert (younger.status, younger.claim_token, younger.last_sequence) == ("queued", 0, 1)
    assert_all_hold()


@pytest.mark.parametrize("gate", ["", "document"])
def test_a_younger_run_does_not_overtake_an_older_one_that_somebody_has_locked(threads, gate):
    older, younger = two_runs_of_one_document()
    write(younger, gate=gate)

    locked = threads.hold(lambda: list(Run.objects.select_for_update().filter(pk=older.pk)))
    attempt = threads.start(lambda: runs.claim_next_run(W1))
    if connection.vendor == "postgresql":
        assert attempt.answer() is None
    locked.commit()

    # SQLite has no row locks: there the claim has waited and found the older run.
    assert (attempt.answer() or runs.claim_next_run(W1)).id == older.pk
    assert_all_hold()


def test_a_claim_goes_on_when_the_first_candidate_is_of_a_document_that_is_busy(threads):
    older, _ = two_runs_of_one_document()
    other = RunFactory()

    first = threads.hold(lambda: runs.claim_next_run(W1))
    second = threads.start(lambda: runs.claim_next_run(W2))

    assert first.commit().id == older.pk
    assert second.answer().id == other.pk


def test_a_cancel_that_comes_before_the_start_leaves_nothing_to_start(threads):
    run = RunFactory()

    cancelled = threads.hold(lambda: runs.cancel(run, actor="olga"))
    claim = threads.start(lambda: runs.claim_next_run(W1))
    if connection.vendor == "postgresql":
        assert claim.answer() is None

    assert cancelled.commit() == "cancelled"
    assert claim.answer() is None
    run.refresh_from_db()
    assert (run.status, run.started_at) == ("cancelled", None)
    assert_all_hold()


def test_a_cancel_that_comes_after_the_start_is_accepted_and_binds(threads):
    run = RunFactory()

    started = threads.hold(lambda: runs.claim_next_run(W1))
    cancelled = threads.start(lambda: runs.cancel(run, actor="olga"))
    assert cancelled.waits()
    claim = started.commit()

    assert cancelled.answer() == "running"
    assert not runs.succeed(claim)
    run.refresh_from_db()
    assert run.status == "cancelled"
    assert_all_hold()


def test_a_cancel_of_a_build_that_comes_after_the_start_binds(threads):
    build = BuildFactory()

    started = threads.hold(lambda: builds.claim_next_build(W1))
    cancelled = threads.start(lambda: builds.cancel(build, actor="olga"))
    assert cancelled.waits()
    claim = started.commit()

    assert cancelled.answer() == "building"
    assert not builds.succeed(claim)
    build.refresh_from_db()
    assert build.status == "cancelled"
    assert_all_hold()


@pytest.mark.parametrize("first", ["cancel", "refuse"])
def test_a_cancel_and_the_end_of_the_build_make_one_end(threads, first):
    build = BuildFactory(status="failed")
    run = RunFactory(configuration=build.configuration, build=build)
    verbs = {"cancel": lambda: runs.cancel(run, actor="olga"), "refuse": lambda: runs.apply_build_results(W1)}
    second = "refuse" if first == "cancel" else "cancel"

    one = threads.hold(verbs[first])
    two = threads.start(verbs[second])
    assert two.waits()
    answers = {first: one.commit(), second: two.answer()}

    run.refresh_from_db()
    assert answers == ({"cancel": "cancelled", "refuse": 0} if first == "cancel" else {"cancel": "failed", "refuse": 1})
    assert run.status == answers["cancel"]
    assert_all_hold()


def test_a_cancel_meets_a_recovery_that_puts_the_row_back_into_the_queue(threads, monkeypatch):
    row = ErrandFactory(status="doing", owner=W1)
    original = lifecycle.move

    def recovered_in_between(states, id, verb, **options):
        if verb == "request_cancel":
            monkeypatch.setattr(lifecycle, "move", original)
            assert threads.start(lambda: original(states, id, "release")).answer()
        return original(states, id, verb, **options)

    monkeypatch.setattr(lifecycle, "move", recovered_in_between)

    assert lifecycle.cancel(errands.ERRAND, row.pk, actor="olga") == "cancelled"

    assert Errand.objects.get(pk=row.pk).status == "cancelled"
    assert_all_hold()


@pytest.mark.parametrize(
    ("name", "factory", "status", "cancel"),
    [("run", RunFactory, "running", runs.cancel), ("build", BuildFactory, "building", builds.cancel)],
)
def test_a_cancel_between_the_verbs_of_a_recovery_is_honoured(name, factory, status, cancel, monkeypatch):
    row = expire_lease(factory(status=status))
    kind, move = work_type_named(name), recovery.LostClaim.move

    def move_and_cancel(found, verb, **options):
        made = move(found, verb, **options)
        if verb == "drop":
            cancel(row, actor="olga")
        return made

    monkeypatch.setattr(recovery.LostClaim, "move", move_and_cancel)
    assert recovery.rescue_expired([kind], W2) == 0
    monkeypatch.undo()
    assert recovery.rescue_expired([kind], W2) == 1

    row.refresh_from_db()
    assert row.status == "cancelled"
    assert told(row)[-2:] == [f"{name.upper()}_CANCELLED", "RECOVERED"]


def test_orchestrators_do_not_count_one_failed_attempt_twice(threads):
    job = JobFactory(status="PROCESSING")
    StageFactory(job=job, status="ERROR")
    seen = DocumentProcessingJob.objects.get(pk=job.pk)

    first = threads.hold(lambda: documents.settle(seen, actor=W1))
    second = threads.start(lambda: documents.settle(seen, actor=W2))
    assert second.waits()

    assert (first.commit(), second.answer()) == (True, False)
    job.refresh_from_db()
    assert (job.status, job.attempts) == ("PENDING", 1)
    assert_all_hold()


def test_the_failure_of_an_attempt_is_not_counted_against_the_next_one(threads, monkeypatch):
    job = JobFactory(status="PROCESSING")
    StageFactory(job=job, status="ERROR")
    seen = DocumentProcessingJob.objects.get(pk=job.pk)

    def another_attempt_begins():
        assert documents.settle(job, actor=W2)
        write(job, next_attempt_at=clock.now())
        assert documents.begin_next_job(W2)

    def now_at_last():
        monkeypatch.setattr(documents, "clock", clock)
        threads.start(another_attempt_begins).answer()
        return clock.now()

    # The first call after it has read the failed stage.
    monkeypatch.setattr(documents, "clock", SimpleNamespace(now=now_at_last))

    assert not documents.settle(seen, actor=W1)

    job.refresh_from_db()
    assert (job.status, job.attempts) == ("PROCESSING", 1)
    assert_all_hold()


def test_a_document_is_finished_once(threads):
    job = JobFactory(status="PROCESSING")
    StageFactory(job=job, status="DONE")

    first = threads.hold(lambda: documents.settle(job, actor=W1))
    second = threads.start(lambda: documents.settle(job, actor=W2))
    assert second.waits()

    assert (first.commit(), second.answer()) == (True, False)
    assert_all_hold()


def test_stages_are_laid_out_once(threads):
    job = JobFactory(status="PROCESSING")

    first = threads.hold(lambda: documents.plan(job.pk, 3, actor=W1))
    second = threads.start(lambda: documents.plan(job.pk, 3, actor=W2))
    assert second.waits()
    first.commit()
    second.answer()

    assert Stage.objects.filter(job=job).count() == 5
    assert_all_hold()


@every_kind
def test_a_claim_changes_one_row(factory, status, claim):
    rows = [factory(status=status) for _ in range(12)]

    for n in range(1, 6):
        assert claim(W1).id == rows[n - 1].pk
        assert factory._meta.model._base_manager.exclude(status=status).count() == n


def work_off(owner):
    """Claim and finish runs until none are left; return the succeeded ones."""
    done = []
    while Run.objects.live().exists():
        try:
            claim = runs.claim_next_run(owner)
        except Contended:
            claim = None
        if claim is None:
            # As the housekeeping of a worker does.
            gates.open_forgotten()
            time.sleep(0.002)
        elif runs.succeed(claim):
            done.append(claim.id)
    return done


def test_claimers_never_have_two_runs_of_one_document_at_work(threads):
    configuration = ConfigurationFactory()
    BuildFactory(configuration=configuration, status="ready")
    papers = [DocumentFactory(workspace=configuration.workspace, status="processed") for _ in range(5)]
    ids = runs.submit_many(configuration, papers * 40, actor="olga")
    samples = Counter()

    def sample():
        while Run.objects.live().exists():
            held = Run.objects.filter(status="running").values_list("input_document_id", flat=True)
            (most,) = Counter(held).most_common(1) or [(None, 0)]
            samples[most[1]] += 1

    *done, _ = threads.together([*(lambda n=n: work_off(f"w{n}@here:1:boot{n}") for n in range(8)), sample])

    assert sorted(chain(*done)) == ids
    assert set(samples) <= {0, 1}
    assert samples[1]
    assert_all_hold(quiet=True)
    assert Build.objects.count() == 1


@pytest.mark.parametrize("first", ["plan", "settle"])
def test_a_job_is_not_completed_over_stages_that_are_being_laid_out(threads, first):
    job = JobFactory(status="PROCESSING")
    documents.plan(job.pk, 1, actor=W1)
    for stage in job.stages.all():
        bring_to(stage, "DONE")
    verbs = {"plan": lambda: documents.plan(job.pk, 2, actor=W1), "settle": lambda: documents.settle(job, actor=W2)}

    holds = threads.hold(verbs.pop(first))
    ((_, other),) = verbs.items()
    waits = threads.start(other)
    assert waits.waits()

    assert (holds.commit(), waits.answer()) == (True, False)
    job.refresh_from_db()
    assert job.status == ("PROCESSING" if first == "plan" else "COMPLETED")
    assert job.stages.filter(status="NEW").exists() == (first == "plan")
    assert_all_hold()
