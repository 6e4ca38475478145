from datetime import timedelta

import pytest

from runs import gates, lifecycle, processing_gates
from runs.models import Run
from runs.why import explain
from tests.factories import BuildFactory, DocumentFactory, JobFactory, RunFactory, bring_to, force_status, write
from work import boots, clock, draining
from work.models import Worker
from work.sql import compiled

pytestmark = pytest.mark.django_db

ENDED = ["succeeded", "failed", "cancelled"]


@pytest.fixture
def worker():
    """A worker with two slots for runs and one for builds."""
    return boots.register("w1", "boot1", {"run": 2, "build": 1})


def gate(run, name):
    (found,) = (gate for gate in explain(run).gates if gate.name == name)
    return found


def held_by(run):
    return [gate.name for gate in explain(run).holding]


def test_what_nothing_holds_is_claimed_at_once(worker):
    explanation = explain(run := RunFactory())

    assert [gate.name for gate in explanation.gates] == [
        "paused",
        "worker",
        "capacity",
        "build",
        "processing",
        "document",
    ]
    assert explanation.holding == []
    assert explanation.message == f"run {run.pk} is queued; nothing blocks it: a worker will claim it shortly."
    assert lifecycle.claim_next_run(worker.owner).id == run.pk


def test_a_run_that_is_not_queued_does_not_wait(worker):
    running = RunFactory(status="running")
    late = force_status(RunFactory(), "failed", failure_type="TIMED_OUT")

    told = explain(running), explain(late)

    assert [(each.status, each.outcome, each.gates) for each in told] == [
        ("running", "running", ()),
        ("failed", "timed_out", ()),
    ]
    assert told[0].message.startswith(f"run {running.pk} is running, claimed by {running.lease_owner} at ")
    assert told[1].message.startswith(f"run {late.pk} ended at ")
    assert told[1].message.endswith(": timed out.")


@pytest.mark.parametrize("status", ENDED)
def test_a_run_that_has_ended_says_how(status):
    assert explain(RunFactory(status=status)).outcome == status


def test_the_row_is_read_anew(worker):
    run = RunFactory()
    lifecycle.cancel(Run.objects.get(pk=run.pk), actor="olga")

    assert (run.status, explain(run).status) == ("queued", "cancelled")


def test_a_run_that_is_gone(worker):
    with pytest.raises(Run.DoesNotExist):
        explain(Run(pk=999_999))


# The worker


def test_nobody_has_ever_been_there():
    found = gate(RunFactory(), "worker")

    assert (found.holds, found.holder, found.since) == (True, "", None)
    assert found.message == "No worker is alive. None has ever been started."


def test_the_last_worker_is_named_with_the_time_when_it_was_seen(worker):
    boots.register("w0", "boot0", {})
    Worker.objects.exclude(pk=worker.pk).update(heartbeat_at=clock.now() - timedelta(days=2))
    write(worker, heartbeat_at=clock.now() - timedelta(days=1))

    found = gate(RunFactory(), "worker")

    assert (found.holds, found.holder, found.since) == (True, worker.owner, worker.heartbeat_at)
    assert found.message.startswith(f"No worker is alive. {worker.owner} sent its last heartbeat at ")


def test_a_worker_that_was_stopped_says_so(worker):
    write(worker, stopped_at=clock.now())

    found = gate(RunFactory(), "worker")

    assert (found.holds, found.since) == (True, worker.stopped_at)
    assert f"{worker.owner} stopped at " in found.message


@pytest.mark.parametrize("lanes", [{}, {"build": 1}, {"run": 0}])
def test_a_worker_without_a_slot_for_runs_is_none(lanes):
    boots.register("w1", "boot1", lanes)

    found = gate(RunFactory(), "worker")

    assert (found.holds, found.message) == (True, "1 worker is alive, but none takes runs.")
    assert found.data == {"alive": 1, "with_slots": 0, "draining": 0}


def test_workers_that_all_drain_are_told_with_who_has_asked(worker):
    other = boots.register("w2", "boot2", {"run": 1})
    boots.register("w3", "boot3", {"build": 1})
    draining.drain(worker, actor="ada")
    draining.drain(other, actor="olga")

    found = gate(RunFactory(), "worker")

    assert (found.holds, found.holder, found.since) == (True, other.owner, other.drain_requested_at)
    assert found.message.startswith("2 live workers take runs, but they are draining and will claim nothing more; ")
    assert f"{other.owner} was asked to drain by olga at " in found.message
    assert found.data == {"alive": 3, "with_slots": 0, "draining": 2}


def test_the_slots_of_a_worker_that_drains_are_nobodys(worker):
    other = boots.register("w2", "boot2", {"run": 1})
    RunFactory(status="running", owner=worker.owner)
    draining.drain(worker, actor="ada")

    run = RunFactory()

    assert not gate(run, "worker").holds
    assert gate(run, "capacity").data["slots"] == 1
    assert gate(run, "capacity").data["free"] == 1
    assert other.state == "alive"


def test_without_a_worker_no_slot_is_busy():
    RunFactory()

    found = gate(RunFactory(), "capacity")

    assert (found.holds, found.message) == (False, "No worker has a thread for it; 1 run is ahead of it.")


# Capacity


def test_all_slots_are_busy(worker):
    first, second = (RunFactory(status="running", owner=worker.owner) for _ in range(2))
    write(second, started_at=first.started_at - timedelta(seconds=0.5), created_at=first.created_at - timedelta(days=1))
    waiting = [RunFactory() for _ in range(3)]

    found = gate(waiting[2], "capacity")

    assert held_by(waiting[2]) == ["capacity"]
    assert (found.holder, found.since) == (f"run {second.pk}", second.started_at)
    assert found.message.startswith(f"All 2 threads are busy: run {second.pk} claimed by {worker.owner} at ")
    assert found.message.endswith("; 2 runs are ahead of it.")
    at_work = [{"kind": "run", "id": run.pk, "by": worker.owner, "since": run.started_at} for run in (second, first)]
    assert found.data == {"slots": 2, "free": 0, "ahead": 2, "at_work": at_work, "at_work_of_others": 0}


def test_one_slot_is_free_and_nobody_is_ahead(worker):
    RunFactory(status="running", owner=worker.owner)

    found = gate(RunFactory(), "capacity")

    assert (found.holds, found.message) == (False, "1 of 2 threads is free; no run is ahead of it.")


def test_the_free_slots_are_for_those_who_are_ahead(worker):
    _, second, third = (RunFactory() for _ in range(3))

    assert held_by(second) == []
    assert held_by(third) == ["capacity"]
    message = "2 of 2 threads are free; 2 runs are ahead of it and will be claimed first."
    assert gate(third, "capacity").message == message


def test_what_lost_workers_hold_takes_no_slot(worker, w2):
    for _ in range(3):
        RunFactory(status="running", owner=w2)

    assert held_by(RunFactory()) == []


def test_only_what_can_be_claimed_is_ahead(worker):
    blocked = RunFactory(build=BuildFactory())
    RunFactory(input_document=RunFactory(status="running", owner="w9").input_document)
    RunFactory(gate="document")
    run = RunFactory()
    RunFactory()

    assert gate(run, "capacity").data["ahead"] == 0
    assert gate(blocked, "capacity").data["ahead"] == 0


def test_of_the_same_moment_the_first_submitted_is_ahead(worker):
    runs = [RunFactory(created_at=clock.now().replace(microsecond=0)) for _ in range(3)]
    for run in runs:
        write(run, created_at=runs[0].created_at)

    assert [gate(run, "capacity").data["ahead"] for run in runs] == [0, 1, 2]


def test_a_long_queue_is_counted_to_a_bound(worker, monkeypatch):
    monkeypatch.setattr("work.why.MOST_COUNTED", 2)
    # Bypass the cache, which has the statement with the real limit.
    monkeypatch.setattr(compiled, "_compiled", compiled._compiled.__wrapped__)
    runs = [RunFactory() for _ in range(5)]

    found = gate(runs[4], "capacity")

    assert found.data["ahead"] == 3
    assert "over 2 runs are ahead of it" in found.message


# The build


def test_a_build_that_is_queued_tells_what_it_waits_for_itself(worker):
    first, second = BuildFactory(), BuildFactory()
    run = RunFactory(build=second)

    found = gate(run, "build")

    assert held_by(run) == ["build"]
    assert (found.holder, found.since) == (f"build {second.pk}", second.queued_at)
    assert found.message.startswith(f"Its build {second.pk} has been queued since ")
    assert found.message.endswith("1 of 1 thread is free; 1 build is ahead of it and will be claimed first.")
    assert first.pk < second.pk


def test_a_build_that_is_being_made(worker):
    build = BuildFactory(status="building", owner=worker.owner)
    run = RunFactory(build=build)

    found = gate(run, "build")

    assert (found.holds, found.holder, found.since) == (True, f"build {build.pk}", build.started_at)
    assert found.message.startswith(f"Its build {build.pk} is in progress, claimed by {worker.owner} at ")
    assert found.data == {"id": build.pk, "status": "building", "by": worker.owner}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("ready", "is ready; a worker will let this run continue shortly."),
        ("failed", "failed; a worker will end this run as failed shortly."),
        ("cancelled", "was cancelled; a worker will end this run as failed shortly."),
    ],
)
def test_a_build_that_has_ended_moves_the_run_in_the_next_tick(worker, status, said):
    run = RunFactory(build=bring_to(BuildFactory(), status), gate="build")

    found = gate(run, "build")
    lifecycle.apply_build_results(worker.owner)

    assert (found.holds, found.since) == (True, run.build.finished_at)
    assert found.message == f"Its build {run.build_id} {said}"
    run.refresh_from_db()
    assert run.status == ("queued" if status == "ready" else "failed")
    assert held_by(run) == []


def test_a_ready_build_holds_nothing(worker, build, configuration):
    found = gate(RunFactory(configuration=configuration), "build")

    assert (found.holds, found.holder, found.since) == (False, "", None)
    assert found.message == f"Its build {build.pk} is ready."


# The document


def test_another_run_of_the_document_is_running(worker, document, configuration):
    running = RunFactory(status="running", owner=worker.owner, configuration=configuration, input_document=document)
    second, third = (RunFactory(configuration=configuration, input_document=document) for _ in range(2))

    found = gate(second, "document")

    assert held_by(second) == ["document"]
    assert (found.holder, found.since) == (f"run {running.pk}", running.started_at)
    since = f"{running.started_at:%Y-%m-%d %H:%M:%S}"
    assert found.message == f"Run {running.pk} of the same document is running, claimed by {worker.owner} at {since}."
    assert found.data == {"id": running.pk, "status": "running", "by": worker.owner, "ahead": 0}
    assert gate(third, "document").message.endswith("; 1 run is ahead of it for this document.")


def test_an_older_run_of_the_document_is_ahead_and_says_why_it_waits(worker, document, configuration):
    for _ in range(2):
        RunFactory(status="running", owner=worker.owner)
    older, run = (RunFactory(configuration=configuration, input_document=document) for _ in range(2))

    found = gate(run, "document")

    assert held_by(run) == ["capacity", "document"]
    assert (found.holder, found.since) == (f"run {older.pk}", older.created_at)
    assert found.message.startswith(f"Run {older.pk} of the same document goes first. It has been queued since ")
    assert "It is waiting too: All 2 threads are busy: " in found.message


def test_an_older_run_whose_build_is_not_ready_is_passed_over(worker, document, configuration, build):
    RunFactory(build=BuildFactory(), input_document=document)

    assert held_by(RunFactory(configuration=configuration, input_document=document)) == []


def test_an_older_run_that_nothing_holds_will_be_claimed(worker, document, configuration):
    older, run = (RunFactory(configuration=configuration, input_document=document) for _ in range(2))

    message = gate(run, "document").message

    assert message.endswith(f"run {older.pk} is queued; nothing blocks it: a worker will claim it shortly.")


def test_a_gate_that_was_left_shut_is_told(worker):
    run = RunFactory(gate="document")

    found = gate(run, "document")
    gates.open_forgotten()

    assert (found.holds, found.holder, found.since) == (True, "", None)
    assert found.message == "It is the next run of its document; a worker will let it start shortly."
    assert held_by(run) == []


@pytest.mark.parametrize("gates_of", [("document", "document"), ("", "document")])
def test_behind_gates_that_were_left_shut_the_next_one_is_named(worker, document, configuration, gates_of):
    first, second = (RunFactory(configuration=configuration, input_document=document, gate=gate) for gate in gates_of)

    assert gate(second, "document").holder == f"run {first.pk}"


def test_a_younger_run_whose_gate_is_open_does_not_go_first(worker, document, configuration):
    older, younger = (
        RunFactory(configuration=configuration, input_document=document, gate=gate) for gate in ("document", "")
    )

    assert gate(younger, "document").holder == f"run {older.pk}"
    gates.open_forgotten()
    assert held_by(older) == []


def test_a_younger_run_waits_until_workers_have_heeded_the_build_of_an_older_one(worker, document, configuration):
    older = RunFactory(input_document=document, build=BuildFactory(status="building"))
    younger = RunFactory(configuration=configuration, input_document=document)
    assert held_by(younger) == []

    bring_to(older.build, "ready")

    found = gate(younger, "document")
    assert found.holder == f"run {older.pk}"
    assert "a worker will let this run continue shortly" in found.message


def test_who_asks_is_told_of_others_only_how_many_there_are(worker, configuration, olga):
    mine = RunFactory(configuration=configuration, status="running", owner=worker.owner)
    other = RunFactory(status="running", owner=worker.owner)

    found = next(each for each in explain(RunFactory(configuration=configuration), user=olga).gates if each.holds)

    assert [each["id"] for each in found.data["at_work"]] == [mine.pk]
    assert (found.holder, found.data["at_work_of_others"]) == (f"run {mine.pk}", 1)
    assert f"run {mine.pk} claimed by {worker.owner}" in found.message
    assert ", and 1 in other workspaces; " in found.message
    assert f"run {other.pk}" not in found.message


def test_who_asks_is_not_told_which_run_of_others_has_the_slots(worker, configuration, olga):
    busy = [RunFactory(status="running", owner=worker.owner) for _ in range(2)]

    found = next(each for each in explain(RunFactory(configuration=configuration), user=olga).gates if each.holds)

    assert (found.name, found.holder, found.since, found.data["at_work"]) == ("capacity", "", None, [])
    assert found.message.startswith("All 2 threads are busy: 2 in other workspaces; ")
    assert not any(f"run {each.pk}" in found.message for each in busy)


def test_who_asks_is_not_told_which_build_of_others_is_made_first(worker, configuration, olga):
    other = BuildFactory(status="building", owner=worker.owner)
    waiting = RunFactory(configuration=configuration, build=BuildFactory(configuration=configuration))

    (found,) = (each for each in explain(waiting, user=olga).gates if each.name == "build")

    assert "The only thread is busy: 1 in other workspaces" in found.message
    assert f"build {other.pk}" not in found.message.replace(f"build {waiting.build_id}", "")


# The processing of the document


def test_a_document_that_is_being_processed_says_what_it_waits_for_itself(worker, workspace):
    job = JobFactory(document=DocumentFactory(workspace=workspace))
    run = RunFactory(input_document=job.document)

    found = gate(run, "processing")

    assert held_by(run) == ["processing"]
    assert (found.holder, found.since) == (f"document {job.document_id}", job.created_at)
    assert found.message == (
        f"Its document {job.document_id} is being processed: 1 worker is alive, but none takes stages. To run it"
        " at once, cancel it and submit it again so that it does not wait for that."
    )


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("processed", " is processed; a worker will let this run continue shortly."),
        ("failed", " (a.pdf) could not be processed; a worker will end this run as failed shortly."),
    ],
)
def test_a_document_whose_processing_has_ended_moves_the_run_in_the_next_ticks(worker, workspace, status, said):
    run = RunFactory(input_document=DocumentFactory(workspace=workspace, name="a.pdf"))
    bring_to(run.input_document, status)

    found = gate(run, "processing")
    processing_gates.mend()
    lifecycle.apply_processing_failures(worker.owner)

    assert found.holds
    assert found.message.endswith(f"ocument {run.input_document_id}{said}")
    run.refresh_from_db()
    assert run.status == ("queued" if status == "processed" else "failed")
    assert held_by(run) == []


def test_a_run_that_does_not_wait_says_so(worker, workspace):
    run = RunFactory(input_document=DocumentFactory(workspace=workspace), waits_for_processing=False)

    found = gate(run, "processing")

    document = run.input_document_id
    assert (found.holds, found.message) == (False, f"It does not wait until document {document} is processed.")


def test_a_younger_run_waits_until_an_older_one_is_told_that_the_document_is_processed(worker, workspace):
    document = DocumentFactory(workspace=workspace)
    older, younger = (RunFactory(input_document=document, waits_for_processing=waits) for waits in (True, False))
    assert held_by(younger) == []

    bring_to(document, "processed")

    found = gate(younger, "document")
    assert found.holder == f"run {older.pk}"
    assert "a worker will let this run continue shortly" in found.message
