"""Every operation × every place that offers it × every role × every state of its row."""

from collections import Counter

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from api import tokens
from tests.commands.conftest import manage  # noqa: F401  # a fixture
from tests.factories import MembershipFactory, UserFactory, columns_of
from tests.operations.table import TABLE
from work.models import Event
from work.operations.admin import VerbAdmin
from work.operations.outcomes import DONE, sentence

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

# Who may do what needs this role. A stranger is an operator of another workspace, anonymous is nobody.
MAY = {
    "operator": {"operator", "admin", "superuser"},
    "admin": {"admin", "superuser"},
    "superuser": {"superuser"},
}
WHO = ["superuser", "admin", "operator", "viewer", "stranger", "anonymous"]
SCOPES = {
    "superuser": ["read", "operate", "admin", "installation"],
    "admin": ["read", "operate", "admin"],
    "operator": ["read", "operate"],
    "viewer": ["read"],
    "stranger": ["read", "operate"],
}

each_entry = pytest.mark.parametrize("entry", TABLE, ids=str)
each_state = pytest.mark.parametrize(
    ("entry", "state"), [pytest.param(entry, state, id=f"{entry} {state}") for entry in TABLE for state in entry.rows]
)
each_role = pytest.mark.parametrize("who", WHO)


@pytest.fixture
def user_of(workspace):
    """Return a function that makes a user of the admin with this role; None is anonymous."""

    def user_of(who):
        if who == "anonymous":
            return None
        user = UserFactory(username=who, is_staff=True, is_superuser=who == "superuser")
        if who == "stranger":
            MembershipFactory(user=user, role="operator")
        else:
            MembershipFactory(workspace=workspace, user=user, role=who if who in ("viewer", "operator") else "admin")
        return user

    return user_of


@pytest.fixture
def client_of(user_of):
    """Return a function that signs a user of this role in."""

    def client_of(who):
        client = Client()
        if user := user_of(who):
            client.force_login(user)
        return client

    return client_of


def fresh(row):
    return type(row).objects.get(pk=row.pk)


def trace_of(row):
    """Return what an operation leaves: the row, and how many events there are."""
    return columns_of(row), Event.objects.count()


def row_to_operate(entry, workspace):
    rows = (make(workspace) for make in entry.rows.values())
    return next(row for row in rows if entry.operation.predict(row) in DONE)


def key_of(entry, row):
    return [getattr(row, entry.key)] if entry.key else []


def press_in_admin(client, entry, row):
    name = f"{row._meta.app_label}/{row._meta.model_name}"
    return client.post(f"/admin/{name}/{row.pk}/{entry.operation.name}/", follow=True)


def press_in_console(client, entry, row):
    return client.post(reverse(f"console:{entry.console}", args=key_of(entry, row)))


def ask_the_api(entry, row, user, who):
    headers = {}
    if user:
        workspace = user.memberships.get().workspace
        _, secret = tokens.issue(workspace, user, "table", SCOPES[who], actor="test")
        headers = {"Authorization": f"Bearer {secret}"}
    method, path = entry.api.split()
    url = f"/api/v1/{path.format(*key_of(entry, row))}"
    return getattr(Client(), method)(url, headers=headers, content_type="application/json")


def test_the_table_has_every_operation():
    declared = [
        each for site in admin.site._registry.values() if isinstance(site, VerbAdmin) for each in site.operations
    ]

    assert Counter(map(id, declared)) == Counter(id(entry.operation) for entry in TABLE)


@each_state
def test_a_button_of_the_admin_does_what_was_predicted(entry, state, workspace, client_of):
    row = entry.rows[state](workspace)
    client, expected, before = client_of("superuser"), entry.operation.predict(fresh(row)), trace_of(row)
    site = admin.site._registry[type(row)]
    change_page = client.get(reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk]))

    page = press_in_admin(client, entry, row)

    names = [name for name, _ in change_page.context.get("buttons", [])]
    assert (entry.operation.name in names) == (expected in DONE)
    message = sentence(type(row), Counter([expected]), site.states.claimed if site.states else None)
    assert str(next(iter(page.context["messages"]))) == message
    assert (trace_of(row) != before) == (expected in DONE)


@each_entry
@each_role
def test_only_who_may_presses_a_button_of_the_admin(entry, who, workspace, client_of):
    row = row_to_operate(entry, workspace)
    client, before = client_of(who), trace_of(row)

    page = press_in_admin(client, entry, row)

    is_allowed = who in MAY[entry.role]
    assert (trace_of(row) != before) == is_allowed
    assert is_allowed or page.status_code in (403, 404) or "/admin/login/" in page.redirect_chain[0][0]


@pytest.mark.parametrize(
    ("entry", "state"),
    [pytest.param(entry, state, id=f"{entry} {state}") for entry in TABLE if entry.console for state in entry.rows],
)
def test_a_button_of_the_console_does_what_was_predicted(entry, state, workspace, client_of):
    row = entry.rows[state](workspace)
    client, expected, before = client_of("superuser"), entry.operation.predict(fresh(row)), trace_of(row)

    page = press_in_console(client, entry, row)

    assert page.status_code == 302
    assert (trace_of(row) != before) == (expected in DONE)


@pytest.mark.parametrize("entry", [entry for entry in TABLE if entry.console], ids=str)
@each_role
def test_only_who_may_presses_a_button_of_the_console(entry, who, workspace, client_of):
    row = row_to_operate(entry, workspace)
    client, before = client_of(who), trace_of(row)

    page = press_in_console(client, entry, row)

    is_allowed = who in MAY[entry.role]
    assert (trace_of(row) != before) == is_allowed
    assert is_allowed or page.status_code in (403, 404) or "/sign-in/" in page["Location"]


@pytest.mark.parametrize(
    ("entry", "state"),
    [pytest.param(entry, state, id=f"{entry} {state}") for entry in TABLE if entry.api for state in entry.rows],
)
def test_a_request_of_the_api_does_what_was_predicted(entry, state, workspace, user_of):
    row = entry.rows[state](workspace)
    user, expected, before = user_of("superuser"), entry.operation.predict(fresh(row)), trace_of(row)

    response = ask_the_api(entry, row, user, "superuser")

    assert (response.status_code in (200, 201)) == (expected in DONE), response.content
    assert response.status_code in (200, 201, 404, 409, 410)
    assert (trace_of(row) != before) == (expected in DONE)


@pytest.mark.parametrize("entry", [entry for entry in TABLE if entry.api], ids=str)
@each_role
def test_only_who_may_asks_the_api(entry, who, workspace, user_of):
    row = row_to_operate(entry, workspace)
    user, before = user_of(who), trace_of(row)

    response = ask_the_api(entry, row, user, who)

    is_allowed = who in MAY[entry.role]
    assert (trace_of(row) != before) == is_allowed
    assert is_allowed or response.status_code in ((401,) if who == "anonymous" else (403, 404))


@pytest.mark.parametrize(
    ("entry", "state"),
    [pytest.param(entry, state, id=f"{entry} {state}") for entry in TABLE if entry.command for state in entry.rows],
)
def test_a_command_does_what_was_predicted(entry, state, workspace, manage):  # noqa: F811  # a fixture
    row = entry.rows[state](workspace)
    expected, before = entry.operation.predict(fresh(row)), trace_of(row)

    ended = manage(*entry.command, *key_of(entry, row), "--json")

    assert (ended.code == 0) == (expected in DONE), (ended.out, ended.err)
    assert (trace_of(row) != before) == (expected in DONE)
