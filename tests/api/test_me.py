from datetime import timedelta

import pytest

from tests.api.programs import V1, Person, Program
from tests.factories import MembershipFactory, UserFactory, WorkspaceFactory, write
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def roles(program):
    return {row["name"]: row["role"] for row in program.get("/me").json()["workspaces"]}


def test_a_program_is_told_whose_token_it_has_and_until_when(olga, workspace):
    program = Program(olga, workspace, "operate")
    write(program.token, expires_at=clock.now() + timedelta(days=1))

    me = program.get("/me").json()

    assert (me["user"], me["is_superuser"]) == ("olga", False)
    assert me["token"] | {"expires_at": None} == {
        "name": "program",
        "prefix": program.token.prefix,
        "scopes": ["read", "operate"],
        "expires_at": None,
    }
    assert me["token"]["expires_at"]
    assert "sha256" not in str(me)


def test_a_role_is_no_more_than_the_scopes_of_the_token(olga, workspace):
    boss = MembershipFactory(workspace=workspace, role="admin").user

    assert roles(Program(olga, workspace, "admin", "operate")) == {"Aster": "operator"}
    assert roles(Program(boss, workspace, "admin")) == {"Aster": "admin"}
    assert roles(Program(boss, workspace, "operate", name="b")) == {"Aster": "operator"}
    assert roles(Program(boss, workspace, name="c")) == {"Aster": "viewer"}


def test_people_see_all_their_workspaces_and_a_token_one(olga, workspace):
    MembershipFactory(workspace=WorkspaceFactory(name="Beech"), user=olga, role="viewer")
    WorkspaceFactory(name="Cedar")

    assert roles(Person(olga)) == {"Aster": "operator", "Beech": "viewer"}
    assert roles(Program(olga, workspace)) == {"Aster": "viewer"}


def test_a_superuser_is_an_administrator_everywhere_and_a_stranger_nobody(workspace, zed, client):
    root = Person(UserFactory(username="root", is_superuser=True))

    assert roles(root) == {"Aster": "admin"}
    assert root.get("/me").json()["token"] is None
    assert roles(Person(zed)) == {}
    assert client.get(f"{V1}/me").status_code == 401
