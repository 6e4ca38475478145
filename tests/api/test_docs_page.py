"""The API documentation page shows everything in the OpenAPI description."""

import pytest

from api.errors import CODES
from config.api import api
from tests.api.described import OPERATIONS

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def page(client):
    return client.get("/api/docs")


def operations_of(page):
    return {each.id: each for part in page.context["parts"] for each in part.operations}


def test_it_has_all_operations_and_all_codes_for_whoever_comes(page):
    assert page.status_code == 200
    described = {each["operationId"] for path in api.get_openapi_schema()["paths"].values() for each in path.values()}
    assert set(operations_of(page)) == described
    assert len(described) == len(OPERATIONS)
    for code in CODES:
        assert f"<code>{code}</code>" in page.content.decode()


def test_an_operation_says_what_it_takes_what_it_needs_and_how_to_call_it(page):
    submit = operations_of(page)["submitRun"]

    assert (submit.method, submit.path, submit.scopes) == ("POST", "/api/v1/configurations/{id}/runs", ["operate"])
    taken = {value.name: value for value in submit.values}
    assert (taken["id"].where, taken["id"].is_needed) == ("path", True)
    assert (taken["document_id"].where, taken["document_id"].is_needed) == ("body", False)
    assert not taken["Idempotency-Key"].is_needed
    assert submit.call.startswith('curl -H "Authorization: Bearer $ADE_TOKEN" -X POST --json ')
    assert [status for status, _ in submit.answers] == ["201"]
    assert {"401", "404", "429"} <= set(submit.refusals)


def test_files_are_sent_as_forms(page):
    upload = operations_of(page)["uploadDocument"]

    assert "-F file=@…" in upload.call
    assert next(value for value in upload.values if value.name == "file").kind == "binary"


def test_kinds_are_in_words(page):
    listed = {value.name: value.kind for value in operations_of(page)["listDocuments"].values}

    assert listed["limit"] == "integer, from 1, to 200"
    assert listed["status"] == "one of processing, processed, failed"
    assert listed["workspace_id"] == "integer, from 1"


def test_whoever_asks_for_nothing_says_nothing(page):
    assert operations_of(page)["showHealth"].scopes == []
