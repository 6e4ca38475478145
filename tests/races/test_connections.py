"""The connection to the database fails between two statements: nothing is done twice, and nothing is left half done."""

from collections import Counter
from dataclasses import replace
from threading import Event as Flag

import pytest
from django.db import DataError, OperationalError, connection, transaction

from builds import lifecycle as builds
from builds.models import Build
from documents import lifecycle as documents
from runs import lifecycle as runs
from runs.models import Admission, Run
from tests.factories import (
    MOVES,
    W1,
    W2,
    BuildFactory,
    ConfigurationFactory,
    DocumentFactory,
    ErrandFactory,
    RunFactory,
    StageFactory,
    claim_of,
    expire_lease,
)
from tests.races.invariants import assert_all_hold
from tests.races.test_claims import work_off
from tests.stepping import terminate, until
from tests.testwork import lifecycle as errands
from tests.testwork.models import Errand
from work import lifecycle, recovery, worker_thread
from work.claims import Holdings
from work.models import Event
from work.sql import returning
from work.work_types import work_type_named
from work.worker_thread import Bell, WorkerThread

pytestmark = pytest.mark.django_db(transaction=True)


def slot_of(kind):
    return WorkerThread(
        kind,
        0,
        owner=W1,
        bell=Bell(),
        holdings=Holdings(),
        stopping=Flag(),
        on_end=lambda kind: None,
        on_contention=lambda kind, met: None,
    )


@pytest.fixture
def slot():
    return slot_of(work_type_named("errand"))


def told(row):
    """Return how often each kind of event was written."""
    events = Event.objects.filter(subject_kind=MOVES[type(row)].kind, subject_id=row.pk)
    return Counter(events.values_list("kind", flat=True))


DONE_ONCE = {"ERRAND_QUEUED": 1, "ERRAND_STARTED": 1, "ERRAND_DONE": 1}


@pytest.mark.only_on("postgresql")
@pytest.mark.parametrize("point", ["finish.before_commit", "finish.after_commit"])
def test_a_slot_whose_connection_is_ended_around_its_last_commit_ends_its_work_once(threads, step_at, slot, point):
    row = ErrandFactory()
    at = step_at(f"errand.{point}")

    work = threads.start(slot.run_once)
    at.until_reached()
    terminate(at.backend)
    at.go_on()

    assert work.answer() is True
    row.refresh_from_db()
    assert (row.status, row.result) == ("done", "noop")
    assert told(row) == DONE_ONCE
    assert_all_hold()


@pytest.mark.only_on("postgresql")
def test_a_claim_whose_connection_is_ended_before_the_commit_was_never_made(threads, step_at, slot):
    row = ErrandFactory()
    at = step_at("errand.claim.selected")

    work = threads.start(slot.run_once)
    at.until_reached()
    terminate(at.backend)
    at.go_on()

    assert isinstance(work.error(), OperationalError)
    assert threads.start(slot.run_once).answer() is True
    assert told(row) == DONE_ONCE
    assert_all_hold()


@pytest.mark.only_on("postgresql")
def test_a_run_whose_connection_is_ended_around_its_last_commit_lets_the_next_one_come(threads, step_at):
    run = RunFactory(status="running")
    following = RunFactory(configuration=run.configuration, input_document=run.input_document)
    claim = claim_of(run)
    at = step_at("run.finish.after_commit")

    def finish():
        try:
            return runs.succeed(claim)
        except OperationalError:
            connection.close()
            return runs.succeed(claim)

    finished = threads.start(finish)
    at.until_reached()
    terminate(at.backend)
    at.go_on()

    assert finished.answer() is True
    assert runs.claim_next_run(W2).id == following.pk
    assert told(run) == {"RUN_QUEUED": 1, "RUN_STARTED": 1, "RUN_SUCCEEDED": 1}
    assert_all_hold()


@pytest.fixture
def answers_get_lost(monkeypatch):
    """Return a function that makes the next changes commit and then lose their answer."""

    def lose(number=1):
        written, left = returning.change_one, [number]

        def and_lose_the_answer(change):
            row = written(change)
            if row is not None and left[0]:
                left[0] -= 1
                raise OperationalError("server closed the connection unexpectedly")
            return row

        monkeypatch.setattr(returning, "change_one", and_lose_the_answer)

    return lose


def persistently(act):
    """Retry as a slot does while the database does not answer."""
    while True:
        try:
            return act()
        except OperationalError:
            connection.close()


ENDS = {
    "succeed a run": (RunFactory, runs.succeed, "succeeded"),
    "fail a run": (RunFactory, lambda claim: runs.fail(claim, "ENGINE_FAILED", "exit code 1"), "failed"),
    "succeed a build": (BuildFactory, builds.succeed, "ready"),
    "fail a build": (BuildFactory, lambda claim: builds.fail(claim, "BUILD_FAILED", "no such package"), "failed"),
    "finish a stage": (StageFactory, documents.finish_stage, "DONE"),
    "fail a stage": (StageFactory, lambda claim: documents.fail_stage(claim, "NO_TEXT", "no text"), "ERROR"),
    "do an errand": (ErrandFactory, lambda claim: errands.succeed(claim, "noop"), "done"),
}


@pytest.mark.parametrize(("factory", "end", "status"), ENDS.values(), ids=ENDS)
def test_an_end_whose_answer_was_lost_is_not_made_twice_and_not_late(answers_get_lost, factory, end, status):
    row = factory(status=factory._meta.model.CLAIMED)
    claim = claim_of(row)
    answers_get_lost()

    assert persistently(lambda: end(claim)) is True

    row.refresh_from_db()
    assert row.status == status
    assert max(told(row).values()) == 1
    assert not Event.objects.filter(kind="LATE_WRITE_REFUSED").exists()
    assert_all_hold()


@pytest.mark.parametrize("end", [runs.succeed, lambda claim: runs.fail(claim, "ENGINE_FAILED", "no"), runs.stop])
def test_a_cancel_whose_obedience_was_not_answered_is_obeyed_once(answers_get_lost, end):
    run = RunFactory(status="running")
    claim = claim_of(run)
    runs.cancel(run, actor="olga")
    answers_get_lost()

    persistently(lambda: end(claim))

    run.refresh_from_db()
    assert run.status == "cancelled"
    assert told(run) == {"RUN_QUEUED": 1, "RUN_STARTED": 1, "RUN_CANCEL_REQUESTED": 1, "RUN_CANCELLED": 1}
    assert_all_hold()


@pytest.mark.parametrize("status", ["queued", "running"])
def test_a_cancel_whose_answer_was_lost_can_be_asked_for_again(answers_get_lost, status):
    run = RunFactory(status=status)
    answers_get_lost()

    answer = persistently(lambda: runs.cancel(run, actor="olga"))

    assert answer == {"queued": "cancelled", "running": "running"}[status]
    assert max(told(run).values()) == 1
    assert_all_hold()


def test_a_claim_whose_answer_was_lost_is_left_to_its_lease(monkeypatch, slot):
    row = ErrandFactory()
    claim_first = returning.claim_first

    def and_lose_the_answer(*args):
        assert claim_first(*args)
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(returning, "claim_first", and_lose_the_answer)
    with pytest.raises(OperationalError):
        slot.run_once()
    monkeypatch.undo()
    row.refresh_from_db()
    assert (row.status, list(slot.holdings)) == ("doing", [])

    expire_lease(row)
    assert recovery.rescue_expired([work_type_named("errand")], W2) == 1
    assert slot.run_once()
    row.refresh_from_db()
    assert row.status == "done"
    assert_all_hold()


def test_an_end_that_cannot_be_said_at_all_is_left_to_recovery(monkeypatch, settings, threads):
    # The worker is well and renews its leases, but this one row cannot be written.
    settings.ADE_LEASE_SECONDS = 1
    monkeypatch.setattr(worker_thread, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(worker_thread, "LONGEST_PAUSE_SECONDS", 0.05)
    row = ErrandFactory(script="raise")

    def refuse(claim, error):
        raise DataError("the database does not take this message")

    kind = work_type_named("errand")
    slot = slot_of(replace(kind, handler=replace(kind.handler, fail=refuse)))
    work = threads.start(slot.run_once)

    def renew_until_it_ends():
        lifecycle.renew(W1, slot.holdings)
        return not work.is_under_way()

    until(renew_until_it_ends)
    expire_lease(row)
    assert recovery.rescue_expired([kind], W2) == 1
    assert_all_hold()


@pytest.mark.only_on("postgresql")
def test_whoever_loses_a_deadlock_is_served_after_the_winner(threads, settings):
    settings.ADE_QUEUE_SIZE = 5
    configuration = ConfigurationFactory()
    document = DocumentFactory(workspace=configuration.workspace, status="processed")
    Admission.objects.create(pk=1)

    with transaction.atomic():
        with connection.cursor() as cursor:
            # The other transaction detects the deadlock first.
            cursor.execute("SET LOCAL deadlock_timeout = '20s'")
        builds.get_or_create_build(configuration, actor="ravi")
        submission = threads.start(lambda: runs.submit(configuration, document, actor="olga"))
        assert submission.waits()
        # The submission holds this row while it waits for ours.
        Admission.objects.select_for_update().get(pk=1)

    assert submission.answer().status == "queued"
    assert Build.objects.count() == 1
    assert_all_hold()


@pytest.mark.only_on("postgresql")
def test_a_renewal_that_loses_a_deadlock_is_made_at_the_next_look(threads):
    rows = [ErrandFactory(status="doing", owner=W1) for _ in range(2)]
    claims = [claim_of(row) for row in rows]
    for claim in claims:
        claim.trusted_until = 0.0

    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL deadlock_timeout = '20s'")
        lifecycle.record(errands.ERRAND, rows[1].pk, "NOTED")
        renewal = threads.start(lambda: lifecycle.renew(W1, claims))
        assert renewal.waits()
        lifecycle.record(errands.ERRAND, rows[0].pk, "NOTED")

    if renewal.error():
        lifecycle.renew(W1, claims)
    assert all(claim.is_trusted() for claim in claims)
    assert_all_hold()


@pytest.fixture(params=["repeatable read", "serializable"])
def isolation(request, transactional_db):
    """Set another default isolation level, as an administrator may have done."""
    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{request.param}'")
    connection.close()
    yield request.param
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {name} RESET default_transaction_isolation")
    connection.close()


@pytest.mark.only_on("postgresql")
def test_claims_are_exclusive_under_any_isolation(threads, isolation):
    configuration = ConfigurationFactory()
    BuildFactory(configuration=configuration, status="ready")
    papers = [DocumentFactory(workspace=configuration.workspace, status="processed") for _ in range(5)]
    ids = runs.submit_many(configuration, papers * 8, actor="olga")

    def finish_all(owner):
        while Run.objects.live().exists():
            persistently(lambda: work_off(owner))

    assert threads.together(lambda n=n: finish_all(f"w{n}@here:1:boot{n}") for n in range(6)) == [None] * 6

    assert Run.objects.filter(status="succeeded").count() == len(ids)
    assert_all_hold(quiet=True)


@pytest.mark.only_on("postgresql")
def test_the_queue_limit_is_exact_under_any_isolation(threads, settings, isolation):
    settings.ADE_QUEUE_SIZE = 5
    configuration = ConfigurationFactory()
    document = DocumentFactory(workspace=configuration.workspace, status="processed")
    runs.submit_many(configuration, [document] * 4, actor="olga")

    answers = threads.together([lambda: runs.submit(configuration, document, actor="olga")] * 12)

    assert Run.objects.count() == 5
    assert sorted({type(answer).__name__ for answer in answers}) == ["QueueFull", "Run"]
    assert_all_hold()


@pytest.mark.only_on("postgresql")
def test_submitters_wait_for_the_count_of_the_one_before_under_any_isolation(threads, settings, step_at, isolation):
    settings.ADE_QUEUE_SIZE = 1
    configuration = ConfigurationFactory()
    document = DocumentFactory(workspace=configuration.workspace, status="processed")
    at = step_at("run.create.counted")

    first = threads.start(lambda: runs.submit(configuration, document, actor="olga"))
    at.until_reached()
    second = threads.start(lambda: runs.submit(configuration, document, actor="ravi"))
    assert second.waits()
    at.go_on()

    assert first.answer().status == "queued"
    assert isinstance(second.error(), runs.QueueFull)
    assert Run.objects.count() == 1


@pytest.mark.only_on("postgresql")
@pytest.mark.parametrize("first", ["succeed", "recover", "cancel"])
@pytest.mark.parametrize("second", ["succeed", "recover", "cancel"])
def test_the_first_to_write_decides_under_any_isolation(threads, isolation, first, second):
    run = RunFactory(status="running")
    claim = claim_of(run)
    expire_lease(run)
    verbs = {
        "succeed": lambda: runs.succeed(claim),
        "recover": lambda: recovery.rescue_expired([work_type_named("run")], W2),
        "cancel": lambda: runs.cancel(run, actor="olga"),
    }

    one = threads.hold(verbs[first])
    two = threads.start(lambda: persistently(verbs[second]))
    two.waits()
    one.commit()
    two.answer()
    recovery.rescue_expired([work_type_named("run")], W2)

    run.refresh_from_db()
    assert run.status == {"succeed": "succeeded", "recover": "failed", "cancel": "cancelled"}[first]
    assert_all_hold()


@pytest.mark.only_on("postgresql")
def test_one_build_is_made_under_any_isolation(threads, isolation):
    configuration = ConfigurationFactory()
    document = DocumentFactory(workspace=configuration.workspace, status="processed")

    made = threads.together([lambda: runs.submit(configuration, document, actor="olga")] * 10)

    assert [type(each) for each in made] == [Run] * 10
    assert Build.objects.count() == 1
    assert_all_hold()


@pytest.mark.only_on("postgresql")
def test_a_move_that_could_not_be_serialized_is_made_again(threads):
    row = ErrandFactory()

    def move():
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_isolation = 'repeatable read'")
        return lifecycle.move(errands.ERRAND, row.pk, "cancel", actor="olga")

    noted = threads.hold(lambda: lifecycle.record(errands.ERRAND, row.pk, "NOTED"))
    moved = threads.start(move)
    assert moved.waits()
    noted.commit()

    assert moved.answer() is True
    assert_all_hold()


@pytest.mark.only_on("postgresql")
def test_recovery_waits_for_no_row_for_long(threads, monkeypatch):
    monkeypatch.setattr(recovery, "STATEMENT_TIMEOUT_MS", 200)
    rows = [ErrandFactory(status="doing", owner=W1) for _ in range(3)]
    for row in rows:
        expire_lease(row)

    locked = threads.hold(lambda: lifecycle.record(errands.ERRAND, rows[0].pk, "NOTED"))
    assert recovery.rescue_expired([work_type_named("errand")], W2) == 2
    locked.commit()

    assert recovery.rescue_expired([work_type_named("errand")], W2) == 1
    assert Errand.objects.filter(status="queued").count() == 3
    assert_all_hold()


@pytest.mark.only_on("postgresql")
def test_a_queued_run_that_is_locked_does_not_keep_the_lost_one_before_it_from_recovery(threads, monkeypatch):
    monkeypatch.setattr(recovery, "STATEMENT_TIMEOUT_MS", 200)
    lost = RunFactory(status="running", owner=W1)
    following = RunFactory(configuration=lost.configuration, input_document=lost.input_document)
    expire_lease(lost)

    threads.hold(lambda: lifecycle.record(runs.RUN_STATES, following.pk, "NOTED"))

    assert recovery.rescue_expired([work_type_named("run")], W2) == 1
    assert_all_hold()
