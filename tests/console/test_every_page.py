"""Permissions of every page and every button. The routes come from the URL resolver, so that none is left out."""

import pytest
from django.test import Client as CsrfClient

from tests.console.table import ELSEWHERE, GUARDED, LOOKED_AT, PAGES, PRESSED, ROUTES
from tests.factories import MembershipFactory, UserFactory, WorkspaceFactory
from work.models import Event

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def events():
    return Event.objects.count()


def test_every_route_is_in_the_table():
    assert {*PAGES, *ELSEWHERE} == ROUTES


@pytest.mark.parametrize("name", LOOKED_AT)
def test_members_get_it(seen_by, ravi, workspace, name):
    page = seen_by(ravi, PAGES[name].path(name, workspace), follow=True)

    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]


@pytest.mark.parametrize("name", [name for name in LOOKED_AT if not PAGES[name].anybody])
def test_whoever_is_not_signed_in_is_sent_to_do_so(client, workspace, name):
    page = client.get(path := PAGES[name].path(name, workspace))

    assert page.status_code == 302
    assert page.url == f"/sign-in/?next={path}"


@pytest.mark.parametrize("name", [name for name in LOOKED_AT if PAGES[name].ids and not PAGES[name].is_shared])
def test_rows_of_others_are_not_there(seen_by, ravi, name):
    assert seen_by(ravi, PAGES[name].path(name, WorkspaceFactory())).status_code == 404


@pytest.mark.parametrize("name", [name for name in LOOKED_AT if PAGES[name].is_shared])
def test_what_all_share_is_for_members(seen_by, zed, workspace, name):
    assert seen_by(zed, PAGES[name].path(name, workspace)).status_code == 403


@pytest.mark.parametrize("name", [name for name in LOOKED_AT if not PAGES[name].is_shared and not PAGES[name].ids])
def test_strangers_get_pages_with_nothing_on_them(seen_by, zed, workspace, name):
    PAGES["run"].path("run", workspace)

    assert seen_by(zed, PAGES[name].path(name, workspace), follow=True).status_code == 200


@pytest.mark.parametrize("name", GUARDED)
def test_a_button_does_nothing_for_whoever_only_looks(pressed_by, ravi, workspace, name):
    path = PAGES[name].path(name, workspace)
    before = events()

    assert pressed_by(ravi, path).status_code == 403
    assert events() == before


@pytest.mark.parametrize("name", [name for name in PRESSED if not PAGES[name].is_shared])
def test_a_button_of_others_is_not_there(pressed_by, olga, name):
    path = PAGES[name].path(name, WorkspaceFactory())
    before = events()

    assert pressed_by(olga, path).status_code == 404
    assert events() == before


@pytest.mark.parametrize("name", PRESSED)
def test_a_button_is_pressed_and_not_looked_at(seen_by, workspace, name):
    superuser = UserFactory(is_superuser=True)
    path = PAGES[name].path(name, workspace)
    before = events()

    assert seen_by(superuser, path).status_code == 405
    assert events() == before


@pytest.mark.parametrize("name", PRESSED)
def test_a_button_needs_the_token_against_forged_requests(workspace, name):
    client = CsrfClient(enforce_csrf_checks=True)
    client.force_login(UserFactory(is_superuser=True))
    path = PAGES[name].path(name, workspace)
    before = events()

    assert client.post(path).status_code == 403
    assert events() == before


@pytest.mark.parametrize("name", PRESSED)
def test_whoever_is_not_signed_in_presses_nothing(client, workspace, name):
    path = PAGES[name].path(name, workspace)
    before = events()

    assert client.post(path).url.startswith("/sign-in/")
    assert events() == before


@pytest.mark.parametrize("name", [name for name in PRESSED if PAGES[name].permission])
def test_a_button_of_the_installation_takes_a_permission(pressed_by, olga, workspace, name):
    assert pressed_by(olga, PAGES[name].path(name, workspace)).status_code == 403


def test_a_member_of_one_workspace_is_no_operator_of_another(pressed_by, olga, workspace):
    elsewhere = WorkspaceFactory()
    MembershipFactory(workspace=elsewhere, user=olga, role="viewer")

    for name in PRESSED:
        if not PAGES[name].is_shared:
            assert pressed_by(olga, PAGES[name].path(name, elsewhere)).status_code == 403, name
