"""The acceptance list of the run queue, literally, and the required numbers.

Engines are counted by the witness, never by rows. `PROCESS_TERMINATED` is in `test_killed_worker.py`.
"""

import time

import psutil
import pytest
from django.db.models import Count

from builds.models import Build
from config import environment_reader
from runs import lifecycle as runs
from runs.lifecycle import QueueFull
from runs.models import Run
from tests.engines import create_site, kinds_of, outcome_of, until_ended
from tests.factories import events_of
from tests.races.invariants import assert_all_hold
from tests.stepping import until
from work.models import Event

THREADS, SUBMISSIONS_OF_EACH = 20, 50
# The time between asking a process to end and killing it.
GRACE_SECONDS = 50

pytestmark = pytest.mark.long


def test_a_thousand_submissions_give_a_thousand_runs_and_one_build_that_is_made_once(unbuilt, threads):
    documents = [unbuilt.document(seconds=0.01) for _ in range(THREADS)]
    workers = [unbuilt.worker(name) for name in ("w1", "w2")]

    def submit_from(place):
        turns = (documents[(place + turn) % THREADS] for turn in range(SUBMISSIONS_OF_EACH))
        return [unbuilt.submit(document).pk for document in turns]

    submitted = threads.together([lambda place=place: submit_from(place) for place in range(THREADS)])

    ids = {id for of_one in submitted for id in of_one}
    assert len(ids) == THREADS * SUBMISSIONS_OF_EACH
    until(lambda: not Run.objects.live().exists() or not all(worker.is_alive() for worker in workers), 300, every=0.5)
    assert set(Run.objects.values_list("pk", flat=True)) == ids
    assert list(Run.objects.values_list("status").annotate(Count("pk"))) == [("succeeded", len(ids))]
    assert Build.objects.count() == 1
    assert Event.objects.filter(kind="BUILD_STARTED").count() == 1
    assert [each.finished for each in unbuilt.witness.making()] == [True]
    assert sorted(each.run for each in unbuilt.witness.running()) == sorted(ids)
    owners = dict(Event.objects.filter(kind="RUN_STARTED").values_list("subject_id", "actor"))
    assert {int(owner.split(":")[1]) for owner in owners.values()} == {worker.pid for worker in workers}
    assert unbuilt.witness.most_at_once(lambda seen: owners[seen.run]) == 2
    assert unbuilt.witness.overlaps() == []
    assert_all_hold(quiet=True)


@pytest.mark.parametrize("most", [1, 2, 4])
def test_a_worker_executes_as_many_runs_at_once_as_it_may_and_never_more(site, engines, most):
    # However slowly their engines start, the first ones work until all of them are at work.
    first = [site.submit(seconds=600) for _ in range(most)]
    following = [site.submit(seconds=0.2) for _ in range(3 * most)]

    site.worker(slots="build=1", ADE_MAX_CONCURRENCY=most, **engines)
    until(lambda: len(site.witness.at_work()) == most)
    for run in first:
        runs.cancel(run, actor="olga")

    assert until_ended(*following, *first) == ("succeeded", "")
    assert site.witness.most_at_once() == most
    assert len(site.witness.running()) == len(first) + len(following)


def test_a_run_that_takes_too_long_ends_with_a_message_and_the_next_of_its_document_starts(site, engines):
    document = site.document(seconds=600)
    run, following = site.submit(document), site.submit(document)

    site.worker(ADE_RUN_TIMEOUT_SECONDS=1, **engines)

    assert until_ended(run, following) == ("failed", "TIMED_OUT")
    assert run.error_message == "Timed out after 1 s in step work."
    assert 1 <= (run.finished_at - run.started_at).total_seconds() < 1 + GRACE_SECONDS
    assert [each.gone for each in site.witness.of(run)] == [True]
    assert outcome_of(following) == ("failed", "TIMED_OUT")
    assert site.witness.overlaps() == []
    assert_all_hold(quiet=True)


def test_a_run_that_takes_too_long_and_hears_no_signal_is_killed(site, engines):
    run = site.submit(seconds=600, deaf=True)

    site.worker(ADE_RUN_TIMEOUT_SECONDS=1, **engines)

    assert until_ended(run) == ("failed", "TIMED_OUT")
    (engine,) = site.witness.of(run)
    assert engine.gone
    assert engine.last - engine.began < 1 + GRACE_SECONDS + 1


def test_a_build_that_takes_too_long_ends_with_a_message_and_so_do_the_runs_that_wait_for_it(programs, unbuilt):
    site = create_site(programs, unbuilt.witness, make_seconds=600)
    run = site.submit()

    site.worker(ADE_BUILD_TIMEOUT=2)

    assert until_ended(run) == ("failed", "BUILD_FAILED")
    build = Build.objects.get()
    assert outcome_of(build) == ("failed", "TIMED_OUT")
    assert "not finished within the time limit of a build, 2 s (ADE_BUILD_TIMEOUT)" in build.error_message
    assert f"Build {build.pk}" in run.error_message
    until(lambda: all(each.gone for each in site.witness.making()))
    assert site.witness.running() == []
    assert_all_hold(quiet=True)


def test_a_full_queue_refuses_as_often_as_it_is_asked_and_takes_one_more_when_one_has_ended(site, settings):
    settings.ADE_QUEUE_SIZE = 3
    running = [site.submit(seconds=600) for _ in range(2)]
    site.worker()
    for run in running:
        site.witness.until_at_work(run)
    waiting = site.submit()
    refusals = set()

    for _ in range(5):
        with pytest.raises(QueueFull) as refused:
            site.submit()
        refusals.add((refused.value.code, str(refused.value)))

    assert refusals == {
        ("run_queue_full", "The queue is full: it has 3 of 3 runs and no room for 1 more. Submit again later.")
    }
    assert Run.objects.count() == 3
    assert runs.cancel(waiting, actor="olga") == "cancelled"
    assert site.submit().pk
    assert runs.cancel(running[0], actor="olga") == "running"
    assert until_ended(running[0]) == ("cancelled", "")
    assert site.submit().pk


@pytest.mark.parametrize(
    ("fails", "outcome", "steps"),
    [
        (1, ("succeeded", ""), ["STEP_STARTED", "STEP_RETRIED", "STEP_SUCCEEDED"]),
        (9, ("failed", "STEP_FAILED"), ["STEP_STARTED", "STEP_RETRIED", "STEP_FAILED"]),
    ],
)
def test_a_step_has_two_attempts(site, engines, fails, outcome, steps):
    run = site.submit(fails=fails)

    site.worker(**engines)

    assert until_ended(run) == outcome
    assert [each.attempt for each in site.witness.of(run)] == [1, 2]
    assert [kind for kind in events_of(run).values_list("kind", flat=True) if kind.startswith("STEP_")] == steps
    assert kinds_of(run)[:2] == ["RUN_QUEUED", "RUN_STARTED"]


def test_a_run_may_take_two_minutes_and_a_tick_is_a_second_unless_somebody_says_otherwise():
    values = environment_reader.read({"DEBUG": "true"})

    assert (values["ADE_RUN_TIMEOUT_SECONDS"], values["ADE_TICK_SECONDS"], values["ADE_MAX_CONCURRENCY"]) == (120, 1, 2)


def test_one_slot_starts_runs_in_the_order_in_which_they_were_submitted(site, engines):
    submitted = [site.submit(seconds=0.02).pk for _ in range(12)]

    site.worker(slots="run=1", **engines)
    until(lambda: not Run.objects.live().exists())

    assert [each.run for each in sorted(site.witness.running(), key=lambda each: each.began)] == submitted
    assert site.witness.most_at_once() == 1


def test_a_worker_with_nothing_to_do_uses_hardly_any_of_a_core_its_warm_engines_included(site):
    worker = site.worker()
    runs_of_both_slots = [site.submit(seconds=0.5) for _ in range(2)]
    assert until_ended(*runs_of_both_slots) == ("succeeded", "")
    family = [psutil.Process(worker.pid), *worker.children()]
    assert len(site.engines()) >= 2
    time.sleep(2)
    before, began = cpu_seconds(family), time.monotonic()

    time.sleep(10)

    used = cpu_seconds(family) - before
    # Usually it is two hundredths. Other load on the machine makes each second less productive.
    assert used / (time.monotonic() - began) < 0.1


def cpu_seconds(family):
    times = [each.cpu_times() for each in family]
    return sum(each.user + each.system for each in times)


def test_workers_that_write_with_the_orm_start_each_run_once(site, engines):
    submitted = [site.submit(seconds=0.05) for _ in range(8)]

    for name in ("w1", "w2"):
        site.worker(name, slots="run=2", ADE_PORTABLE_SQL="true", **engines)

    assert until_ended(*submitted) == ("succeeded", "")
    assert {outcome_of(run) for run in submitted} == {("succeeded", "")}
    assert [len(site.witness.of(run)) for run in submitted] == [1] * 8
    assert {(kinds_of(run)[0], kinds_of(run)[1], kinds_of(run)[-1]) for run in submitted} == {
        ("RUN_QUEUED", "RUN_STARTED", "RUN_SUCCEEDED")
    }
    assert_all_hold(quiet=True)
