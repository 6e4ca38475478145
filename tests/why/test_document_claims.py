"""Explanations of waiting documents agree with what the orchestrator begins and what slots claim."""

import random
from datetime import timedelta

import pytest

from documents import lifecycle, orchestrator
from documents.models import Document, DocumentProcessingJob, Stage
from documents.why import explain
from tests.factories import W1, DocumentFactory, JobFactory, claim_of, write
from tests.seeds import many_seeds
from tests.why import crew
from work import clock
from work.models import Worker

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

PAGES = [None, 1, 30, 200]
FAILURES = ["EXTRACTION_FAILED", "EXTRACTION_FAILED", lifecycle.REFUSED]
STEPS = 12


def explained():
    """Return, for each document in processing, its job and its explanation."""
    jobs = DocumentProcessingJob.objects.live().select_related("document").order_by("pk")
    return {job.document_id: (job, explain(job.document)) for job in jobs}


def held_by(explanation):
    return {gate.name for gate in explanation.holding}


def gate(explanation, name):
    return next((gate for gate in explanation.gates if gate.name == name), None)


def go_on(chance, workspace):
    add_documents(chance, workspace)
    let_stages_end(chance)
    for job in DocumentProcessingJob.objects.filter(status="PENDING", attempts__gt=0).order_by("pk"):
        if chance.random() < 0.5:
            write(job, next_attempt_at=clock.now())
    worker = Worker.objects.alive().order_by("pk").first()
    if worker and chance.random() < 0.3:
        chance.choice([crew.sign_off, crew.fall_silent])(worker)
    elif not worker or chance.random() < 0.3:
        crew.sign_on(stage=chance.randrange(3), run=1)


def add_documents(chance, workspace):
    for _ in range(chance.randrange(3)):
        document = write(DocumentFactory(workspace=workspace), pages=chance.choice(PAGES))
        later = timedelta(seconds=chance.choice([-5, -5, -1, 3600]))
        write(JobFactory(document=document), priority=chance.choice([0, 0, 1]), next_attempt_at=clock.now() + later)


def let_stages_end(chance):
    for stage in Stage.objects.filter(status="RUNNING").order_by("pk"):
        if chance.random() < 0.15:
            lifecycle.fail_stage(claim_of(stage), chance.choice(FAILURES), "no text")
        elif chance.random() < 0.7:
            lifecycle.finish_stage(claim_of(stage))


def begin_and_compare():
    before = explained()
    orchestrator.orchestrate(W1)
    waiting = {id: told for id, (job, told) in before.items() if job.status == "PENDING"}
    begun = {
        id for id in waiting if DocumentProcessingJob.objects.exclude(status="PENDING").filter(document=id).exists()
    }
    for id, told in waiting.items():
        turn, held = gate(told, "turn"), held_by(told) - {"worker"}
        if id not in begun:
            assert held, told.message
        elif held:
            # All jobs ahead of it were begun first, in the same tick.
            assert (held, turn.data["ahead"] > 0, turn.data["ready"] < turn.data["most_ready"]) == (
                {"turn"},
                True,
                True,
            )
            assert turn.data["ahead"] <= len(begun) - 1
    return [held_by(told) for told in waiting.values()]


def claim_and_compare(chance):
    before = explained()
    claims = crew.claims("stage", chance)
    taken = set(Document.objects.filter(jobs__stages__in=[claim.id for claim in claims]).values_list("pk", flat=True))
    for id, (_, told) in before.items():
        stages = gate(told, "stages")
        if stages and stages.data["ready"] and not stages.data["running"]:
            assert (id in taken) == (not told.holding), (told.message, stages.message)
    return [held_by(told) for _, told in before.values()]


def live(seed, workspace):
    """Return which gates blocked something."""
    chance, seen = random.Random(seed), set()
    for _ in range(STEPS):
        go_on(chance, workspace)
        for held in begin_and_compare() + claim_and_compare(chance):
            seen |= held
    return seen


def test_what_nothing_holds_is_begun_and_claimed(workspace):
    seen = set().union(*(live(seed, workspace) for seed in range(2)))

    assert seen == {"worker", "time", "turn", "stages"}


def test_what_waits_for_other_stages_says_so(settings, workspace):
    settings.ADE_STAGE_CONCURRENCY = 1
    for _ in range(2):
        JobFactory()
    orchestrator.orchestrate(W1)
    crew.sign_on(stage=1)
    job = JobFactory()

    found = gate(explain(job.document), "turn")

    assert (found.holds, found.data) == (True, {"ahead": 0, "ready": 2, "most_ready": 2})
    assert found.message == (
        "No document processing job is ahead of it."
        " 2 stages wait for a worker thread; the next job begins when fewer than 2 wait."
    )


@pytest.mark.parametrize("seed", many_seeds(8, of=40))
def test_what_nothing_holds_is_begun_and_claimed_in_many_states(workspace, seed):
    live(seed, workspace)
