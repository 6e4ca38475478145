import pytest

from tests.api.conftest import client_with
from tests.factories import ConfigurationFactory, DocumentFactory, MembershipFactory, UserFactory, write

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def administrator(workspace):
    ada = MembershipFactory(workspace=workspace, user=UserFactory(username="ada"), role="admin").user
    return client_with(workspace, ada, "read", "operate", "admin")


@pytest.fixture
def old(workspace):
    document = DocumentFactory(workspace=workspace)
    return write(document, status="processed", created_at="2024-01-01T00:00Z")


def patch(client, workspace, **body):
    return client.patch(f"/api/v1/workspaces/{workspace.pk}", body, content_type="application/json")


def test_a_workspace_tells_what_is_in_it_and_who_one_is(viewer, operator, administrator, workspace):
    DocumentFactory(workspace=workspace)
    ConfigurationFactory(workspace=workspace)
    ConfigurationFactory()

    found = [client.get(f"/api/v1/workspaces/{workspace.pk}").json() for client in (viewer, operator, administrator)]

    assert [row["role"] for row in found] == ["viewer", "operator", "admin"]
    assert {(row["name"], row["documents"], row["configurations"]) for row in found} == {("Aster", 1, 1)}


def test_a_token_is_no_more_than_its_scopes(workspace, administrator, olga):
    only_reads = client_with(workspace, olga, "read")

    assert only_reads.get("/api/v1/workspaces").json()["items"][0]["role"] == "viewer"


def test_members_are_shown_to_those_who_administer(viewer, operator, administrator, workspace):
    path = f"/api/v1/workspaces/{workspace.pk}/members"

    answer = administrator.get(path, {"order": "id"})

    assert answer.json()["items"] == [
        {"user": "ravi", "role": "viewer"},
        {"user": "olga", "role": "operator"},
        {"user": "ada", "role": "admin"},
    ]
    assert [client.get(path).status_code for client in (viewer, operator)] == [403, 403]


def test_others_learn_nothing(administrator):
    other = MembershipFactory().workspace

    paths = [f"/api/v1/workspaces/{other.pk}{more}" for more in ("", "/members", "/retention")]

    assert [administrator.get(path).status_code for path in paths] == [404] * 3
    assert patch(administrator, other, document_retention_days=1).status_code == 404


def test_admins_say_how_long_documents_are_kept(administrator, workspace):
    kept = patch(administrator, workspace, document_retention_days=30)
    for_ever = patch(administrator, workspace, document_retention_days=None)

    assert [answer.json()["document_retention_days"] for answer in (kept, for_ever)] == [30, None]
    workspace.refresh_from_db()
    assert workspace.document_retention_days is None


def test_nothing_is_purged_by_accident(administrator, workspace, old):
    refused = patch(administrator, workspace, document_retention_days=30)
    rehearsed = administrator.get(f"/api/v1/workspaces/{workspace.pk}/retention", {"days": 30}).json()
    meant = patch(administrator, workspace, document_retention_days=30, purge=True)

    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert refused.json()["details"] == {"documents": 1, "size_bytes": 1000}
    assert (rehearsed["documents"], rehearsed["sample"][0]["id"]) == (1, old.pk)
    assert (meant.status_code, meant.json()["document_retention_days"]) == (200, 30)


@pytest.mark.parametrize("days", [0, -1, 36_501, 10**18, "30", 1.5, True])
def test_what_is_no_number_of_days_is_refused(administrator, workspace, days):
    assert patch(administrator, workspace, document_retention_days=days).status_code == 400


def test_only_admins_set_it(operator, workspace, client, olga):
    client.force_login(olga)

    assert [patch(who, workspace, document_retention_days=1).status_code for who in (operator, client)] == [403, 403]
    assert patch(operator, workspace).status_code == 403
