import pytest
from django.db import connection, transaction

from tests.factories import W1
from tests.races.test_claims import every_kind
from work import statements

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
        # Whatever the tables look like to the planner.
        for table in ("runs", "builds", "stages", "document_processing_jobs", "errands"):
            cursor.execute(f"ANALYZE {table}")
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params)
        ((plan,),) = cursor.fetchone()
        transaction.set_rollback(True)

    nodes = list(nodes_of(plan["Plan"]))
    locks = [node for node in nodes if node["Node Type"] == "LockRows"]
    updates = [node for node in nodes if node["Node Type"] == "ModifyTable" and node["Operation"] == "Update"]
    assert [(node["Actual Loops"], node["Actual Rows"]) for node in locks + updates] == [(1, 1), (1, 1)]


def nodes_of(node):
    yield node
    for child in node.get("Plans", []):
        yield from nodes_of(child)
