import pytest

from tests.factories import DocumentFactory, UserFactory
from workspaces.models import Membership, Workspace

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def ada(workspace):
    user = UserFactory(username="ada", is_staff=True)
    Membership.objects.create(workspace=workspace, user=user, role="admin")
    return user


@pytest.fixture
def root(db):
    return UserFactory(username="root", is_staff=True, is_superuser=True)


def change_of(workspace):
    return f"/admin/workspaces/workspace/{workspace.pk}/change/"


def form(members, name="Aster", initial=0):
    """Return the form data for these members: one dictionary of fields per row."""
    values = {"name": name, "memberships-TOTAL_FORMS": len(members), "memberships-INITIAL_FORMS": initial}
    for n, member in enumerate(members):
        values |= {f"memberships-{n}-{field}": value for field, value in member.items()}
    return values


def roles(workspace):
    return dict(workspace.memberships.values_list("user__username", "role"))


def test_an_admin_adds_a_member_by_name(sign_in, ada, workspace):
    UserFactory(username="zoe")
    kept = Membership.objects.get(user=ada)
    rows = [{"id": kept.pk, "user": "ada", "role": "admin"}, {"user": "zoe", "role": "viewer"}]

    assert sign_in(ada).post(change_of(workspace), form(rows, initial=1)).status_code == 302

    assert roles(workspace) == {"ada": "admin", "zoe": "viewer"}


def test_an_admin_changes_and_removes_members(sign_in, ada, olga, ravi, workspace):
    ids = {m.user.username: m.pk for m in Membership.objects.select_related("user")}
    rows = [
        {"id": ids["ada"], "user": "ada", "role": "admin"},
        {"id": ids["olga"], "user": "olga", "role": "viewer"},
        {"id": ids["ravi"], "user": "ravi", "role": "viewer", "DELETE": "on"},
    ]

    assert sign_in(ada).post(change_of(workspace), form(rows, initial=3)).status_code == 302

    assert roles(workspace) == {"ada": "admin", "olga": "viewer"}


def test_members_are_shown_by_name(sign_in, ada, olga, workspace):
    page = sign_in(ada).get(change_of(workspace)).content.decode()

    assert 'value="olga"' in page


@pytest.mark.parametrize("name", ["nobody", "", "x" * 500, "\0"])
def test_somebody_who_does_not_exist(sign_in, ada, workspace, name):
    kept = Membership.objects.get(user=ada)
    rows = [{"id": kept.pk, "user": "ada", "role": "admin"}, {"user": name, "role": "viewer"}]

    page = sign_in(ada).post(change_of(workspace), form(rows, initial=1))

    assert roles(workspace) == {"ada": "admin"}
    assert name == "" or page.status_code == 200


def test_a_member_twice_is_told_in_words(sign_in, ada, olga, workspace):
    rows = [{"user": "olga", "role": "viewer"}]

    page = sign_in(ada).post(change_of(workspace), form(rows))

    assert "This user is already a member of this workspace." in page.content.decode()
    assert roles(workspace) == {"ada": "admin", "olga": "operator"}


@pytest.mark.parametrize("who", ["olga", "ravi", "zed"])
def test_others_cannot_make_themselves_admins(sign_in, workspace, request, who):
    user = request.getfixturevalue(who)
    before = roles(workspace)
    rows = [{"user": who, "role": "admin"}]

    assert sign_in(user).post(change_of(workspace), form(rows)).status_code in (302, 403)

    assert roles(workspace) == before


def test_an_admin_of_one_workspace_is_none_of_another(sign_in, ada):
    other = Workspace.objects.create(name="Other")
    Membership.objects.create(workspace=other, user=ada, role="viewer")

    assert sign_in(ada).post(change_of(other), form([], name="Mine")).status_code == 403

    other.refresh_from_db()
    assert other.name == "Other"


def test_only_superusers_add_workspaces(sign_in, ada, root):
    add = "/admin/workspaces/workspace/add/"
    assert sign_in(ada).post(add, form([], name="New")).status_code == 403

    assert sign_in(root).post(add, form([{"user": "ada", "role": "admin"}], name="New")).status_code == 302

    assert roles(Workspace.objects.get(name="New")) == {"ada": "admin"}


def test_a_workspace_is_deleted_by_superusers_and_only_when_it_is_empty(sign_in, ada, root, workspace):
    delete = change_of(workspace).replace("/change/", "/delete/")
    assert sign_in(ada).post(delete, {"post": "yes"}).status_code == 403
    document = DocumentFactory(workspace=workspace)
    assert sign_in(root).post(delete, {"post": "yes"}).status_code == 403
    document.delete()

    assert sign_in(root).post(delete, {"post": "yes"}).status_code == 302

    assert not Workspace.objects.exists()


def test_a_superuser_sees_the_way_in_when_there_is_no_workspace_yet(sign_in, root):
    assert "/admin/workspaces/workspace/add/" in sign_in(root).get("/admin/").content.decode()
