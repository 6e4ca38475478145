import random
from datetime import UTC, datetime, timedelta

import pytest

from schedules import handler, history, scheduler
from schedules.models import DueSlot, JobRun, ScheduledJob, SchedulerLease
from schedules.why import explain, explain_due
from tests.factories import W1, DueSlotFactory, JobRunFactory
from tests.schedules.declared import EACH, FREQUENT, PATIENT
from tests.why import crew
from work import boots, clock
from work.models import Worker

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
QUARTER = timedelta(minutes=15)

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(jobs):
    jobs(FREQUENT, EACH)
    return ScheduledJob.objects.get(name="frequent")


@pytest.fixture
def worker(db):
    return boots.register("w1", "boot1", {"job_run": 1})


def held_by(explanation):
    return [gate.name for gate in explanation.holding]


def gate(explanation, name):
    return next(gate for gate in explanation.gates if gate.name == name)


def due(**values):
    return DueSlotFactory(job_name="frequent", scheduled_for=NOON, **values)


def test_nothing_holds_what_is_to_be_claimed(row, worker):
    explanation = explain_due(due())

    assert held_by(explanation) == []
    assert "nothing blocks it: a worker will claim it shortly." in explanation.message


def test_nobody_is_there_to_run_it(row):
    boots.register("w1", "boot1", {"run": 2})

    explanation = explain_due(due())

    assert held_by(explanation) == ["worker"]
    assert gate(explanation, "worker").message == "1 worker is alive, but none takes job runs."


def test_the_lane_is_busy(row, worker):
    JobRunFactory(job_name="each", owner=worker.owner)

    explanation = explain_due(due())

    assert held_by(explanation) == ["capacity"]
    assert "The only thread is busy: job_run" in gate(explanation, "capacity").message


def test_other_jobs_come_first(row, worker):
    for n in range(3):
        DueSlotFactory(job_name="each", scheduled_for=NOON + n * QUARTER)
    slot = due()

    explanation = explain_due(slot)

    assert held_by(explanation) == ["capacity"]
    # Only one slot of each job counts as ahead.
    assert gate(explanation, "capacity").data["ahead"] == 1


@pytest.mark.parametrize("why", ["code", "late", "pause"])
def test_other_jobs_that_will_not_run_are_not_ahead(row, worker, settings, why):
    DueSlotFactory(job_name="each", scheduled_for=NOON, expires_at=NOON if why == "late" else None)
    if why == "pause":
        history.pause(ScheduledJob.objects.get(name="each"), actor="olga")
    if why == "code":
        settings.JOBS = [FREQUENT]

    explanation = explain_due(due())

    assert held_by(explanation) == []
    assert handler.claim(worker.owner).values["job_name"] == "frequent"


def test_an_earlier_slot_of_the_job_is_running(row, worker):
    run = JobRunFactory(job_name="frequent", scheduled_for=NOON - QUARTER, owner="w9")
    slot = due()

    found = gate(explain_due(slot), "job")

    assert (found.holds, found.holder, found.since) == (True, f"job_run {run.pk}", run.started_at)
    assert found.message.startswith(
        f"Its slot for 2026-03-01 11:45:00 is running as job run {run.pk}, claimed by w9 at "
    )


def test_an_earlier_slot_of_the_job_goes_first(row, worker):
    DueSlotFactory(job_name="frequent", scheduled_for=NOON - QUARTER)
    slot = due()

    assert gate(explain_due(slot), "job").message == "Its slot for 2026-03-01 11:45:00 goes first."


def test_its_job_is_paused(row, worker):
    history.pause(row, actor="olga")

    found = gate(explain_due(due()), "pause")

    assert (found.holds, found.holder) == (True, "olga")
    assert found.message.endswith("the slot will be skipped.")


def test_what_a_person_asks_for_is_not_held_by_a_pause(row, worker):
    history.pause(row, actor="olga")

    assert held_by(explain_due(due(asked_by="ravi"))) == []


def test_the_code_has_no_such_job(row, worker, settings):
    slot = due()
    settings.JOBS = [EACH]

    assert held_by(explain_due(slot)) == ["code"]


def test_it_is_too_late(row, worker):
    found = gate(explain_due(due(expires_at=NOON)), "schedule")

    assert found.holds
    assert found.message.endswith("will be dropped, because it did not start by 2026-03-01 12:00:00.")


def test_of_a_job_its_first_due_slot_is_explained(row, worker):
    first = due()
    DueSlotFactory(job_name="frequent", scheduled_for=NOON + QUARTER)

    explanation = explain(row)

    assert (explanation.kind, explanation.id) == ("due_slot", first.pk)


def test_nobody_looks_at_the_schedules_for_no_worker_is_alive(row):
    found = gate(explain(row), "schedule")

    assert (found.holds, found.message) == (True, "No worker runs the scheduler: no worker is alive.")


def test_nobody_looks_at_the_schedules_for_no_worker_is_to(row, worker):
    SchedulerLease.objects.create(pk=1, owner="w9", expires_at=NOON)

    found = gate(explain(row), "schedule")

    said = "No worker has run the scheduler since 2026-03-01 12:00:00: no live worker has ADE_SCHEDULES=true."
    assert (found.holds, found.message, found.since) == (True, said, NOON)


def test_somebody_looks_at_the_schedules(row, worker):
    scheduler.lease.take(worker.owner)

    explanation = explain(row)

    assert held_by(explanation) == []
    assert gate(explanation, "schedule").holder == worker.owner
    assert "nothing blocks it: it will start then." in explanation.message


def test_a_slot_that_is_running_does_not_hold_what_is_not_due_yet(row, worker):
    scheduler.lease.take(worker.owner)
    JobRunFactory(job_name="frequent", owner="w9")

    explanation = explain(row)

    assert held_by(explanation) == []
    assert "is running as job run" in gate(explanation, "job").message


@pytest.mark.parametrize("seed", range(4))
def test_no_gate_holds_exactly_what_a_claim_takes(jobs, settings, seed):
    """The explanation and the claim use the same conditions, so they agree."""
    jobs(FREQUENT, EACH, PATIENT)
    chance, seen = random.Random(seed), set()
    for _ in range(40):
        settings.JOBS = chance.choice([[FREQUENT, EACH, PATIENT], [FREQUENT, EACH]])
        shuffle(chance)
        free = {(due.job_name, due.scheduled_for) for due in DueSlot.objects.all() if not held_but_for_workers(due)}
        taken = set()

        while claim := handler.claim(W1):
            taken.add((claim.values["job_name"], claim.values["scheduled_for"]))

        assert taken == free
        seen.add(len(taken))
    assert len(seen) > 2


@pytest.mark.parametrize("seed", range(4))
def test_no_gate_holds_exactly_what_free_slots_take(jobs, settings, seed):
    jobs(FREQUENT, EACH, PATIENT)
    chance, seen = random.Random(seed), set()
    for _ in range(40):
        settings.JOBS = chance.choice([[FREQUENT, EACH, PATIENT], [FREQUENT, EACH]])
        shuffle(chance)
        for worker in Worker.objects.alive():
            crew.sign_off(worker)
        for _ in range(chance.randrange(3)):
            crew.sign_on(job_run=chance.choice([0, 1, 1, 2]))
        told = {(due.job_name, due.scheduled_for): held_by(explain_due(due)) for due in DueSlot.objects.all()}

        claims = crew.claims("job_run", chance)

        taken = {(claim.values["job_name"], claim.values["scheduled_for"]) for claim in claims}
        assert taken == {slot for slot, held in told.items() if not held}, told
        seen |= {name for held in told.values() for name in held}
    assert seen == {"worker", "capacity", "job", "pause", "schedule", "code"}


def held_but_for_workers(slot):
    return [gate for gate in explain_due(slot).holding if gate.name not in ("worker", "capacity")]


def shuffle(chance):
    for model in (DueSlot, JobRun):
        model._base_manager.all().delete()
    for name in ("frequent", "each", "patient"):
        row = ScheduledJob.objects.get(name=name)
        (history.pause if chance.random() < 0.3 else history.resume)(row, actor="olga")
        if chance.random() < 0.3:
            JobRunFactory(job_name=name, scheduled_for=NOON)
        for slot in range(chance.randrange(3)):
            asked_by = chance.choice(["", "", "ravi"])
            until = chance.choice([None, None, NOON, clock.now() + QUARTER])
            moment = NOON + (slot + 1) * QUARTER
            DueSlotFactory(job_name=name, scheduled_for=moment, asked_by=asked_by, expires_at=until)
