import pytest

from tests.factories import UserFactory
from workspaces.models import Workspace

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def test_create(manage):
    ended = manage("workspace", "create", "Borage", "--json")

    assert ended.code == 0
    assert Workspace.objects.get(pk=ended.json["id"]).name == "Borage"


def test_a_name_that_is_taken_is_refused(manage, workspace):
    ended = manage("workspace", "create", "Aster", "--json")

    assert (ended.code, ended.error["code"]) == (1, "workspace_exists")


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "new\nline", "\x1b[31m"])
def test_what_is_no_name_is_refused(manage, name):
    assert manage("workspace", "create", name).code == 2
    assert not Workspace.objects.exists()


def test_list_counts_members(manage, olga, ravi):
    assert [row["members"] for row in manage("workspace", "list", "--json").json["workspaces"]] == [2]


def test_show_names_members(manage, olga, ravi):
    members = manage("workspace", "show", "Aster", "--json").json["members"]

    assert members == [{"user": "olga", "role": "operator"}, {"user": "ravi", "role": "viewer"}]


def test_a_member_is_added_changed_and_removed(manage, workspace):
    UserFactory(username="zoe")

    for wish, roles in ((["--role", "viewer"], ["viewer"]), (["--role", "admin"], ["admin"]), (["--remove"], [])):
        assert manage("workspace", "member", "Aster", "zoe", *wish).code == 0
        assert list(workspace.memberships.values_list("role", flat=True)) == roles


def test_whoever_is_no_member_cannot_be_removed(manage, workspace, zed):
    assert manage("workspace", "member", "Aster", "zed", "--remove").code == 6


@pytest.mark.parametrize("arguments", [["Aster", "nobody"], ["nowhere", "zed"]])
def test_a_member_of_nothing_or_nobody(manage, workspace, zed, arguments):
    assert manage("workspace", "member", *arguments, "--role", "viewer").code == 6


@pytest.mark.parametrize("wish", [[], ["--role", "king"], ["--role", "viewer", "--remove"]])
def test_a_wish_that_is_none(manage, workspace, zed, wish):
    assert manage("workspace", "member", "Aster", "zed", *wish).code == 2


def test_a_name_of_digits_is_found_before_an_id(manage, workspace):
    named = Workspace.objects.create(name=str(workspace.pk))

    assert manage("workspace", "show", workspace.pk, "--json").json["id"] == named.pk
