"""A chart counts only visible runs, up to a limit, and through an index."""

import re
from datetime import timedelta

import pytest
from django.db import connection

from runs import counting
from tests.factories import DocumentFactory, RunFactory, UserFactory, copies_of, force_status, write
from work import clock
from work.sql import statements

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


@pytest.fixture
def run_of(configuration, build, workspace):
    def run_of(status="queued", ago=MINUTE):
        run = RunFactory(
            configuration=configuration,
            build=build,
            input_document=DocumentFactory(workspace=workspace, status="processed"),
        )
        at = clock.now() - ago
        if status == "queued":
            return write(run, created_at=at)
        return force_status(run, status, created_at=at, started_at=at, finished_at=at)

    return run_of


def test_a_chart_counts_only_what_one_may_see_and_up_to_a_bound(olga, run_of, workspace):
    copies_of(run_of("succeeded", 5 * 60 * MINUTE), 9)
    write(RunFactory(), created_at=clock.now() - MINUTE)
    copies_of(run_of("failed", 3 * MINUTE), 9)
    write(run_of(), created_at=clock.now() - timedelta(days=2))
    root, since = UserFactory(is_superuser=True), clock.now() - timedelta(days=1)

    def counted(user, most, theirs):
        found = counting.by_minute(user, since, most, theirs)
        return {outcome: sum(each.runs for each in found if each.outcome == outcome) for _, outcome, _ in found}

    assert counted(olga, 100, [workspace.pk]) == {"succeeded": 10, "failed": 10}
    assert counted(olga, 14, [workspace.pk]) == {"succeeded": 4, "failed": 10}
    assert counted(root, 100, None) == {"succeeded": 10, "failed": 10, "queued": 1}
    assert counted(root, 13, None) == {"succeeded": 2, "failed": 10, "queued": 1}


def test_a_chart_of_any_number_of_runs_is_fast(olga, workspace, run_of, monkeypatch):
    copies_of(run_of("succeeded"), 99)
    asked = []
    monkeypatch.setattr(statements, "rows", lambda *of: asked.append(of) or [])
    counting.by_minute(olga, clock.now() - timedelta(days=1), 50, [workspace.pk])
    counting.by_minute(UserFactory(is_superuser=True), clock.now() - timedelta(days=1), 50, None)
    is_sqlite, plans = connection.vendor == "sqlite", []
    with connection.cursor() as cursor:
        if not is_sqlite:
            # Otherwise the planner scans a table with so few rows.
            cursor.execute("SET LOCAL enable_seqscan = off")
        for sql, params in asked:
            cursor.execute(f"EXPLAIN {'QUERY PLAN ' if is_sqlite else ''}{sql}", params)
            plans.append("\n".join(str(row[-1]) for row in cursor.fetchall()))

    for plan, index in zip(plans, ("runs_listed_by_workspace", "runs_pkey"), strict=True):
        if is_sqlite:
            assert "SEARCH runs USING INTEGER PRIMARY KEY (rowid>?)" in plan
            assert "SCAN runs" not in plan
        else:
            assert re.search(rf"using {index} on runs\b", plan)
            assert "Seq Scan on runs" not in plan
