"""Passwords and sessions of members, including those without access to the admin."""

import time

import pytest
from django.conf import settings as real_settings

from api.models import AuditEntry
from api.signins import SEEN_AT
from tests.factories import UserFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]
OLD, NEW = "an old password of ours", "a new password of ours"


@pytest.fixture
def member(client):
    person = UserFactory(username="mira", is_staff=False)
    person.set_password(OLD)
    person.save()
    assert client.post("/sign-in/", {"username": "mira", "password": OLD}).status_code == 302
    return person


def change(client, old=OLD, new=NEW):
    typed = {"old_password": old, "new_password1": new, "new_password2": new}
    return client.post("/password/", typed, follow=True)


def test_a_member_who_is_not_staff_changes_the_password(client, member):
    assert 'href="/password/"' in client.get("/").content.decode()
    assert 'autocomplete="current-password"' in client.get("/password/").content.decode()

    page = change(client)

    member.refresh_from_db()
    assert "Your password has been changed." in page.content.decode()
    assert member.check_password(NEW)
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    ("typed", "said"),
    [({"old": "wrong"}, "entered incorrectly"), ({"new": "elevenchars"}, "at least 12 characters")],
)
def test_what_is_wrong_with_a_password_is_told(client, member, typed, said):
    page = change(client, **typed)

    member.refresh_from_db()
    assert said in page.content.decode()
    assert member.check_password(OLD)


def test_wrong_old_passwords_count_as_failed_sign_ins(client, member):
    for _ in range(4):
        assert "entered incorrectly" in change(client, old="a guess").content.decode()

    locked = [change(client, old=old) for old in ("a guess", OLD)]

    assert [(page.status_code, page["Retry-After"]) for page in locked] == [(429, "900")] * 2
    member.refresh_from_db()
    assert member.check_password(OLD)
    assert AuditEntry.objects.filter(operation="sign_in_failed").count() == 6


def test_a_refused_new_password_counts_as_no_failure(client, member):
    for _ in range(6):
        assert "at least 12 characters" in change(client, new="elevenchars").content.decode()

    assert "has been changed" in change(client).content.decode()


def test_the_page_of_the_admin_is_this_page(client, member):
    assert client.get("/admin/password_change/")["Location"] == "/password/"


def test_whoever_is_not_signed_in_has_no_password_to_change(client):
    assert client.get("/password/")["Location"] == "/sign-in/?next=/password/"


def test_a_session_lasts_from_the_last_request_of_a_person(client, member):
    idle = real_settings.ADE_SESSION_IDLE_SECONDS
    session = client.session
    assert idle == real_settings.SESSION_COOKIE_AGE

    def asked_after(seconds, **how):
        session[SEEN_AT] = int(time.time()) - seconds
        session.save()
        answer = client.get("/", **how)
        return "sessionid" in answer.cookies

    # The cookie is sent again with its full lifetime when the session is saved.
    assert asked_after(idle // 2)
    assert not asked_after(10)
    assert not asked_after(idle // 2, headers={"HX-Request": "true"})
