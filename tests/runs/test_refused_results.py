"""The database refuses what a run found: the run fails at once, and says what the database said."""

from dataclasses import replace

import pytest
from django.db import IntegrityError
from structlog.testing import capture_logs

from builds import handler as builds
from documents import stages
from runs.engine_session import Results
from runs.models import RunField
from runs.work_types import RUN
from schedules import handler as jobs
from tests.builds.making import slot
from tests.factories import BuildFactory, JobRunFactory, RunFactory, StageFactory, claim_of, told
from work.claims import ResultRefused

# Not in a transaction of the test: some constraints are checked at the commit.
pytestmark = pytest.mark.django_db(transaction=True)

FIELD = {"position": 0, "name": "total", "value": 12.5, "confidence": 0.9}


def ended(*fields, fail=RUN.handler.fail):
    """Return a run whose engine reported these fields, and its logs."""
    run = RunFactory(build=BuildFactory(status="ready"))
    handler = replace(RUN.handler, do=lambda claim: Results(list(fields), [], {"fields": 1}), fail=fail)
    with capture_logs() as logs:
        assert slot(replace(RUN, handler=handler)).run_once()
    run.refresh_from_db()
    return run, [each["event"] for each in logs]


@pytest.mark.parametrize(
    ("factory", "fail"),
    [(BuildFactory, builds.fail), (StageFactory, stages.fail), (JobRunFactory, jobs.fail)],
    ids=["build", "stage", "job run"],
)
def test_other_work_fails_in_the_words_of_the_database_too(factory, fail):
    row = factory(status=factory._meta.model.CLAIMED)

    fail(claim_of(row), ResultRefused(IntegrityError("some constraint failed")))

    row.refresh_from_db()
    assert row.error_message == "The database refused the result: some constraint failed"


@pytest.mark.parametrize("value", ["a text", "", 12, -0.5, True, None, [1, "two"], {"three": [None]}], ids=repr)
def test_a_run_may_report_any_value(value):
    run, _ = ended({**FIELD, "value": value})

    assert run.status == "succeeded"
    assert RunField.objects.get(run=run).value == value


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ([{**FIELD, "confidence": 2.0}], "run_field_confidence_is_a_share"),
        ([FIELD, FIELD], "position"),
        pytest.param([{**FIELD, "name": "n" * 101}], "too long", marks=pytest.mark.only_on("postgresql")),
    ],
    ids=["check", "unique", "length"],
)
def test_a_result_that_the_database_refuses_fails_the_run_at_once(fields, word):
    run, logged = ended(*fields)

    assert (run.status, run.failure_type) == ("failed", "ENGINE_FAILED")
    assert run.error_message.startswith("The database refused the result: ")
    assert word in run.error_message
    assert "\n" not in run.error_message
    assert told(run)[-1] == "RUN_FAILED"
    assert "slot.result_refused" in logged
    assert not RunField.objects.filter(run=run).exists()


def test_a_failure_that_the_database_refuses_too_is_left_to_recovery():
    asked = []

    def fail(claim, error):
        asked.append(error)
        return RunField.objects.bulk_create([RunField(run_id=claim.id, **{**FIELD, "confidence": 3.0})])

    run, logged = ended({**FIELD, "confidence": 2.0}, fail=fail)

    assert run.status == "running"
    assert [type(error) for error in asked] == [ResultRefused]
    assert logged.count("slot.result_refused") == 2
