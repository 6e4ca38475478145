import base64

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api import table
from tests.factories import (
    SUBJECTS,
    ArticleFactory,
    ArtifactFactory,
    ConfigurationFactory,
    DeliveryFactory,
    DocumentChunkFactory,
    DocumentFactory,
    MembershipFactory,
    RunFactory,
    UserFactory,
    WebhookFactory,
    WorkspaceFactory,
)
from work.lifecycle import record

pytestmark = pytest.mark.edge


@pytest.fixture
def runs(workspace, configuration):
    document = DocumentFactory(workspace=workspace)
    others = ConfigurationFactory(workspace=workspace)
    return [
        RunFactory(configuration=each, input_document=document).pk
        for each in [configuration, configuration, others] * 2
    ]


@pytest.fixture
def pages(program):
    def pages(query):
        cursor, found = "", []
        while cursor is not None:
            answer = program.get(f"/api/v1/runs?{query}&cursor={cursor}").json()
            found.append([row["id"] for row in answer["items"]])
            cursor = answer["next"]
        return found

    return pages


def test_pages_follow_each_other_to_the_end(runs, pages):
    *_, fourth, fifth, sixth = runs

    assert pages("limit=4") == [runs[:1:-1], runs[1::-1]]
    assert pages("limit=6") == [runs[::-1]]
    assert pages("limit=3&order=id") == [runs[:3], [fourth, fifth, sixth]]


def test_filters_hold_for_all_pages(runs, pages, configuration):
    assert pages(f"limit=2&order=id&configuration_id={configuration.pk}") == [runs[0:2], runs[3:5]]
    assert pages("limit=2&status=failed") == [[]]


def test_rows_that_come_meanwhile_move_nothing(runs, program, configuration):
    first = program.get("/api/v1/runs?limit=3").json()
    RunFactory(configuration=configuration)

    second = program.get(f"/api/v1/runs?limit=3&cursor={first['next']}").json()

    assert [row["id"] for row in second["items"]] == runs[2::-1]


def test_a_cursor_is_for_its_list_and_its_filters(runs, program, told, configuration):
    cursor = program.get("/api/v1/runs?limit=1").json()["next"]

    for query in ("order=id", "status=queued", f"configuration_id={configuration.pk}"):
        assert told(program.get(f"/api/v1/runs?limit=1&cursor={cursor}&{query}")) == (400, "invalid_cursor")
    # A different page size cannot skip rows, so the cursor stays valid.
    assert told(program.get(f"/api/v1/runs?limit=2&cursor={cursor}")) == (200, None)


def with_events(make):
    def made(workspace):
        row = make(workspace)
        for _ in range(2):
            assert record(SUBJECTS[type(row)], row.pk, "NOTE")
        return row

    return made


def with_two(factory, name, make):
    def made(workspace):
        row = make(workspace)
        factory.create_batch(2, **{name: row})
        return row

    return made


# Functions that create a row with enough children for a second page.
BELOW = {
    "runs/{id}/events": with_events(table.run),
    "runs/{id}/artifacts": with_two(ArtifactFactory, "run", table.in_status(table.run, "running")),
    "builds/{id}/events": with_events(table.build),
    "documents/{id}/events": with_events(table.document),
    "documents/{id}/chunks": with_two(DocumentChunkFactory, "document", table.document),
    "feeds/{id}/events": with_events(table.feed),
    "feeds/{id}/articles": with_two(ArticleFactory, "feed", table.feed),
    "workspaces/{id}/members": with_two(MembershipFactory, "workspace", table.workspace_itself),
    "workspaces/{id}/webhooks": with_two(WebhookFactory, "workspace", table.workspace_itself),
    "webhooks/{id}/deliveries": with_two(DeliveryFactory, "webhook", table.webhook),
}


@pytest.fixture
def root(client, db):
    client.force_login(UserFactory(is_superuser=True))
    return client


@pytest.mark.parametrize("path", BELOW)
def test_a_cursor_is_for_the_list_of_one_and_not_of_another(root, told, workspace, path):
    one, other = (f"/api/v1/{path}".format(id=BELOW[path](each).pk) for each in (workspace, WorkspaceFactory()))

    cursor = root.get(f"{one}?limit=1").json()["next"]

    assert told(root.get(f"{one}?limit=1&cursor={cursor}")) == (200, None)
    assert told(root.get(f"{other}?limit=1&cursor={cursor}")) == (400, "invalid_cursor")


def test_a_cursor_is_for_no_list_that_takes_the_same_filters(root, told, workspace):
    run = BELOW["runs/{id}/artifacts"](workspace)
    cursor = root.get(f"/api/v1/runs/{run.pk}/artifacts?limit=1").json()["next"]

    for path in ("workspaces", "briefs", f"documents/{run.input_document_id}/chunks"):
        assert told(root.get(f"/api/v1/{path}?limit=1&cursor={cursor}")) == (400, "invalid_cursor")


def encoded(text):
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor", ["x", "====", "%F0%9F%98%80", encoded("5"), encoded("5."), encoded("-5.abc"), encoded("٣.abc"), "A" * 200]
)
def test_what_is_no_cursor_is_refused(program, told, cursor):
    assert told(program.get(f"/api/v1/runs?cursor={cursor}")) == (400, "invalid_cursor")


def test_a_cursor_that_is_made_up_leads_to_no_number_that_a_database_does_not_have(runs, program, told):
    cursor = program.get("/api/v1/runs?limit=1").json()["next"]
    filters = base64.urlsafe_b64decode(cursor + "==").decode().partition(".")[2]

    for id in ("9" * 30, "1e5", "0x10", "٣"):
        assert told(program.get(f"/api/v1/runs?limit=1&cursor={encoded(f'{id}.{filters}')}")) == (400, "invalid_cursor")


@pytest.mark.parametrize("limit", ["0", "-1", "201", "1000000000000", "x", "", "1.5", "9" * 5000])
def test_a_page_is_of_so_many_rows_and_not_more(program, told, limit):
    assert told(program.get(f"/api/v1/runs?limit={limit}")) == (400, "invalid_request")


@pytest.mark.parametrize(
    "query",
    [
        "status__regex=.*",
        "workspace__owner__password__startswith=pbkdf2",
        "order=workspace__name",
        "order=-created_at",
        "order=?",
        "_connector=OR",
        "_negated=1",
        "page=100000000000000000000",
        "offset=1",
        "id__in=1",
        "status=sleeping",
        "status=QUEUED",
        "workspace",
    ],
)
def test_what_is_not_a_filter_of_the_list_is_refused(program, told, query):
    assert told(program.get(f"/api/v1/runs?{query}")) == (400, "invalid_request")


def test_any_page_asks_the_database_as_often_as_the_first(runs, program):
    last = f"/api/v1/runs?limit=1&cursor={program.get('/api/v1/runs?limit=5').json()['next']}"
    program.get("/api/v1/runs")

    with CaptureQueriesContext(connection) as first:
        program.get("/api/v1/runs?limit=1")
    with CaptureQueriesContext(connection) as other:
        program.get(last.replace("limit=1", "limit=5"))

    assert len(first) == len(other) <= 4
