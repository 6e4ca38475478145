import pytest
from django.urls import reverse

from api import tokens
from api.models import ApiToken
from tests.factories import ApiTokenFactory, MembershipFactory, UserFactory, WorkspaceFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

ADD = "/admin/api/apitoken/add/"
LIST = "/admin/api/apitoken/"


@pytest.fixture
def ada(workspace):
    return MembershipFactory(workspace=workspace, user__username="ada", user__is_staff=True, role="admin").user


@pytest.fixture
def add(sign_in, workspace):
    def add(user, **wish):
        return sign_in(user).post(ADD, {"workspace": workspace.pk, "name": "nightly", **wish})

    return add


def test_the_token_is_shown_once_and_nowhere_else(add, olga, workspace, caplog, sign_in, said):
    page = add(olga, scopes=["operate"], expires_at="2090-01-31")

    token, shown = ApiToken.objects.get(), page.context["shown"]
    assert page.status_code == 201
    assert page.content.decode().count(shown) == 1
    assert page["Cache-Control"].startswith("private, no-store")
    assert tokens.find(shown) == token
    assert (token.user, token.scopes, token.created_by) == (olga, ["read", "operate"], "olga")
    assert f"{token.expires_at:%Y-%m-%d}" == "2090-01-31"
    assert shown not in caplog.text
    for path in (LIST, f"{LIST}{token.pk}/change/"):
        after = sign_in(olga).get(path)
        assert shown not in after.content.decode()
        assert said(after) == []


@pytest.mark.parametrize(
    ("who", "wish", "field"),
    [
        ("olga", {"scopes": ["admin"]}, "scopes"),
        ("olga", {"scopes": ["installation"]}, "scopes"),
        ("ravi", {"scopes": ["operate"]}, "scopes"),
        ("olga", {"scopes": ["root"]}, "scopes"),
        ("olga", {"expires_at": "2020-01-01"}, "expires_at"),
        ("olga", {"expires_at": "soon"}, "expires_at"),
        ("olga", {"name": ""}, "name"),
        ("olga", {"name": "a\tb"}, "name"),
        ("olga", {"name": "taken"}, "name"),
        ("olga", {"workspace": 10**9}, "workspace"),
    ],
    ids=str,
)
def test_what_they_may_not_is_told_at_the_field(add, olga, workspace, who, wish, field, request):
    ApiTokenFactory(workspace=workspace, user=olga, name="taken")

    page = add(request.getfixturevalue(who), **wish)

    assert (page.status_code, list(page.context["form"].errors)) == (200, [field])
    assert ApiToken.objects.count() == 1


def test_nobody_makes_one_for_a_workspace_of_others_or_for_somebody_else(add, sign_in, olga, ravi, zed):
    elsewhere = WorkspaceFactory(name="Borage")

    assert add(olga, workspace=elsewhere.pk).context["form"].errors["workspace"]
    assert "Borage" not in sign_in(olga).get(ADD).content.decode()
    assert add(olga, person="ravi").context["token"].user == olga
    assert add(zed).status_code == 403


def test_superusers_make_them_for_others_with_what_those_may(add, ravi):
    root = UserFactory(is_staff=True, is_superuser=True)

    assert add(root, person="ravi", scopes=["operate"]).context["form"].errors["scopes"]
    assert add(root, person="ravi").context["token"].user == ravi
    assert add(root, scopes=["operate", "admin", "installation"]).context["token"].user == root


def test_people_see_their_own_and_admins_all_of_their_workspace(sign_in, olga, ravi, ada, workspace):
    own = ApiTokenFactory(workspace=workspace, user=olga)
    others = {ApiTokenFactory(workspace=workspace, user=ravi), ApiTokenFactory(workspace=workspace, user=ada)}
    ApiTokenFactory()

    def seen(user):
        return set(sign_in(user).get(LIST).context["cl"].result_list)

    assert seen(olga) == {own}
    assert seen(ada) == {own, *others}


def test_a_token_is_revoked_with_a_button_and_with_an_action(press, act, client, olga, workspace):
    one, two = ApiTokenFactory(workspace=workspace, user=olga), ApiTokenFactory(workspace=workspace, user=olga)

    assert press(olga, "revoke", one).status_code == 302
    assert act(olga, "revoke", one, two)[-1] == "Revoked 1 token. Skipped 1 that was already revoked."
    assert client.get(f"{LIST}{one.pk}/revoke/").status_code == 405

    assert [token.revoked_by for token in ApiToken.objects.all()] == ["olga", "olga"]
    page = client.get(f"{LIST}{one.pk}/change/")
    assert "buttons" in page.context
    assert page.context["buttons"] == []


def test_nobody_revokes_what_others_have_but_admins_do(press, olga, ravi, ada, workspace):
    token = ApiTokenFactory(workspace=workspace, user=olga)

    assert press(ravi, "revoke", token).status_code == 404
    assert press(ada, "revoke", token).status_code == 302

    token.refresh_from_db()
    assert token.revoked_by == "ada"


@pytest.mark.parametrize("verb", ["change", "delete"])
def test_a_token_is_not_changed_by_hand(sign_in, olga, workspace, verb):
    token = ApiTokenFactory(workspace=workspace, user=olga)

    page = sign_in(olga).post(reverse(f"admin:api_apitoken_{verb}", args=[token.pk]), {"scopes": '["admin"]'})

    assert page.status_code == 403
    token.refresh_from_db()
    assert token.scopes == ["read"]


@pytest.mark.parametrize("state", ["usable", "expired", "revoked"])
def test_tokens_are_found_by_their_state(sign_in, olga, workspace, state):
    rows = {
        "usable": ApiTokenFactory(workspace=workspace, user=olga),
        "expired": ApiTokenFactory(workspace=workspace, user=olga, expires_at="2026-01-01T00:00Z"),
        "revoked": ApiTokenFactory(workspace=workspace, user=olga),
    }
    tokens.revoke(rows["revoked"], actor="olga")

    found = sign_in(olga).get(LIST, {"state": state}).context["cl"].result_list

    assert list(found) == [rows[state]]
    assert rows[state].name in sign_in(olga).get(LIST).content.decode()
