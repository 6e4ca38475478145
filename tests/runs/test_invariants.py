from datetime import timedelta

import pytest

from builds.models import Build
from runs.models import Run
from schedules.models import JobRun
from tests.breaches import breaches, execute, much_has_happened, plant, plant_copy, unguard
from tests.factories import (
    ArtifactFactory,
    BuildFactory,
    DueSlotFactory,
    JobRunFactory,
    RunFactory,
    ScheduledJobFactory,
    bring_to,
    write,
)
from work import clock
from work.models import Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("history_is_open")]


@pytest.fixture(autouse=True)
def world(db):
    much_has_happened()


@pytest.fixture
def on_document(configuration, build, document):
    return lambda **values: RunFactory(configuration=configuration, input_document=document, **values)


def ago(seconds):
    return clock.now() - timedelta(seconds=seconds)


def test_two_runs_running_on_one_document(on_document, document):
    run = on_document(status="running")
    unguard(Run)
    plant_copy(run, id=999_999)

    assert breaches("one_run_at_a_time_is_running_on_a_document") == [("document", document.pk)]


def test_runs_that_overlap(on_document):
    first, second = on_document(status="succeeded"), on_document(status="succeeded")
    ends = {
        run.pk: Event.objects.get(subject_kind="run", subject_id=run.pk, to_status="succeeded").pk
        for run in (first, second)
    }
    execute("UPDATE events SET id = 999999 WHERE id = %s", ends[first.pk])

    assert breaches("runs_of_a_document_never_overlap") == [("run", second.pk)]


def test_a_run_that_never_ended_and_one_after_it(on_document):
    first, second = on_document(status="succeeded"), on_document(status="succeeded")
    Event.objects.filter(subject_kind="run", subject_id=first.pk, to_status="succeeded").delete()

    assert breaches("runs_of_a_document_never_overlap") == [("run", second.pk)]


@pytest.mark.parametrize(
    ("copied", "columns"),
    [
        ("RUN_STARTED", {}),
        ("RUN_SUCCEEDED", {}),
        ("RUN_SUCCEEDED", {"to_status": "failed"}),
        ("RUN_QUEUED", {"from_status": "succeeded"}),
    ],
)
def test_a_second_life(copied, columns):
    run = RunFactory(status="succeeded")
    event = Event.objects.get(subject_kind="run", subject_id=run.pk, kind=copied)
    plant_copy(event, id=999_999, sequence=9, **columns)

    assert breaches("a_run_starts_once_and_ends_once") == [("run", run.pk)]


@pytest.mark.parametrize("status", ["running", "succeeded"])
def test_a_run_whose_build_is_not_ready(status):
    run = RunFactory(build=BuildFactory(status="failed"))
    bring_to(run, status)

    assert breaches("a_run_runs_only_with_a_ready_build") == [("run", run.pk)]


@pytest.mark.parametrize("status", ["succeeded", "failed"])
def test_a_cancel_that_was_accepted_and_forgotten(status):
    run = RunFactory(status=status)
    plant(run, cancel_requested_at=clock.now())

    assert breaches("an_accepted_cancel_of_a_run_binds") == [("run", run.pk)]


@pytest.fixture
def older(on_document, build, document):
    """Two runs of one document: the older one is queued although the younger one started a minute ago."""
    processed = Event.objects.get(subject_kind="document", subject_id=document.pk, to_status="processed")
    plant(processed, at=ago(900))
    older, younger = on_document(), bring_to(on_document(), "succeeded")
    unguard(Run, Build)
    plant(build, finished_at=ago(900))
    plant(older, created_at=ago(100), gate="")
    plant(younger, created_at=ago(90), started_at=ago(60), finished_at=ago(50))
    return older


@pytest.mark.parametrize(
    ("status", "started", "finished"),
    [("queued", None, None), ("succeeded", 55, 54), ("cancelled", None, 55)],
)
def test_a_run_that_was_overtaken(older, status, started, finished):
    times = {"started_at": started and ago(started), "finished_at": finished and ago(finished)}
    plant(older, status=status, **times)

    assert breaches("no_run_overtakes_an_older_one_of_its_document") == [("run", older.pk)]


@pytest.mark.parametrize(
    ("status", "started", "finished"),
    [("succeeded", 80, 70), ("cancelled", None, 65)],
)
def test_a_run_that_had_left_the_queue_before(older, status, started, finished):
    plant(older, status=status, started_at=started and ago(started), finished_at=ago(finished))

    assert breaches("no_run_overtakes_an_older_one_of_its_document") == []


def test_two_runs_of_the_same_second_have_no_order(older):
    plant(older, created_at=ago(90.5))

    assert breaches("no_run_overtakes_an_older_one_of_its_document") == []


def behind_build(older, build, status, finished):
    plant_copy(build, id=999_999, status=status, finished_at=finished and ago(finished))
    plant(older, build_id=999_999)


@pytest.mark.parametrize(("status", "finished"), [("queued", None), ("building", None), ("ready", 59), ("failed", 59)])
def test_a_run_whose_build_had_not_ended_may_be_overtaken(older, build, status, finished):
    behind_build(older, build, status, finished)

    assert breaches("no_run_overtakes_an_older_one_of_its_document") == []


@pytest.mark.parametrize("status", ["ready", "failed", "cancelled"])
def test_a_run_is_overtaken_as_soon_as_its_build_has_ended(older, build, status):
    behind_build(older, build, status, 62)

    assert breaches("no_run_overtakes_an_older_one_of_its_document") == [("run", older.pk)]


def test_a_build_that_does_not_know_who_waits_for_it():
    run = RunFactory(build=BuildFactory())
    plant(run.build, awaited=False)

    assert breaches("a_build_knows_that_runs_wait_for_it") == [("build", run.build_id)]


def test_a_gate_that_was_left_shut(on_document, build):
    plant(build, created_at=ago(999), started_at=ago(950), finished_at=ago(900))
    run = write(on_document(), gate="document", created_at=ago(310))

    assert breaches("no_gate_stays_shut") == [("run", run.pk)]


def test_a_gate_that_has_a_reason(on_document, build):
    plant(build, created_at=ago(999), started_at=ago(950), finished_at=ago(900))
    on_document(status="running")
    write(on_document(), created_at=ago(310))
    write(on_document(), created_at=ago(305))

    assert breaches("no_gate_stays_shut") == []


def test_a_gate_whose_reason_has_just_gone(on_document, build):
    plant(build, created_at=ago(999), started_at=ago(950), finished_at=ago(900))
    on_document(status="succeeded")
    write(on_document(), gate="document", created_at=ago(310))

    assert breaches("no_gate_stays_shut") == []


@pytest.mark.parametrize("status", ["ready", "failed", "cancelled"])
def test_a_gate_of_a_build_that_has_long_ended(status, document, workspace, configuration):
    build = BuildFactory(configuration=configuration)
    run = write(RunFactory(configuration=configuration, input_document=document, build=build), created_at=ago(900))
    bring_to(build, status)
    started = None if status == "cancelled" else ago(890)
    # Many runs may wait for the build, and they are released in batches.
    plant(build, created_at=ago(900), started_at=started, finished_at=ago(290))
    assert breaches("no_gate_stays_shut") == []
    plant(build, finished_at=ago(310))

    assert breaches("no_gate_stays_shut") == [("run", run.pk)]

    execute("UPDATE workers SET stopped_at = heartbeat_at")
    assert breaches("no_gate_stays_shut") == []


def test_a_slot_that_was_claimed_twice():
    slot = JobRunFactory(status="success")
    unguard(JobRun)
    plant_copy(slot, id=999_999)

    assert breaches("a_slot_is_claimed_once") == [("job_run", 999_999)]


def test_a_job_that_runs_twice():
    slot = JobRunFactory()
    unguard(JobRun)
    plant_copy(slot, id=999_999, scheduled_for=ago(999))

    assert breaches("a_slot_is_claimed_once") == [("job_run", 999_999)]


def test_a_slot_that_ended_twice():
    slot = JobRunFactory(status="success")
    end = Event.objects.get(subject_kind="job_run", subject_id=slot.pk, to_status="success")
    plant_copy(end, id=999_999, sequence=3, to_status="skipped_timeout")

    assert breaches("a_slot_ends_once") == [("job_run", slot.pk)]


def test_a_slot_that_has_succeeded_twice():
    slot = JobRunFactory(status="success")
    end = Event.objects.get(subject_kind="job_run", subject_id=slot.pk, to_status="success")
    plant_copy(end, id=999_999, sequence=3)

    assert breaches("a_slot_succeeds_once") == [("job_run", slot.pk)]


def test_two_rows_of_one_slot_that_have_both_succeeded():
    slot = JobRunFactory(job_name="cook", status="success")
    other = JobRunFactory(job_name="cook", scheduled_for=slot.scheduled_for - timedelta(hours=1), status="success")
    unguard(JobRun)
    plant(other, scheduled_for=slot.scheduled_for)

    assert breaches("a_slot_succeeds_once") == [("job_run", other.pk)]


def slots_of_one_job():
    return [JobRunFactory(job_name="read", scheduled_for=ago(hours * 3600), status="success") for hours in (2, 1)]


def test_slots_that_follow_one_another():
    slots_of_one_job()

    assert breaches("slots_of_a_job_never_overlap") == []


def test_slots_that_overlap():
    first, second = slots_of_one_job()
    end = Event.objects.get(subject_kind="job_run", subject_id=first.pk, to_status="success")
    execute("UPDATE events SET id = 999999 WHERE id = %s", end.pk)

    assert breaches("slots_of_a_job_never_overlap") == [("job_run", second.pk)]


def test_a_slot_that_never_ended_and_one_after_it():
    first, second = slots_of_one_job()
    Event.objects.filter(subject_kind="job_run", subject_id=first.pk, to_status="success").delete()

    assert breaches("slots_of_a_job_never_overlap") == [("job_run", second.pk)]


@pytest.fixture
def forgotten(db):
    """A slot that was due ten minutes ago and should have started six minutes ago at the latest."""
    for slot in JobRun.objects.filter(status="running"):
        bring_to(slot, "success")
    ScheduledJobFactory(name="read")
    return DueSlotFactory(job_name="read", scheduled_for=ago(600), due_at=ago(600), expires_at=ago(360))


def test_a_slot_that_nobody_takes(forgotten):
    assert breaches("no_due_slot_is_forgotten") == [("due_slot", forgotten.pk)]

    execute("UPDATE workers SET stopped_at = heartbeat_at")
    assert breaches("no_due_slot_is_forgotten") == []


def test_a_slot_that_somebody_has_asked_for_and_nobody_takes(forgotten):
    plant(forgotten, expires_at=None, asked_by="olga")

    assert breaches("no_due_slot_is_forgotten") == [("due_slot", forgotten.pk)]


@pytest.mark.parametrize(("expires", "due"), [(290, 600), (None, 290)])
def test_a_slot_that_may_still_be_taken(forgotten, expires, due):
    plant(forgotten, expires_at=expires and ago(expires), due_at=ago(due))

    assert breaches("no_due_slot_is_forgotten") == []


@pytest.mark.parametrize(
    ("values", "seconds"),
    [
        ({"job_name": "read"}, 10),
        ({"job_name": "read", "status": "success"}, 10),
        ({"job_name": "another", "status": "running"}, 310),
    ],
    ids=["its job is running", "its job has just ended", "a slot of the worker has long been busy"],
)
def test_a_slot_that_waits_for_its_turn(forgotten, values, seconds):
    plant(JobRunFactory(**values), created_at=ago(seconds), started_at=ago(seconds))

    assert breaches("no_due_slot_is_forgotten") == []


def test_a_slot_of_a_job_that_the_code_has_no_more(forgotten):
    execute("UPDATE scheduled_jobs SET retired_at = decided_until WHERE name = 'read'")

    assert breaches("no_due_slot_is_forgotten") == []


def test_a_pruned_run_that_still_has_artifacts():
    run = RunFactory(status="succeeded")
    write(ArtifactFactory(run=run).run, pruned_at=clock.now())

    assert breaches("a_pruned_run_has_made_nothing") == [("run", run.pk)]


@pytest.fixture
def overtaken(older, document):
    """The document's last change of status; without it, an older run that waits was overtaken."""
    assert breaches("no_run_overtakes_an_older_one_of_its_document") == [("run", older.pk)]
    return Event.objects.get(subject_kind="document", subject_id=document.pk, to_status="processed")


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("processed", [70, 59])
def test_a_run_that_waits_for_its_document_may_be_overtaken_until_that_is_processed(older, overtaken, waits, processed):
    plant(older, waits_for_processing=waits)
    plant(overtaken, at=ago(processed))

    is_broken = not waits or processed == 70
    assert breaches("no_run_overtakes_an_older_one_of_its_document") == ([("run", older.pk)] if is_broken else [])


def test_a_run_that_waits_may_be_overtaken_while_its_document_is_processed_again(older, overtaken):
    again = {"kind": "DOCUMENT_REOPENED", "from_status": "processed", "to_status": "processing"}
    plant_copy(overtaken, id=999_999, sequence=3, at=ago(65), **again)

    assert breaches("no_run_overtakes_an_older_one_of_its_document") == []


@pytest.mark.parametrize("gate", ["process", "failed"])
def test_a_gate_of_a_document_that_has_long_been_processed(on_document, document, gate):
    run = write(on_document(), gate=gate, created_at=ago(310))
    plant(document, last_event_at=ago(290))
    assert breaches("no_gate_stays_shut") == []

    plant(document, last_event_at=ago(310))

    assert breaches("no_gate_stays_shut") == [("run", run.pk)]


def test_a_gate_of_a_document_that_is_still_being_processed(on_document, document):
    write(on_document(), gate="process", created_at=ago(310))
    plant(document, last_event_at=ago(310), status="processing")

    assert breaches("no_gate_stays_shut") == []
