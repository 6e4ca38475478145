from collections import Counter
from contextlib import nullcontext, suppress
from datetime import timedelta
from threading import Event as Flag
from types import SimpleNamespace

import pytest
from django.db import connection

from builds import fingerprint
from builds import lifecycle as builds
from builds.models import Build, Configuration
from documents import lifecycle as documents
from documents.models import Document
from runs import gates, processing_gates
from runs import lifecycle as runs
from runs.models import Run
from schedules import job_runs
from schedules.models import JobRun
from tests.factories import (
    W1,
    W2,
    BuildFactory,
    ConfigurationFactory,
    DocumentFactory,
    RunFactory,
    age,
    claim_of,
    end_processing,
    expire_lease,
    force_status,
    write,
)
from tests.races.invariants import assert_all_hold
from work import clock, lifecycle, recovery
from work.models import Event
from work.sql.contention import Contended
from work.work_types import work_type_named

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def configuration(transactional_db):
    return ConfigurationFactory()


@pytest.fixture
def document(configuration):
    return DocumentFactory(workspace=configuration.workspace, status="processed")


def test_a_thousand_submissions_of_one_fingerprint_share_one_build(threads, configuration, document):
    def submit():
        return [runs.submit(configuration, document, actor="olga").pk for _ in range(50)]

    made = threads.together([submit] * 20)

    assert Run.objects.count() == 1000 == len({pk for pks in made for pk in pks})
    assert Build.objects.count() == 1
    assert Counter(Event.objects.values_list("kind", flat=True)) == {
        "DOCUMENT_ADDED": 1,
        "DOCUMENT_PROCESSED": 1,
        "BUILD_QUEUED": 1,
        "RUN_QUEUED": 1000,
    }
    assert_all_hold()


def test_the_second_to_ask_for_a_build_gets_that_of_the_first(threads, configuration):
    first = threads.hold(lambda: builds.get_or_create_build(configuration, actor="olga"))
    second = threads.start(lambda: builds.get_or_create_build(configuration, actor="ravi"))
    assert second.waits()

    assert first.commit() == second.answer()
    assert Event.objects.filter(kind="BUILD_QUEUED").count() == 1


def test_a_build_that_was_not_committed_is_made_by_whoever_waited_for_it(threads, configuration):
    first = threads.hold(lambda: builds.get_or_create_build(configuration, actor="olga"))
    second = threads.start(lambda: builds.get_or_create_build(configuration, actor="ravi"))
    assert second.waits()
    first.roll_back()

    assert second.answer().status == "queued"
    assert Event.objects.get(kind="BUILD_QUEUED").actor == "ravi"
    assert_all_hold()


def test_a_failed_build_is_queued_again_once(threads, configuration):
    build = BuildFactory(configuration=configuration, status="failed")
    age(build, builds.NEGATIVE_CACHE_SECONDS + 1)

    chosen = threads.together([lambda: builds.get_or_create_build(configuration, actor="olga")] * 10)

    assert {each.id for each in chosen} == {build.pk}
    assert Event.objects.filter(kind="BUILD_QUEUED_AGAIN").count() == 1
    assert_all_hold()


def test_a_configuration_that_is_edited_meanwhile_is_built_as_it_was_fingerprinted(threads, configuration, document):
    def edit():
        for n in range(10):
            mine = Configuration.objects.get(pk=configuration.pk)
            mine.files = {"main.py": f"version = {n}"}
            mine.save()

    def submit():
        for _ in range(10):
            runs.submit(Configuration.objects.get(pk=configuration.pk), document, actor="olga")

    assert threads.together([edit, submit, edit, submit]) == [None] * 4

    for build in Build.objects.all():
        assert build.fingerprint == fingerprint.of_build(fingerprint.of_contents(build.snapshot))
    assert Run.objects.count() == 20
    assert_all_hold()


def test_the_last_place_of_a_queue_is_given_once(threads, settings, configuration, document):
    settings.ADE_QUEUE_SIZE = 5
    other = ConfigurationFactory(workspace=configuration.workspace)
    runs.submit_many(configuration, [document] * 4, actor="olga")

    answers = threads.together([lambda: runs.submit(other, document, actor="olga")] * 40)

    accepted = [answer for answer in answers if isinstance(answer, Run)]
    refused = [answer for answer in answers if isinstance(answer, runs.QueueFull)]
    assert (len(accepted), len(refused)) == (1, 39)
    assert Run.objects.count() == 5
    assert Build.objects.count() == 2
    assert_all_hold()


def test_a_queue_that_is_full_leaves_no_build_behind(threads, settings, configuration, document):
    settings.ADE_QUEUE_SIZE = 1
    runs.submit(configuration, document, actor="olga")
    others = [ConfigurationFactory(workspace=configuration.workspace) for _ in range(8)]

    answers = threads.together(lambda c=c: runs.submit(c, document, actor="olga") for c in others)

    assert [type(answer) for answer in answers] == [runs.QueueFull] * 8
    assert (Run.objects.count(), Build.objects.count()) == (1, 1)
    assert not Event.objects.filter(subject_kind="build").exclude(subject_id=Build.objects.get().pk).exists()


@pytest.mark.parametrize("at_once", [1, 3])
def test_the_queue_is_never_longer_than_its_limit_while_runs_come_and_go(
    threads, settings, configuration, document, at_once
):
    BuildFactory(configuration=configuration, status="ready")
    settings.ADE_QUEUE_SIZE = 5
    papers = [DocumentFactory(workspace=configuration.workspace, status="processed") for _ in range(at_once)]
    lengths = Counter()

    def submit():
        for _ in range(10):
            try:
                runs.submit_many(configuration, papers, actor="olga")
            except runs.QueueFull as full:
                lengths[full.live] += 1

    def finish():
        for _ in range(20):
            if claim := runs.claim_next_run(W1):
                lengths[Run.objects.live().count()] += 1
                runs.succeed(claim)

    assert threads.together([submit, finish, submit, submit]) == [None] * 4

    assert max(lengths) <= 5
    assert_all_hold()


def test_a_place_is_free_as_soon_as_a_cancel_is_committed(threads, settings, configuration, document):
    settings.ADE_QUEUE_SIZE = 1
    run = runs.submit(configuration, document, actor="olga")

    cancelled = threads.hold(lambda: runs.cancel(run, actor="olga"))
    if connection.vendor == "postgresql":
        early = threads.start(lambda: runs.submit(configuration, document, actor="olga"))
        assert isinstance(early.error(), runs.QueueFull)
    cancelled.commit()

    assert runs.submit(configuration, document, actor="olga").status == "queued"
    assert_all_hold()


def test_submitters_wait_for_the_count_of_the_one_before(threads, settings, step_at, configuration, document):
    settings.ADE_QUEUE_SIZE = 1
    at = step_at("run.create.counted")

    first = threads.start(lambda: runs.submit(configuration, document, actor="olga"))
    at.until_reached()
    second = threads.start(lambda: runs.submit(configuration, document, actor="ravi"))
    assert second.waits()
    at.go_on()

    assert first.answer().status == "queued"
    assert isinstance(second.error(), runs.QueueFull)


@pytest.mark.only_on("postgresql")
def test_a_build_that_becomes_ready_during_a_submission_leaves_no_run_asleep(
    threads, monkeypatch, configuration, document
):
    build = BuildFactory(configuration=configuration, status="building")
    claim = claim_of(build)
    looked = builds.get_or_create_build

    def ready_right_after_the_look(*args, **options):
        chosen = looked(*args, **options)
        threads.start(lambda: (builds.succeed(claim), runs.apply_build_results(W2))).answer()
        return chosen

    monkeypatch.setattr(runs, "get_or_create_build", ready_right_after_the_look)
    run = runs.submit(configuration, document, actor="olga")
    assert run.gate == "build"

    runs.apply_build_results(W1)

    assert runs.claim_next_run(W1).id == run.pk
    assert_all_hold()


def test_a_run_of_a_build_that_is_queued_again_is_not_refused_for_its_earlier_end(
    threads, monkeypatch, configuration, document
):
    build = BuildFactory(configuration=configuration, status="failed")
    run = runs.submit(configuration, document, actor="olga")
    runs_waiting_for = gates.runs_waiting_for

    def queued_again_meanwhile(build_id):
        waiting = runs_waiting_for(build_id)
        assert threads.start(lambda: builds.again(build.pk, actor="olga")).answer()
        return waiting

    monkeypatch.setattr(gates, "runs_waiting_for", queued_again_meanwhile)

    assert runs.apply_build_results(W1) == 0

    run.refresh_from_db()
    assert run.status == "queued"
    assert_all_hold()


def between_look_and_insert(monkeypatch, act):
    """Call `act` in a submission after its gate was chosen and before its row is inserted."""
    look = gates.for_new_runs

    def looked(document_ids, **options):
        chosen = look(document_ids, **options)
        monkeypatch.setattr(gates, "for_new_runs", look)
        act()
        return chosen

    monkeypatch.setattr(gates, "for_new_runs", looked)


@pytest.mark.only_on("postgresql")
def test_a_run_whose_gate_nobody_opens_any_more_is_found(threads, monkeypatch, configuration, document):
    last = RunFactory(configuration=configuration, input_document=document, status="running")
    claim = claim_of(last)
    between_look_and_insert(monkeypatch, lambda: threads.start(lambda: runs.succeed(claim)).answer())

    run = runs.submit(configuration, document, actor="olga")
    assert (run.gate, runs.claim_next_run(W1)) == ("document", None)

    gates.open_forgotten()
    assert runs.claim_next_run(W1).id == run.pk


@pytest.mark.only_on("postgresql")
def test_a_run_behind_a_forgotten_gate_is_not_overtaken(threads, monkeypatch, configuration, document):
    last = RunFactory(configuration=configuration, input_document=document, status="running")
    claim = claim_of(last)
    between_look_and_insert(monkeypatch, lambda: threads.start(lambda: runs.succeed(claim)).answer())
    older = runs.submit(configuration, document, actor="olga")

    younger = runs.submit(configuration, document, actor="olga")
    first = runs.claim_next_run(W1)
    gates.open_forgotten()

    assert (first or runs.claim_next_run(W1)).id == older.pk
    assert younger.pk != older.pk
    assert_all_hold()


@pytest.mark.only_on("postgresql")
def test_an_older_run_that_comes_late_goes_first(threads, monkeypatch, configuration, document):
    # Its row is committed after a younger run's row, but with an open gate: it had seen no other run.
    BuildFactory(configuration=configuration, status="ready")
    younger = []

    def submit_another():
        younger.append(threads.start(lambda: runs.submit(configuration, document, actor="ravi")).answer())

    between_look_and_insert(monkeypatch, submit_another)
    late = runs.submit(configuration, document, actor="olga")
    write(late, created_at=younger[0].created_at - (late.created_at - younger[0].created_at))

    assert (late.gate, younger[0].gate) == ("", "")
    assert runs.claim_next_run(W1).id == late.pk
    assert runs.claim_next_run(W2) is None


def test_the_next_run_of_a_document_can_start_as_soon_as_a_lost_one_is_recovered(configuration, document):
    lost = RunFactory(configuration=configuration, input_document=document, status="running", owner=W1)
    waiting = runs.submit(configuration, document, actor="olga")
    expire_lease(lost)

    recovery.rescue_expired([work_type_named("run")], W2)

    assert runs.claim_next_run(W2).id == waiting.pk


def test_a_slot_is_claimed_once(threads):
    at = clock.now().replace(microsecond=0)

    answers = threads.together(lambda n=n: job_runs.claim_slot("ingest", at, f"w{n}@here:1:boot{n}") for n in range(8))

    assert Counter(map(str, answers)) == {"slot_already_claimed": 7, f"job_run {JobRun.objects.get().pk}": 1}
    assert Event.objects.get().kind == "SLOT_CLAIMED"


def test_the_second_scheduler_waits_for_the_first_and_goes_away(threads):
    at = clock.now().replace(microsecond=0)

    first = threads.hold(lambda: job_runs.claim_slot("ingest", at, W1))
    second = threads.start(lambda: job_runs.claim_slot("ingest", at, W2))
    assert second.waits()

    assert first.commit().holder.owner == W1
    assert second.answer() is job_runs.Refusal.SLOT_TAKEN


def test_a_slot_that_was_not_committed_is_free_for_others(threads):
    at = clock.now().replace(microsecond=0)

    first = threads.hold(lambda: job_runs.claim_slot("ingest", at, W1))
    second = threads.start(lambda: job_runs.claim_slot("ingest", at, W2))
    assert second.waits()
    first.roll_back()

    assert second.answer().holder.owner == W2
    assert_all_hold()


def test_two_slots_of_one_job_do_not_run_at_once(threads):
    at = clock.now().replace(microsecond=0)

    first = threads.hold(lambda: job_runs.claim_slot("ingest", at, W1))
    second = threads.start(lambda: job_runs.claim_slot("ingest", at + timedelta(seconds=60), W2))
    assert second.waits()
    first.commit()

    assert second.answer() is job_runs.Refusal.JOB_RUNNING


def test_a_job_that_ends_between_the_insert_and_the_look_leaves_its_next_slot_to_another_tick(threads, monkeypatch):
    at = clock.now().replace(microsecond=0)
    first = job_runs.claim_slot("ingest", at, W1)
    create = lifecycle.create

    def too_early(*args, **options):
        try:
            return create(*args, **options)
        finally:
            assert threads.start(lambda: job_runs.succeed(first)).answer()

    # Without a transaction, so that on SQLite the end need not wait for the insert.
    monkeypatch.setattr(job_runs, "transaction", SimpleNamespace(atomic=nullcontext))
    monkeypatch.setattr(lifecycle, "create", too_early)

    with pytest.raises(Contended):
        job_runs.claim_slot("ingest", at + timedelta(seconds=60), W2)


@pytest.mark.parametrize("first", ["finish", "skip", "recover"])
@pytest.mark.parametrize("second", ["finish", "skip", "recover"])
def test_a_stale_slot_ends_once(threads, first, second):
    claim = job_runs.claim_slot("ingest", clock.now().replace(microsecond=0), W1)
    row = JobRun.objects.get()
    age(row, 1000)
    verbs = {
        "finish": lambda: job_runs.succeed(claim, rows_processed=7),
        "skip": lambda: job_runs.skip_stale("ingest", timedelta(seconds=600), actor=W2),
        "recover": lambda: recovery.rescue_expired([work_type_named("job_run")], W2),
    }

    one = threads.hold(verbs[first])
    two = threads.start(verbs[second])
    assert two.waits()
    answers = one.commit(), two.answer()

    row.refresh_from_db()
    # A repeated `finish` by the holder succeeds, because its first answer may have been lost.
    assert answers == (1, first == second == "finish")
    assert row.status == {"finish": "success", "skip": "skipped_timeout", "recover": "failed"}[first]
    late = second == "finish" != first
    assert Event.objects.filter(kind="LATE_WRITE_REFUSED").count() == late
    assert_all_hold()


def test_a_forced_row_is_not_taken_for_a_lost_one(configuration, document):
    run = force_status(RunFactory(configuration=configuration, input_document=document), "running")

    assert recovery.rescue_expired([work_type_named("run")], W2) == 0
    run.refresh_from_db()
    assert run.status == "running"


@pytest.fixture
def unprocessed(configuration):
    BuildFactory(configuration=configuration, status="ready")
    return DocumentFactory(workspace=configuration.workspace)


@pytest.mark.only_on("postgresql")
@pytest.mark.parametrize("status", ["processed", "failed"])
def test_a_document_whose_processing_ends_during_a_submission_leaves_no_run_asleep(
    threads, monkeypatch, configuration, unprocessed, status
):
    ends = lambda: threads.start(lambda: end_processing(unprocessed, status)).answer()  # noqa: E731  # a name for it
    between_look_and_insert(monkeypatch, ends)
    run = runs.submit(configuration, unprocessed, actor="olga")
    assert (run.gate, runs.claim_next_run(W1)) == ("process", None)

    processing_gates.mend()
    runs.apply_processing_failures(W1)

    if status == "processed":
        assert runs.claim_next_run(W1).id == run.pk
    else:
        assert Run.objects.get(pk=run.pk).failure_type == "DOCUMENT_FAILED"
    assert_all_hold()


@pytest.mark.only_on("postgresql")
def test_a_document_that_is_reopened_during_a_submission_still_holds_the_run(
    threads, monkeypatch, configuration, unprocessed
):
    end_processing(unprocessed)
    reopened = []
    reopen = lambda: reopened.append(documents.reprocess(unprocessed, actor="ravi"))  # noqa: E731  # a name for it
    between_look_and_insert(monkeypatch, lambda: threads.start(reopen).answer())
    run = runs.submit(configuration, unprocessed, actor="olga")
    assert (run.gate, runs.claim_next_run(W1)) == ("", None)

    assert processing_gates.mend() == 1

    end_processing(Document.objects.get(pk=unprocessed.pk))
    assert (len(reopened), runs.claim_next_run(W1).id) == (1, run.pk)
    assert_all_hold()


def test_the_end_of_processing_does_not_wait_for_a_run_that_somebody_holds(threads, configuration, unprocessed):
    first, second = (runs.submit(configuration, unprocessed, actor="olga") for _ in range(2))
    if connection.vendor == "postgresql":
        cancelled = threads.hold(lambda: runs.cancel(first, actor="olga"))
        threads.start(lambda: end_processing(unprocessed)).answer()
        cancelled.commit()
    else:
        runs.cancel(first, actor="olga")
        end_processing(unprocessed)

    processing_gates.mend()

    assert runs.claim_next_run(W1).id == second.pk
    assert_all_hold()


def test_runs_are_never_claimed_before_their_document_is_processed(threads, configuration, unprocessed):
    """Runs are submitted, claimed and ended while their document is processed again and again."""
    end_processing(unprocessed)
    are_over = {"reprocess": Flag(), "submit": Flag()}

    def reprocess():
        try:
            for _ in range(8):
                assert documents.reprocess(unprocessed, actor="olga")
                end_processing(Document.objects.get(pk=unprocessed.pk))
        finally:
            are_over["reprocess"].set()

    def submit():
        try:
            for n in range(30):
                runs.submit(configuration, unprocessed, actor="olga", wait_for_processing=n % 3 > 0)
        finally:
            are_over["submit"].set()

    def claim():
        while not all(flag.is_set() for flag in are_over.values()) or Run.objects.live().exists():
            processing_gates.mend()
            gates.open_forgotten()
            with suppress(Contended):
                if held := runs.claim_next_run(W1):
                    runs.succeed(held)

    answers = threads.together([reprocess, submit, claim, claim])

    assert not [answer for answer in answers if isinstance(answer, Exception)]
    assert Run.objects.filter(status="succeeded").count() == 30
    for run in Run.objects.filter(waits_for_processing=True):
        started = Event.objects.get(subject_kind="run", subject_id=run.pk, kind="RUN_STARTED")
        of_document = Event.objects.about("document", unprocessed.pk).exclude(to_status="")
        # The claim has seen the document before its own event; a reopening may have been written in between.
        before = of_document.filter(pk__lt=started.pk).order_by("-pk")[:2]
        assert "processed" in {event.to_status for event in before}
    assert_all_hold(quiet=True)
