"""Failed sign-ins (S23), by user name and by address."""

from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User

from api.models import AuditEntry
from tests.config.test_handler import Client as Asgi
from work import clock

pytestmark = pytest.mark.edge

LOGIN = "/admin/login/"
PASSWORD = "a password of olga's"


@pytest.fixture
def olga(olga):
    olga.set_password(PASSWORD)
    olga.save()
    return olga


def sign_in(client, typed="wrong", username="olga", address="192.0.2.7"):
    return client.post(LOGIN, {"username": username, "password": typed}, REMOTE_ADDR=address)


@pytest.mark.django_db
def test_five_failures_lock_that_name_from_that_address_only(client, olga, ravi):
    codes = [sign_in(client).status_code for _ in range(5)]

    locked = sign_in(client, PASSWORD)
    assert codes == [200, 200, 200, 200, 429]
    assert (locked.status_code, locked["Retry-After"]) == (429, "900")
    assert "refused for 15 minutes" in locked.content.decode()
    assert "script-src 'self'" in locked["Content-Security-Policy"]
    assert "no-store" in locked["Cache-Control"]
    assert sign_in(client, username="ravi").status_code == 200
    assert sign_in(client, PASSWORD, address="192.0.2.8").status_code == 302


@pytest.mark.django_db
@pytest.mark.parametrize("others", ["192.0.2.7", "2001:db8::1:2"])
def test_failures_of_an_address_lock_it_whatever_the_names(client, olga, settings, others):
    """An IPv6 address counts as its whole network."""
    settings.ADE_SIGN_IN_FAILURES = 6
    mine = "192.0.2.7" if others == "192.0.2.7" else "2001:db8::7"
    for number in range(6):
        assert sign_in(client, username=f"person {number}", address=others).status_code == 200

    locked = sign_in(client, PASSWORD, address=mine)

    assert (locked.status_code, locked["Retry-After"]) == (429, "900")
    assert sign_in(client, PASSWORD, address="192.0.2.8").status_code == 302
    AccessAttempt.objects.update(attempt_time=clock.now() - timedelta(minutes=15, seconds=1))
    assert sign_in(client, PASSWORD, address=mine).status_code == 302


@pytest.mark.django_db
def test_who_waits_is_let_in_and_trying_meanwhile_costs_nothing(client, olga):
    for _ in range(5):
        sign_in(client)
    AccessAttempt.objects.update(attempt_time=clock.now() - timedelta(minutes=14, seconds=50))
    assert sign_in(client, PASSWORD).status_code == 429
    AccessAttempt.objects.update(attempt_time=clock.now() - timedelta(minutes=15, seconds=1))

    assert sign_in(client, PASSWORD).status_code == 302


@pytest.mark.django_db
def test_a_success_forgets_the_failures(client, olga):
    for _ in range(2):
        for _ in range(4):
            sign_in(client)
        assert sign_in(client, PASSWORD).status_code == 302
        client.post("/admin/logout/")


@pytest.mark.django_db
def test_other_browsers_count_together(client, olga):
    for number in range(5):
        client.post(LOGIN, {"username": "olga", "password": "x"}, headers={"User-Agent": f"browser {number}"})

    assert client.post(LOGIN, {"username": "olga", "password": PASSWORD}).status_code == 429


@pytest.mark.django_db
@pytest.mark.parametrize("forged", ["10.0.0.1", "unknown", "192.0.2.9, 192.0.2.10"])
def test_nobody_names_another_address(client, olga, forged):
    for number in range(5):
        client.post(
            LOGIN, {"username": "olga", "password": "x"}, headers={"X-Forwarded-For": forged, "X-Real-IP": str(number)}
        )

    assert client.post(LOGIN, {"username": "olga", "password": PASSWORD}).status_code == 429


@pytest.mark.django_db(transaction=True)
def test_it_is_so_where_requests_are_asynchronous(client, olga, settings):
    page = client.get(LOGIN)
    cookies = f"csrftoken={client.cookies['csrftoken'].value}"
    body = f"username=olga&password=wrong&csrfmiddlewaretoken={page.context['csrf_token']}".encode()
    headers = {"content_type": "application/x-www-form-urlencoded", "content_length": str(len(body)), "cookie": cookies}

    codes = [Asgi(LOGIN, [body], "POST", **headers).ask().status for _ in range(6)]

    assert codes == [200, 200, 200, 200, 429, 429]
    assert list(AuditEntry.objects.values_list("answered", flat=True).order_by("pk")) == codes


@pytest.mark.django_db
def test_signing_in_and_out_is_written_down(client, olga):
    sign_in(client)
    sign_in(client, username="my password is canary")
    sign_in(client, PASSWORD)
    client.post("/admin/logout/")

    told = AuditEntry.objects.order_by("pk").values_list("operation", "actor", "address", "answered")
    assert list(told) == [
        ("sign_in_failed", "olga", "192.0.2.7", 200),
        ("sign_in_failed", "", "192.0.2.7", 200),
        ("sign_in", "olga", "192.0.2.7", 302),
        ("sign_out", "olga", "127.0.0.1", 200),
    ]


@pytest.mark.django_db
def test_of_many_failures_in_a_minute_not_all_are_written_down(client, olga, still, monkeypatch):
    monkeypatch.setattr("api.signins.MOST_FAILURES", 3)
    for number in range(5):
        sign_in(client, username=f"somebody {number}")

    assert AuditEntry.objects.count() == 3


@pytest.mark.django_db
def test_what_was_typed_is_not_kept_or_logged(client, olga, caplog):
    sign_in(client, "canary")
    sign_in(client, "canary", username="canary")

    assert "canary" not in str(AccessAttempt.objects.values_list("get_data", "post_data"))
    assert "canary" not in caplog.text


def test_a_name_that_no_database_takes_is_a_failure(client, db):
    assert sign_in(client, username="ol\0ga").status_code == 200
    assert User.objects.count() == 0
