"""Permissions of every route. The routes come from the URL resolver, so that none can be left out."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.signals import request_finished
from django.db import close_old_connections
from django.test import Client
from django.urls import URLResolver, get_resolver

from api import tokens
from api.callers import ByToken
from api.models import ApiToken, KeptAnswer
from api.naming import plain
from config.api import api
from console.urls import urlpatterns
from tests.api import described
from tests.api.table import PAGES, ROWS, Shared
from tests.factories import MembershipFactory, UserFactory, WorkspaceFactory, write
from work import clock

pytestmark = pytest.mark.edge

OPERATIONS = {
    f"{method} {plain(path)}": operation for path, operation in api.operations() for method in operation.methods
}
WITH_A_KEY = sorted(
    f"{method.upper()} {path}"
    for path, method, told in described.OPERATIONS
    if {"$ref": "#/components/parameters/IdempotencyKey"} in told["parameters"]
)
READS = {"GET", "HEAD"}
ALL = ["read", "operate", "admin", "installation"]
ROLES = {"read": "viewer", "operate": "operator", "admin": "admin", "installation": "viewer"}
NOBODYS = 9_000_000_000_000


def routes(resolver, prefix=""):
    for each in resolver.url_patterns:
        path = prefix + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from routes(each, path)
        else:
            yield path, each


def scope_of(operation):
    return next((way.scope.value for way in operation.auth_callbacks if isinstance(way, ByToken)), None)


def test_every_route_is_in_the_table():
    paths = {plain(path).removeprefix("/") for path, _ in api.operations()}
    others = [path for path, each in routes(get_resolver()) if path.startswith("admin/") or each.name == "api-root"]
    # The console pages have their own table: tests/console/table.py.
    others += [path for path, each in routes(get_resolver()) if each in urlpatterns]
    found = [path for path, _ in routes(get_resolver()) if path not in others]
    unknown = [
        path for path in found if path not in PAGES and re.sub("<(?:[^:>]+:)?([^>]+)>", r"{\1}", path) not in paths
    ]

    assert unknown == []
    assert sorted(OPERATIONS) == sorted(ROWS)
    assert sorted(PAGES) == sorted(set(PAGES) & set(found))


def test_every_filter_by_an_id_is_in_the_table():
    asked = {
        (f"{method.upper()} {path}", each["name"])
        for path, method, told in described.OPERATIONS
        for each in told.get("parameters", [])
        if each.get("in") == "query" and each["name"].endswith("_id") and each["name"] != "last_event_id"
    }

    assert {(name, filter) for name, filter in asked if filter not in ROWS[name].query} == set()


def made(value, workspace):
    """Return the value with each function replaced by the ID of a row of this workspace."""
    if callable(value):
        row = value(workspace)
        return getattr(row, "pk", row)
    if isinstance(value, dict):
        return {name: made(each, workspace) for name, each in value.items()}
    return [made(each, workspace) for each in value] if isinstance(value, list) else value


def places(value, path=()):
    """Yield the paths at which the value has functions."""
    if callable(value):
        yield path
    for name, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(each, (*path, name))


def at(value, path):
    for name in path:
        value = value[name]
    return value


def put(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


def call(name, row, parts, shown=None, client=None, **headers):
    """Call a route; `parts` are the fields of its table row, with IDs in place of functions."""
    method, path = name.split()
    headers |= {"Authorization": f"Bearer {shown}"} if shown else {}
    sent = {"headers": headers, "query_params": parts["query"]}
    if row.files is not None:
        files = {key: SimpleUploadedFile(name, make()) for key, (name, make) in row.files.items()}
        sent |= {"data": (parts["body"] or {}) | files}
    elif row.raw is not None:
        sent |= {"data": row.raw[0](), "content_type": row.raw[1]}
    elif method not in READS:
        sent |= {"data": b"" if row.body is None else parts["body"], "content_type": "application/json"}
    answer = getattr(client or Client(), method.lower())(path.format(**parts["ids"]), **sent)
    if answer.streaming:
        # Streams are not read to their end here, and Django would close the connection of the test.
        request_finished.disconnect(close_old_connections)
        answer.close()
        request_finished.connect(close_old_connections)
    return answer


def anonymous(answer, id):
    """Return the status and the body, without the requested ID."""
    return answer.status_code, answer.getvalue().decode().replace(str(id), "ID") if not answer.streaming else ""


def is_shared(row):
    return any(isinstance(at(row.ids, path), Shared) for path in places(row.ids)) or not any(places(row.ids))


def code_of(answer):
    if answer.status_code < 400:
        return answer.status_code, None
    told = answer.json()
    assert set(told) == {"code", "message", "details"}
    return answer.status_code, told["code"]


@pytest.fixture(params=sorted(set(ROWS) & set(OPERATIONS)))
def name(request):
    return request.param


@pytest.fixture
def row(name):
    return ROWS[name]


@pytest.fixture
def scope(name):
    return scope_of(OPERATIONS[name])


@pytest.fixture
def role(row, scope):
    return row.role or ROLES.get(scope or "", "viewer")


@pytest.fixture
def mine(row, workspace):
    return {part: made(getattr(row, part), workspace) for part in ("ids", "body", "query")}


@pytest.fixture
def person(row, role, workspace):
    person = MembershipFactory(workspace=workspace, role=role, user__username="paula").user
    for permission in row.may:
        person.user_permissions.add(Permission.objects.get(codename=permission.split(".")[1]))
    return person


def token(person, workspace, *scopes, **columns):
    name = f"program {ApiToken.objects.count()}"
    kept, shown = tokens.issue(workspace, person, name, scopes, actor="olga")
    if columns:
        write(kept, **columns)
    return shown


@pytest.mark.django_db
def test_it_answers_whoever_may(name, row, mine, person, workspace, scope):
    answer = call(name, row, mine, token(person, workspace, scope or "read", *row.scopes))

    assert answer.status_code == row.answers, getattr(answer, "content", b"")
    # No cache may store a response that depends on the user.
    assert answer["Cache-Control"] == "private, no-store"


@pytest.mark.django_db
@pytest.mark.parametrize("name", WITH_A_KEY)
def test_what_is_asked_for_twice_with_one_key_is_done_once(name, row, mine, person, workspace, scope):
    shown = token(person, workspace, scope or "read", *row.scopes)
    first, again = (call(name, row, mine, shown, **{"Idempotency-Key": "k1"}) for _ in range(2))

    assert (first.status_code, again.status_code) == (row.answers, row.answers)
    assert (first.headers.get("Idempotency-Replayed"), again.headers.get("Idempotency-Replayed")) == (None, "true")
    # A secret that is shown once is not shown again.
    once = dict.fromkeys({"token", "secret"} & first.json().keys())
    assert again.json() == first.json() | once
    assert KeptAnswer.objects.count() == 1


@pytest.mark.django_db
def test_it_answers_nobody_else(name, row, mine, person, workspace, scope, role):
    if row.anybody:
        assert call(name, row, mine).status_code == row.answers
        return
    left = UserFactory()
    now = clock.now()
    refused = {
        "no token": None,
        "one that is not known": f"{token(person, workspace, *ALL)[:-3]}xyz",
        "an expired one": token(person, workspace, *ALL, expires_at=now - timedelta(seconds=1)),
        "a revoked one": token(person, workspace, *ALL, revoked_at=now, revoked_by="olga"),
        "one of somebody who has left": token(left, workspace, *ALL),
        "one of somebody who may no longer sign in": token(
            MembershipFactory(workspace=workspace, role="admin", user__is_active=False).user, workspace, *ALL
        ),
    }
    forbidden = {}
    if scope != "read":
        forbidden["another scope"] = token(person, workspace, *(set(ALL) - {scope}))
    if role != "viewer":
        ravi = MembershipFactory(workspace=workspace, role="viewer").user
        ravi.user_permissions.set(person.user_permissions.all())
        forbidden["somebody who reads"] = token(ravi, workspace, *ALL)
    if row.may:
        other = MembershipFactory(workspace=workspace, role="admin").user
        forbidden["somebody without the permission"] = token(other, workspace, *ALL)

    got = {who: code_of(call(name, row, mine, shown)) for who, shown in (refused | forbidden).items()}

    expected = dict.fromkeys(refused, (401, "not_authenticated")) | dict.fromkeys(forbidden, (403, "forbidden"))
    if row.hidden and "somebody who reads" in expected:
        expected["somebody who reads"] = (404, "not_found")
    assert got == expected


@pytest.mark.django_db
def test_rows_of_other_workspaces_are_not_there(name, row, mine, person, workspace, scope, role):
    """Even if the owner of the token may see them: a token is for one workspace."""
    shown = token(person, workspace, scope or "read", *row.scopes)
    other = WorkspaceFactory(name="Birch")
    MembershipFactory(workspace=other, user=person, role=role)

    for part in ("ids", "body", "query"):
        for path in places(getattr(row, part)):
            make = at(getattr(row, part), path)
            asked = [NOBODYS] if isinstance(make, Shared) else [made(make, other), NOBODYS]
            told = {id: call(name, row, mine | {part: put(mine[part], path, id)}, shown) for id in asked}

            texts = {anonymous(answer, id) for id, answer in told.items()}
            assert len(texts) == 1, texts
            assert {code_of(answer) for answer in told.values()} == {(404, "not_found")}


@pytest.mark.django_db
def test_people_of_no_workspace_see_nothing_of_it(name, row, mine, zed):
    client = Client()
    client.force_login(zed)
    zed.user_permissions.set(Permission.objects.none())

    answer = call(name, row, mine, client=client)

    if any(not isinstance(at(row.ids, path), Shared) for path in places(row.ids)):
        assert code_of(answer) == (404, "not_found")
    elif name.split()[0] in READS:
        assert answer.status_code in (200, 403, 404)
        assert answer.streaming or answer.status_code != 200 or answer.json().get("items", []) == [] or is_shared(row)
    else:
        assert row.anybody or answer.status_code in (403, 404)


@pytest.mark.django_db
def test_sessions_need_more_than_a_cookie_to_change_anything(name, row, mine, person):
    client = Client(enforce_csrf_checks=True)
    client.force_login(person)

    answer = call(name, row, mine, client=client)

    changes = name.split()[0] not in READS and not row.anybody
    assert code_of(answer) == ((403, "csrf_failed") if changes else (row.answers, None))


@pytest.mark.django_db
def test_nothing_but_what_it_takes_is_read(name, row, mine, person, workspace, scope):
    method, path = name.split()
    shown = token(person, workspace, scope or "read", *row.scopes)
    headers = {"Authorization": f"Bearer {shown}"}
    address = path.format(**mine["ids"])
    calls = {"another parameter": getattr(Client(), method.lower())(f"{address}?status__regex=x", headers=headers)}
    if method not in READS and any(part is not None for part in (row.body, row.files, row.raw)):
        calls["text"] = getattr(Client(), method.lower())(address, "{}", content_type="text/plain", headers=headers)
    if method not in READS and f"GET {path}" not in ROWS:
        calls["to read"] = Client().get(address, headers=headers)

    got = {what: answer.status_code for what, answer in calls.items()}

    expected = {"another parameter": 400, "text": 415, "to read": 405}
    assert got == {what: expected[what] for what in got}


@pytest.mark.django_db
@pytest.mark.parametrize("page", sorted(PAGES))
def test_pages_are_for_people_who_are_signed_in(client, page):
    address = "/" + re.sub("<[^>]+>", lambda found: "2026-01-01" if "brief" in found[0] else "1", page)

    assert client.get(address).status_code == PAGES[page]
