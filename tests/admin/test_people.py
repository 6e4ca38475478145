import pytest
from django.contrib.auth.models import Group, Permission, User

from tests.factories import MembershipFactory, UserFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

FORM = {"last_login_0": "", "last_login_1": "", "date_joined_0": "2026-01-01", "date_joined_1": "00:00"}


@pytest.fixture
def clerk(client):
    """A staff user who may add, change and delete users and groups, and nothing more."""
    person = UserFactory(username="clerk", is_staff=True)
    names = [f"{verb}_{what}" for verb in ("view", "add", "change", "delete") for what in ("user", "group")]
    person.user_permissions.set(Permission.objects.filter(codename__in=names, content_type__app_label="auth"))
    client.force_login(person)
    return person


def change(client, person, **given):
    data = FORM | {"username": person.username, "email": "", "is_active": "on"} | given
    return client.post(f"/admin/auth/user/{person.pk}/change/", data)


def test_who_may_change_users_makes_nobody_a_superuser(client, clerk):
    permissions = [str(each.pk) for each in Permission.objects.all()]
    group = Group.objects.create(name="everything")
    nobody = UserFactory(username="nobody", is_staff=False)

    for person in (clerk, nobody):
        answer = change(
            client, person, first_name="New", is_superuser="on", user_permissions=permissions, groups=[group.pk]
        )
        assert answer.status_code == 302

    for person in User.objects.filter(pk__in=[clerk.pk, nobody.pk]):
        assert (person.first_name, person.is_superuser, person.groups.count()) == ("New", False, 0)
        assert person.user_permissions.count() == (8 if person == clerk else 0)
    assert not User.objects.get(pk=nobody.pk).is_staff


def test_who_may_change_users_touches_nobody_who_may_more(client, clerk):
    boss = UserFactory(username="boss", is_staff=True, is_superuser=True)
    other = UserFactory(username="other", is_staff=True)
    other.user_permissions.add(Permission.objects.get(codename="change_queue"))

    for person in (boss, other):
        before = person.password
        assert change(client, person, first_name="New").status_code == 403
        typed = {"password1": "a long new password", "password2": "a long new password"}
        assert client.post(f"/admin/auth/user/{person.pk}/password/", typed).status_code == 403
        assert client.post(f"/admin/auth/user/{person.pk}/delete/", {"post": "yes"}).status_code == 403
        chosen = {"action": "delete_selected", "_selected_action": [person.pk], "post": "yes"}
        assert client.post("/admin/auth/user/", chosen).status_code == 403
        assert User.objects.get(pk=person.pk).password == before


@pytest.mark.parametrize(("role", "answered"), [(None, 403), ("operator", 403), ("admin", 302)])
def test_who_may_change_users_takes_no_role_of_a_workspace(client, clerk, role, answered):
    """The password of a user opens the user's workspaces."""
    membership = MembershipFactory(role="admin")
    if role:
        MembershipFactory(user=clerk, workspace=membership.workspace, role=role)
    person = membership.user

    typed = {"password1": "a long new password", "password2": "a long new password"}
    assert client.post(f"/admin/auth/user/{person.pk}/password/", typed).status_code == answered
    assert change(client, person, first_name="New").status_code == answered


def test_who_may_change_groups_gives_no_permissions(client, clerk):
    group = Group.objects.create(name="clerks")
    group.user_set.add(clerk)
    every = [str(each.pk) for each in Permission.objects.all()]

    assert client.post(f"/admin/auth/group/{group.pk}/change/", {"name": "x", "permissions": every}).status_code == 403
    assert client.post("/admin/auth/group/add/", {"name": "x", "permissions": every}).status_code == 403
    assert group.permissions.count() == 0


def test_a_superuser_does_all_of_it(client):
    client.force_login(UserFactory(username="boss", is_staff=True, is_superuser=True))
    person = UserFactory(username="ravi", is_staff=False)

    assert change(client, person, is_staff="on", is_superuser="on").status_code == 302

    person.refresh_from_db()
    assert (person.is_staff, person.is_superuser) == (True, True)
