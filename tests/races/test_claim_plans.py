import pytest
from django.db import connection, transaction

from runs.lifecycle import RUN_STATES
from runs.models import Run
from tests.factories import W1, BuildFactory, ConfigurationFactory, DocumentFactory, RunFactory, bring_to, write
from tests.races.test_claims import every_kind
from work import clock, lifecycle
from work.sql import compiled, statements

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.only_on("postgresql")
@every_kind
def test_the_plan_of_a_claim_locks_one_row_once(factory, status, claim, monkeypatch):
    for _ in range(12):
        factory(status=status)
    claims, rows = [], statements.rows

    def keep(sql, params):
        if "SKIP LOCKED" in sql:
            claims.append((sql, params))
        return rows(sql, params)

    monkeypatch.setattr(statements, "rows", keep)
    claim(W1)
    ((sql, params),) = claims
    with transaction.atomic(), connection.cursor() as cursor:
        # Refresh the planner's statistics, so that the plan does not depend on chance.
        for table in ("runs", "builds", "stages", "document_processing_jobs", "errands"):
            cursor.execute(f"ANALYZE {table}")
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params)
        ((plan,),) = cursor.fetchone()
        transaction.set_rollback(True)

    nodes = list(nodes_of(plan["Plan"]))
    locks = [node for node in nodes if node["Node Type"] == "LockRows"]
    updates = [node for node in nodes if node["Node Type"] == "ModifyTable" and node["Operation"] == "Update"]
    assert [(node["Actual Loops"], node["Actual Rows"]) for node in locks + updates] == [(1, 1), (1, 1)]


@pytest.mark.only_on("postgresql")
def test_what_a_claim_looks_at_does_not_grow_with_those_that_wait():
    """The waiting runs wait for their builds or for this document, right after another build has ended."""
    older = RunFactory(build=BuildFactory())
    ready = ConfigurationFactory(workspace=older.workspace)
    run = RunFactory(workspace=older.workspace, configuration=ready, input_document=older.input_document)
    BuildFactory(status="failed")

    few = looked_at((older, "build"), (run, "document"), more=20)
    assert 0 < looked_at((older, "build"), (run, "document"), more=5000) <= few + 20


@pytest.mark.only_on("postgresql")
@pytest.mark.parametrize("status", ["processing", "processed", "failed"])
def test_what_a_claim_looks_at_does_not_grow_with_those_that_wait_for_documents(status):
    """Runs wait until this document and another one are processed, older ones and some of the same moment. The run that
    does not wait may be claimed, or waits until `processing_gates.mend` has let the older ones take turns.
    """
    older = RunFactory(input_document=DocumentFactory())
    here = RunFactory(input_document=DocumentFactory())
    common = {"configuration": here.configuration, "input_document": here.input_document}
    run, same_moment = RunFactory(**common, waits_for_processing=False), RunFactory(**common)
    write(same_moment, created_at=run.created_at)
    if status != "processing":
        bring_to(here.input_document, status)
    assert [each.gate for each in (older, here, run, same_moment)] == ["process", "process", "", "process"]

    waiting = [(older, "process"), (here, "process"), (same_moment, "process"), (run, "document")]
    few = looked_at(*waiting, more=20)
    assert 0 < looked_at(*waiting, more=5000) <= few + 20


def looked_at(*waiting, more):
    """Return how many rows the next claim reads with this many more runs like each of these, behind this gate."""
    for each, gate in waiting:
        same = ("configuration_id", "build_id", "input_document_id", "created_at")
        constant = {name: getattr(each, name) for name in same} | {"gate": gate}
        lifecycle.create(RUN_STATES, constant, varying={"workspace_id": [each.workspace_id] * more})
    sql, params = compiled.sql_and_params(Run.objects.claimable, clock.now())
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql} LIMIT 1", params)
        ((plan,),) = cursor.fetchone()
    return sum(rows_of(node) for node in nodes_of(plan["Plan"]))


def rows_of(node):
    """Return how many rows one node of a plan has read."""
    removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck", "Rows Removed by Join Filter")
    return node["Actual Loops"] * (node["Actual Rows"] + sum(node.get(name, 0) for name in removed))


def nodes_of(node):
    yield node
    for child in node.get("Plans", []):
        yield from nodes_of(child)
