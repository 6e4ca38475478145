"""The explanation and the claim use the same conditions, and explaining stays cheap in a long queue."""

import random
from datetime import timedelta
from itertools import combinations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from builds.models import Build
from documents.models import Document
from runs import queue
from runs.models import MUST_HOLD, Run, in_the_way
from runs.why import explain
from tests.factories import BuildFactory, ConfigurationFactory, DocumentFactory, RunFactory, force_status
from work import boots, clock

pytestmark = pytest.mark.django_db

WAYS = {"running", "older", "older_of_same_moment", "older_of_ended_build", "older_of_processed_document"}
REASONS = ("build", "processing", "document")
SITUATIONS = {None, *(each for number in range(4) for each in combinations(REASONS, number))}
STATUSES = ["queued"] * 6 + ["running", "succeeded", "failed", "cancelled"]


def shuffle(chance, runs, documents, environments):
    """Put all rows into a random state, even one that no verb would produce."""
    for document in documents:
        force_status(document, chance.choice([*Document.Status.values, "processed"]))
    for build in environments:
        force_status(build, chance.choice([*Build.Status.values, "ready", "ready"]))
    now, busy = clock.now(), set()
    for run in runs:
        force_status(run, "queued")
    for run in runs:
        document, status = chance.choice(documents), chance.choice(STATUSES)
        if status == "running":
            status = "queued" if document in busy else "running"
            busy.add(document)
        columns = {
            "input_document": document,
            "build": chance.choice(environments),
            "gate": chance.choice(["", "", "build", "document", "process", "failed"]),
            "waits_for_processing": chance.random() < 0.7,
            "created_at": now - timedelta(seconds=chance.randrange(3)),
        }
        force_status(run, status, owner=chance.choice(["w1", "w2"]), **columns)


@pytest.mark.parametrize("seed", range(4))
def test_no_gate_holds_exactly_what_a_claim_would_take(workspace, seed):
    configurations = [ConfigurationFactory(workspace=workspace) for _ in range(3)]
    documents = [DocumentFactory(workspace=workspace, status="processed") for _ in range(5)]
    environments = [BuildFactory(configuration=configuration) for configuration in configurations]
    runs = [
        RunFactory(configuration=configurations[0], build=environments[0], input_document=documents[0])
        for _ in range(7)
    ]
    chance, seen = random.Random(seed), set()

    for _ in range(40):
        shuffle(chance, runs, documents, environments)
        (queue.pause if chance.random() < 0.3 else queue.resume)(actor="olga")
        claimable = set(Run.objects.claimable(clock.now()).values_list("pk", flat=True))
        for run in runs:
            explanation = explain(run)
            held = [gate.name for gate in explanation.holding]
            holding = tuple(name for name in ("paused", *REASONS) if name in held)
            assert (explanation.status == "queued" and not holding) == (run.pk in claimable), explanation
            assert bool(explanation.gates) == (run.status == "queued")
            seen.add(holding if explanation.gates else None)

    assert {each for each in seen if "paused" not in (each or ())} == SITUATIONS
    assert {each[1:] for each in seen if "paused" in (each or ())} >= {(), ("build", "document")}


def test_every_part_of_the_claim_has_a_gate_that_tells_it():
    """A new condition of the claim must be added to `runs/why.py` and to the random states above."""
    assert {*MUST_HOLD, *in_the_way()} == {
        *("queue_goes_on", "build_is_ready", "is_open", "document_is_processed"),
        *WAYS,
    }


def queries_of(run):
    explain(run)
    with CaptureQueriesContext(connection) as queries:
        explain(run)
    return [query["sql"] for query in queries]


@pytest.fixture
def busy(document, configuration, build):
    """Create one row for each reason to wait; return a function that adds more of each."""
    worker = boots.register("w1", "boot1", {"run": 2, "build": 1})
    for _ in range(2):
        RunFactory(status="running", owner=worker.owner)

    def more(number):
        for _ in range(number):
            RunFactory(configuration=configuration)
            RunFactory(configuration=configuration, input_document=document)
            RunFactory(build=BuildFactory(), input_document=document)

    more(1)
    return more


def test_it_asks_as_often_whatever_waits(busy):
    run = RunFactory(build=BuildFactory(), input_document=Run.objects.filter(gate="build").get().input_document)
    few = queries_of(run)
    busy(4)
    younger = RunFactory(build=BuildFactory(), input_document=run.input_document)

    assert [gate.name for gate in explain(younger).holding] == ["capacity", "build", "document"]
    assert len(queries_of(younger)) == len(few) <= 20


@pytest.mark.only_on("sqlite")
def test_every_question_has_an_index(busy):
    run = RunFactory(build=BuildFactory(), input_document=Run.objects.filter(gate="build").get().input_document)

    for sql in queries_of(run):
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql.replace('%', '%%')}", [])
            plan = [row[3] for row in cursor.fetchall()]
        assert not [
            step for step in plan if step.startswith("SCAN") and "USING" not in step and "workers" not in step
        ], sql
