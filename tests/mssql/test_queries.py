import re

import pytest
from django.apps import apps
from django.db import models

from tests.mssql.rules import broken
from work.work_types import all_work_types

pytestmark = [pytest.mark.once, pytest.mark.long]

LOCKED = re.compile(
    r"SELECT TOP 1 .* FROM \[(\w+)\] WITH \(ROWLOCK, UPDLOCK, READPAST, READCOMMITTEDLOCK\) .* ORDER BY "
)
MOVE = re.compile(r"UPDATE \[(\w+)\] SET .*\[status\] = .* WHERE \(.*\[id\] = %s.*\[status\] = (?:%s|'\w+').*\)")
# A condition on a column that the condition of an index names too.
BOUND = re.compile(
    r" WHERE .*\[(?:runs|builds|stages|document_processing_jobs|job_runs|webhook_deliveries)\]"
    r"\.\[(?:status|gate|awaited)\] (?:= %s|IN \(%s)"
)


def tables_that(expression, queries):
    return {found.group(1) for sql in queries["compiled"] if (found := expression.search(sql))}


# The first test waits for the recorded test session; the others reuse its result.
@pytest.mark.long(seconds=150)
def test_nothing_is_refused(queries):
    assert queries["refused"] == {}


def test_a_parser_of_its_own_understands_every_statement_and_none_breaks_a_rule(queries):
    assert {sql: (found, test) for sql, test in queries["compiled"].items() if (found := broken(sql))} == {}


def test_no_condition_of_an_index_meets_a_parameter(queries):
    assert [sql for sql in queries["compiled"] if BOUND.search(sql)] == []


def test_the_renewal_of_leases_and_recovery_wait_less_for_a_locked_row(queries):
    assert {"SET LOCK_TIMEOUT 1000", "SET LOCK_TIMEOUT 5000"} <= set(queries["compiled"])


def test_claims_lock_what_they_choose_and_pass_over_what_others_have_locked(queries):
    claimed = {kind.states.model for kind in all_work_types() if hasattr(kind.states.model.objects.all(), "claimable")}

    assert {model._meta.db_table for model in claimed} <= tables_that(LOCKED, queries)
    assert {"runs", "builds", "stages", "document_processing_jobs"} <= tables_that(LOCKED, queries)


def test_every_kind_is_moved_by_an_update_that_asks_for_its_id_and_status(queries):
    moved = {kind.states.model._meta.db_table for kind in all_work_types() if kind.states.table}

    assert moved <= tables_that(MOVE, queries)


def test_what_a_person_may_see_is_asked_of_every_table_that_has_an_answer(queries):
    answering = {
        model._meta.db_table
        for model in apps.get_models()
        if isinstance(getattr(model, "objects", None), models.Manager) and hasattr(model.objects.all(), "for_user")
    }
    asked = {
        found.group(1)
        for sql in queries["compiled"]
        if "[memberships]" in sql and (found := re.search(r"FROM \[(\w+)\]", sql))
    }

    assert answering <= asked


def test_workers_renew_their_leases_and_recovery_finds_those_that_have_expired(queries):
    text = "\n".join(queries["compiled"])

    assert re.search(r"UPDATE \[\w+\] SET \[lease_expires_at\] = %s WHERE .*\[claim_token\] = %s", text)
    assert re.search(r"SELECT TOP \d+ .* FROM \[runs\] WHERE .*\[lease_expires_at\] <= %s.* ORDER BY", text)
