"""Events of runs and slots are pruned by outcome and age; their rows stay."""

from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from runs import lifecycle, retention
from runs.models import Artifact, Run
from schedules.models import JobRun
from tests.breaches import breaches, plant
from tests.factories import (
    W1,
    ArtifactFactory,
    JobRunFactory,
    RunFactory,
    RunFieldFactory,
    age,
    bring_to,
    columns_of,
    events_of,
    told,
    write,
)
from tests.races.invariants import assert_all_hold
from work import boots, clock, journal, pruning
from work import lifecycle as kernel
from work.models import Event, Worker
from work.sql import guards

pytestmark = pytest.mark.django_db
DAY = 24 * 3600


@pytest.fixture(autouse=True)
def policies(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.ADE_KEEP_RUNS = {"succeeded": 30, "failed": 60}
    settings.ADE_KEEP_JOB_RUNS, settings.ADE_KEEP_WORKERS_DAYS = {"success": 90}, 365


def old(days, status="succeeded"):
    return age(RunFactory(status=status), days * DAY)


def purge(policy):
    return [dict(batch.gone) for batch in policy.purge("olga")]


def pruned(model=Run):
    return set(model.objects.filter(pruned_at__isnull=False).values_list("pk", flat=True))


@pytest.mark.parametrize(
    ("status", "days", "goes"),
    [
        ("succeeded", 31, True),
        ("succeeded", 29, False),
        ("failed", 59, False),
        ("failed", 61, True),
        ("cancelled", 10_000, False),
        ("running", 10_000, False),
        ("queued", 10_000, False),
    ],
)
def test_each_status_has_its_own_age(status, days, goes):
    run = old(days, status)

    purge(retention.RUNS)

    assert pruned() == ({run.pk} if goes else set())
    assert told(run)[-1:] == (["RUN_PRUNED"] if goes else told(run)[-1:])


def test_the_age_is_counted_from_the_end():
    run = old(31)
    write(run, finished_at=clock.now() - timedelta(days=29))

    purge(retention.RUNS)

    assert pruned() == set()


def test_without_a_policy_nothing_goes(settings):
    settings.ADE_KEEP_RUNS = {}
    old(10_000)

    assert purge(retention.RUNS) == []
    assert (retention.RUNS.due().rows, retention.RUNS.keeps()) == (0, "off")


def test_of_its_history_one_event_stays_which_says_what_went():
    run = RunFactory(status="running")
    kernel.record(lifecycle.RUN_STATES, run.pk, journal.LOG, message="reading page 1")
    ArtifactFactory(run=run, size_bytes=5), ArtifactFactory(run=run, size_bytes=6)
    age(bring_to(run, "succeeded"), 31 * DAY)
    before = columns_of(run)

    assert purge(retention.RUNS) == [{"events": 4, "artifacts": 2}]

    (event,) = events_of(run)
    assert (event.kind, event.sequence, event.from_status, event.to_status) == ("RUN_PRUNED", 5, "", "succeeded")
    assert (event.actor, event.claim_token) == ("olga", 1)
    assert event.data == {"events": 4, "artifacts": 2, "size_bytes": 11}
    changed = {"last_sequence": 5, "last_event_at": event.at, "pruned_at": event.at}
    assert columns_of(run) == before | changed


def test_its_artifacts_go_with_their_files_and_what_it_found_stays():
    key = default_storage.save("runs/1/1/0001", ContentFile(b"{}"))
    run = RunFactory(status="running")
    ArtifactFactory(run=run, file=key), RunFieldFactory(run=run)
    age(bring_to(run, "succeeded"), 31 * DAY)
    other = ArtifactFactory()

    purge(retention.RUNS)

    assert list(Artifact.objects.all()) == [other]
    assert not default_storage.exists(key)
    assert run.fields.count() == 1


def test_a_storage_that_is_away_does_not_keep_the_rows(monkeypatch):
    artifact = ArtifactFactory()
    age(bring_to(artifact.run, "succeeded"), 31 * DAY)

    def away(name):
        raise OSError("away")

    monkeypatch.setattr(default_storage, "delete", away)

    assert purge(retention.RUNS) == [{"events": 3, "artifacts": 1}]


def test_it_is_done_once():
    run = old(31)
    purge(retention.RUNS)
    before = columns_of(run)

    assert purge(retention.RUNS) == []
    assert columns_of(run) == before


def test_everything_that_must_hold_holds_afterwards_and_when_something_is_told_later():
    run, _, slot = old(31), old(61, "failed"), age(JobRunFactory(status="success"), 91 * DAY)
    purge(retention.RUNS)
    purge(retention.JOB_RUNS)
    assert_all_hold()

    kernel.record(lifecycle.RUN_STATES, run.pk, kernel.LATE_WRITE_REFUSED, actor=W1)

    assert told(run) == ["RUN_PRUNED", "LATE_WRITE_REFUSED"]
    assert breaches("events_are_numbered_without_gaps") == []
    assert told(slot) == ["SLOT_PRUNED"]


def test_slots_keep_their_rows():
    slot, young = age(JobRunFactory(status="success"), 91 * DAY), JobRunFactory(status="success")
    failed = age(JobRunFactory(status="failed"), 1000 * DAY)

    assert purge(retention.JOB_RUNS) == [{"events": 2}]

    assert pruned(JobRun) == {slot.pk}
    assert JobRun.objects.count() == 3
    assert len(told(young)) == len(told(failed)) == 2


def test_a_rehearsal_counts_and_changes_nothing():
    run, _ = old(40), old(10)

    due = retention.RUNS.due()

    assert (due.rows, due.oldest, due.kept) == (1, run.finished_at, 0)
    assert pruned() == set()


def test_a_row_with_much_to_tell_is_alone_in_its_batch(monkeypatch):
    monkeypatch.setattr(pruning, "HEAVIEST", 6)
    for _ in range(5):
        old(31)

    # Each run has three events.
    assert [each["events"] for each in purge(retention.RUNS)] == [6, 6, 3]
    monkeypatch.setattr(pruning, "HEAVIEST", 1)
    old(31), old(31)
    assert [each["events"] for each in purge(retention.RUNS)] == [3, 3]


def test_workers_that_have_long_been_gone_are_forgotten():
    row = boots.register("w0", "boot-0", {})
    boots.sign_off(row)
    age(row, 366 * DAY)
    alive = boots.register("w1", "boot-1", {})

    assert purge(retention.WORKERS) == [{"workers": 1, "events": 2}]

    assert list(Worker.objects.all()) == [alive]
    assert set(Event.objects.filter(subject_kind="worker").values_list("subject_id", flat=True)) == {alive.pk}
    assert_all_hold()


def gone(name):
    row = boots.register(name, f"boot-{name}", {})
    boots.sign_off(row)
    return age(row, 366 * DAY)


def test_a_worker_that_wakes_up_meanwhile_is_not_forgotten(monkeypatch):
    woken, other = gone("w0"), gone("w1")
    forget = boots.forget

    def wake_first(old):
        Worker.objects.filter(pk=woken.pk).update(heartbeat_at=clock.now())
        return forget(old)

    monkeypatch.setattr(boots, "forget", wake_first)

    assert purge(retention.WORKERS) == [{"workers": 1, "events": 2}]

    assert list(Worker.objects.all()) == [woken] != [other]
    assert told(woken) == ["WORKER_STARTED", "WORKER_STOPPED"]
    assert_all_hold()


def test_a_worker_that_holds_something_is_not_forgotten():
    holding, _ = gone("w0"), gone("w1")
    RunFactory(status="running", owner=holding.owner), JobRunFactory(status="running")

    assert purge(retention.WORKERS) == [{"workers": 1, "events": 2}]

    assert list(Worker.objects.all()) == [holding]
    assert told(holding) == ["WORKER_STARTED", "WORKER_STOPPED"]


def test_workers_with_much_to_tell_are_forgotten_one_by_one(monkeypatch):
    monkeypatch.setattr(pruning, "HEAVIEST", 3)
    gone("w0"), gone("w1"), gone("w2")

    assert purge(retention.WORKERS) == [{"workers": 1, "events": 2}] * 3


def test_rows_of_workers_go_by_the_list_of_what_may_go(settings):
    settings.PURGE_ALLOWED = [label for label in settings.PURGE_ALLOWED if label != "work.Worker"]
    row = gone("w0")

    with pytest.raises(TypeError, match=r"work.Worker are not deleted"):
        purge(retention.WORKERS)

    assert told(row) == ["WORKER_STARTED", "WORKER_STOPPED"]


# Invariants


@pytest.fixture
def run():
    run = old(31)
    purge(retention.RUNS)
    run.refresh_from_db()
    return run


GAPS = "events_are_numbered_without_gaps"


def test_a_pruned_run_whose_event_is_gone(run):
    with guards.retention():
        events_of(run).delete()

    assert breaches(GAPS) == [("run", run.pk)]


def test_a_run_that_says_it_was_pruned_and_has_its_history():
    run = RunFactory(status="succeeded")
    write(run, pruned_at=clock.now())

    assert breaches(GAPS) == [("run", run.pk)]


def test_a_run_that_was_pruned_and_does_not_say_so(run):
    plant(run, pruned_at=None)

    assert breaches(GAPS) == [("run", run.pk)]


def test_a_pruned_run_of_whose_history_more_is_left(run):
    event = events_of(run).get()
    Event.objects.create(subject_kind="run", subject_id=run.pk, sequence=event.sequence - 1, at=event.at, kind="LOG")

    assert breaches(GAPS) == [("run", run.pk)]


@pytest.mark.usefixtures("history_is_open")
def test_a_run_that_begins_late_and_was_never_pruned():
    run = RunFactory(status="succeeded")
    events_of(run).filter(sequence=1).delete()

    assert breaches(GAPS) == [("run", run.pk)]
