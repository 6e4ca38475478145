import pytest
from django.contrib.auth.models import Permission

from runs import queue
from tests.api.conftest import client_with
from tests.factories import MembershipFactory, RunFactory, UserFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def in_charge(workspace, olga):
    """Return a client of Olga with the permission for the shared queue."""
    olga.user_permissions.add(Permission.objects.get(codename="change_queue"))
    return client_with(workspace, olga, "installation")


def test_everybody_sees_how_full_it_is(viewer, workspace, settings):
    settings.ADE_QUEUE_SIZE = 3
    RunFactory(configuration__workspace=workspace)
    RunFactory()

    assert viewer.get("/api/v1/queue").json() == {
        "total": {"queued": 2, "running": 0},
        "own": [{"workspace_id": workspace.pk, "queued": 1, "running": 0}],
        "limit": 3,
        "free": 1,
        "slots": 0,
        "paused": False,
        "paused_at": None,
        "paused_by": None,
        "pause_reason": None,
    }


def test_it_is_paused_and_goes_on(in_charge):
    paused = in_charge.post("/api/v1/queue/pause", {"reason": "a disk is full"}, content_type="application/json")
    again = in_charge.generic("POST", "/api/v1/queue/pause")
    resumed = in_charge.generic("POST", "/api/v1/queue/resume")
    on = in_charge.generic("POST", "/api/v1/queue/resume")

    assert paused.status_code == 200
    found = paused.json()
    assert (found["paused"], found["paused_by"], found["pause_reason"]) == (
        True,
        "olga (token of olga)",
        "a disk is full",
    )
    assert (again.status_code, again.json()["details"]) == (409, {"paused": True})
    assert (resumed.status_code, resumed.json()["paused"], resumed.json()["pause_reason"]) == (200, False, None)
    assert (on.status_code, on.json()["details"]) == (409, {"paused": False})


def test_it_takes_the_permission_and_the_scope(operator, workspace):
    without_scope = client_with(workspace, UserFactory(is_superuser=True), "read", "operate", "admin")
    member = MembershipFactory(workspace=workspace, role="admin").user
    without_permission = client_with(workspace, member, "installation")

    for client in (operator, without_permission, without_scope):
        for verb in ("pause", "resume"):
            assert client.generic("POST", f"/api/v1/queue/{verb}").status_code == 403
    assert queue.current_row() is None
