import re
import time
from datetime import timedelta

import pytest
from django.conf import settings as project

from tests.factories import DeliveryFactory, events_of, write
from tests.feeds import servers
from tests.webhooks.told import send_next
from webhooks import hooks, signing
from webhooks.hooks import ActionRefused
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]
PAGE = project.BASE_DIR / "docs" / "webhooks.md"


@pytest.fixture
def is_from_ade():
    """Return the verification function that the documentation offers to receivers."""
    (code,) = re.findall(r"```python\n(.+?)```", PAGE.read_text(), re.DOTALL)
    names = {}
    exec(code, names)  # noqa: S102  # our own page
    return names["is_from_ade"]


@pytest.fixture
def told(server, webhook):
    """Return a function that delivers once and returns the signature header and the body."""
    server.on("/hook", servers.answering())

    def tell():
        DeliveryFactory(webhook=webhook)
        assert send_next()
        return server.asked[-1].headers["x-ade-signature"], server.asked[-1].body

    return tell


def test_a_receiver_verifies_with_the_code_of_the_page(is_from_ade, told, webhook):
    header, body = told()

    assert is_from_ade(signing.secret_of(webhook.salt), header, body)


def test_nothing_else_is_believed(is_from_ade, told, webhook):
    secret = signing.secret_of(webhook.salt)
    header, body = told()
    moment = header.split(",")[0]

    assert not is_from_ade("whsec_another", header, body)
    assert not is_from_ade(secret, header, body + b" ")
    for forged in ("", "t=,v1=", moment, f"{moment},v1=", f"{moment},v1=é", f"{moment},{header}", "t=1e9,v1=00", "t=²"):
        assert not is_from_ade(secret, forged, body)


@pytest.mark.parametrize("off", [-400, 400])
def test_what_is_old_is_not_believed(is_from_ade, told, webhook, monkeypatch, off):
    header, body = told()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + off)

    assert not is_from_ade(signing.secret_of(webhook.salt), header, body)


def test_after_a_rotation_both_secrets_are_good_for_a_day(is_from_ade, told, webhook):
    before = signing.secret_of(webhook.salt)
    after = hooks.rotate(webhook, actor="olga")

    header, body = told()
    assert is_from_ade(before, header, body)
    assert is_from_ade(after, header, body)

    webhook.refresh_from_db()
    write(webhook, earlier_expires_at=clock.now())
    header, body = told()
    assert not is_from_ade(before, header, body)
    assert is_from_ade(after, header, body)


@pytest.mark.parametrize("drop", ["newest", "earlier"])
def test_to_rotate_again_in_that_time_one_says_which_of_two_secrets_ends(is_from_ade, told, webhook, drop):
    secrets = {"earlier": signing.secret_of(webhook.salt), "newest": hooks.rotate(webhook, actor="olga")}
    webhook.refresh_from_db()
    with pytest.raises(ActionRefused, match=r"Two secrets are valid until .* UTC\. Choose the one to drop"):
        hooks.rotate(webhook, actor="olga")

    after = hooks.rotate(webhook, drop=drop, actor="olga")

    header, body = told()
    assert is_from_ade(after, header, body)
    assert {name: is_from_ade(secret, header, body) for name, secret in secrets.items()} == {
        name: name != drop for name in secrets
    }
    webhook.refresh_from_db()
    assert webhook.earlier_expires_at > clock.now() + timedelta(hours=23)
    assert events_of(webhook).last().data["dropped"] == drop


@pytest.mark.parametrize("drop", ["newest", "earlier", None])
def test_where_one_secret_is_good_it_stays_good_whatever_is_to_be_dropped(is_from_ade, told, webhook, drop):
    before = signing.secret_of(webhook.salt)
    write(webhook, earlier_salt="old", earlier_sha256="old", earlier_expires_at=clock.now())

    after = hooks.rotate(webhook, drop=drop, actor="olga")

    header, body = told()
    assert is_from_ade(before, header, body)
    assert is_from_ade(after, header, body)


def test_a_secret_that_is_lost_does_not_keep_the_new_one_from_signing(is_from_ade, told, webhook, settings):
    settings.SECRET_KEY = "another"

    after = hooks.rotate(webhook, actor="olga")

    header, body = told()
    assert is_from_ade(after, header, body)
    assert header.count("v1=") == 1


def test_of_two_who_rotate_at_once_one_does(webhook):
    assert hooks.rotate(webhook, actor="olga")

    assert hooks.rotate(webhook, actor="ravi") is None


def test_a_secret_depends_on_the_key_of_the_installation(settings):
    salt = signing.new_salt()
    secret = signing.secret_of(salt)
    settings.SECRET_KEY = "another"

    assert signing.secret_of(salt) != secret
