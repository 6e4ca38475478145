import json
from datetime import timedelta

import pytest

from feeds.fetching import posting
from tests.factories import DeliveryFactory, WebhookFactory, events_of
from tests.feeds import servers
from tests.webhooks.told import is_due, send_all, send_next
from webhooks import hooks, lifecycle, sending, upkeep
from webhooks.models import Webhook
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def delivery(webhook):
    return DeliveryFactory(webhook=webhook)


@pytest.fixture
def answered(server):
    """Return a function that sets the answer of the receiver."""
    return lambda status=200, body=b"thanks", **headers: server.on("/hook", servers.answering(body, status, **headers))


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_what_is_answered_with_2xx_is_delivered(delivery, answered, status):
    answered(status)

    assert send_all() == 1

    delivery.refresh_from_db()
    assert (delivery.status, delivery.answered, delivery.attempts) == ("delivered", status, 1)


def test_a_delivery_says_which_it_is_and_of_which_event(server, delivery, answered):
    answered()

    send_next()

    (asked,) = server.asked
    assert asked.method == "POST"
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["x-ade-delivery"] == str(delivery.pk)
    assert asked.headers["x-ade-event"] == str(delivery.event_id)
    assert asked.headers["x-ade-topic"] == delivery.topic
    assert json.loads(asked.body) == delivery.payload


@pytest.mark.parametrize("status", [304, 400, 401, 404, 429, 500, 503])
def test_what_is_answered_otherwise_is_sent_again_later(delivery, answered, status):
    answered(status)

    send_next()

    delivery.refresh_from_db()
    assert (delivery.status, delivery.answered, delivery.attempts) == ("queued", status, 1)
    assert f"The receiver answered {status}" in delivery.error_message
    pause = (delivery.next_attempt_at - clock.now()).total_seconds()
    assert lifecycle.FIRST_SECONDS / 2 - 1 < pause <= lifecycle.FIRST_SECONDS


def test_each_attempt_is_an_event_with_what_was_answered(delivery, answered):
    answered(500, b"<h1>\x1b[31mno\0</h1>" + b"x" * 5000)

    send_next()

    event = events_of(delivery).last()
    assert event.kind == "DELIVERY_POSTPONED"
    assert event.data["status"] == 500
    assert 0 <= event.data["seconds"] < 300
    assert event.data["answer"].startswith("<h1> [31mno </h1>xxx")
    assert len(event.data["answer"]) == 200


def test_the_pauses_grow_and_the_last_attempt_ends_it(delivery, answered):
    answered(500)
    pauses = []

    for _ in range(lifecycle.ATTEMPTS):
        is_due(delivery)
        before = clock.now()
        assert send_next()
        delivery.refresh_from_db()
        pauses.append((delivery.next_attempt_at - before).total_seconds())

    assert (delivery.status, delivery.failure_type) == ("failed", "ATTEMPTS_EXHAUSTED")
    assert delivery.attempts == lifecycle.ATTEMPTS
    assert pauses[4] > pauses[0] * 4
    # All pauses together are about a day.
    assert 12 * 3600 < sum(pauses[:-1]) < 36 * 3600
    assert not send_next()


def test_gone_pauses_the_webhook_and_says_why(delivery, answered, webhook):
    answered(410)
    waiting = DeliveryFactory(webhook=webhook)

    assert send_all() == 1

    delivery.refresh_from_db()
    webhook.refresh_from_db()
    assert (delivery.status, delivery.failure_type) == ("failed", "RECEIVER_GONE")
    assert webhook.state == "paused"
    assert "410 Gone" in webhook.paused_for
    waiting.refresh_from_db()
    assert waiting.status == "queued"


@pytest.mark.parametrize(
    ("status", "retry_after", "least", "most"),
    [
        (429, "120", 119, 120),
        (503, "120", 119, 120),
        (503, "99999", 3599, 3600),
        (429, "0", 4, 10),
        (500, "120", 4, 10),
    ],
)
def test_a_receiver_that_is_busy_is_left_alone_for_as_long_as_it_says(
    delivery, answered, status, retry_after, least, most
):
    answered(status, Retry_After=retry_after)

    send_next()

    delivery.refresh_from_db()
    assert least <= (delivery.next_attempt_at - clock.now()).total_seconds() <= most


@pytest.mark.parametrize("to", ["http://169.254.169.254/latest/meta-data", "/elsewhere"])
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(server, delivery, status, to):
    server.on("/hook", servers.redirecting(to, status))

    send_next()

    delivery.refresh_from_db()
    assert (delivery.status, delivery.answered) == ("queued", status)
    assert server.paths() == ["/hook"]


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [
        (servers.endless, "delivered"),
        (servers.cut_off(b"half"), "delivered"),
        (servers.bomb(1), "delivered"),
        (servers.half_closed(b"yes"), "delivered"),
        (servers.endless_headers, "queued"),
        (servers.endless_hints, "queued"),
        (servers.saying(b"SSH-2.0-OpenSSH_9\r\n"), "queued"),
        (servers.saying(b""), "queued"),
    ],
)
def test_a_hostile_answer_does_no_harm(server, delivery, behaviour, outcome):
    server.on("/hook", behaviour)

    send_next()

    delivery.refresh_from_db()
    assert delivery.status == outcome
    assert len(delivery.error_message) < 600


@pytest.mark.parametrize("behaviour", [servers.silent, servers.slow_headers()])
def test_a_receiver_that_says_nothing_is_given_up(server, delivery, behaviour, monkeypatch):
    monkeypatch.setattr(posting.post, "__kwdefaults__", posting.post.__kwdefaults__ | {"seconds": 0.3})
    server.on("/hook", behaviour)

    send_next()

    delivery.refresh_from_db()
    assert delivery.status == "queued"
    assert "0.3 s" in delivery.error_message


def test_a_webhook_that_is_paused_is_sent_nothing_until_it_is_resumed(delivery, answered, webhook):
    answered()
    hooks.pause(webhook, actor="olga")

    assert not send_next()
    hooks.resume(webhook, actor="olga")
    assert send_next()


def test_what_waits_for_a_webhook_that_is_removed_is_not_sent(server, delivery, answered, webhook):
    answered()

    hooks.remove(webhook, actor="olga")

    assert not send_next()
    upkeep.drop_of_removed("w1")
    delivery.refresh_from_db()
    assert (delivery.status, delivery.failure_type) == ("failed", "DROPPED")
    assert not server.asked


def test_what_was_claimed_before_its_webhook_was_removed_is_not_sent(server, delivery, answered, webhook):
    answered()
    claim = lifecycle.claim_next_delivery("w1")
    hooks.remove(webhook, actor="olga")

    with pytest.raises(sending.NotAccepted) as refused:
        sending.do(claim)
    assert sending.fail(claim, refused.value)

    delivery.refresh_from_db()
    assert (delivery.status, delivery.failure_type) == ("failed", "DROPPED")
    assert not server.asked


def test_what_was_under_way_when_its_webhook_was_removed_is_not_sent_again(delivery, answered, webhook):
    answered(500)
    claim = lifecycle.claim_next_delivery("w1")
    hooks.remove(webhook, actor="olga")
    lifecycle.postpone(claim, 500, "no", {}, None)

    is_due(delivery)
    assert not send_next()
    upkeep.drop_of_removed("w1")

    delivery.refresh_from_db()
    assert (delivery.status, delivery.failure_type) == ("failed", "DROPPED")


def test_of_one_webhook_one_delivery_is_under_way(webhook):
    DeliveryFactory(webhook=webhook, status="sending")
    DeliveryFactory(webhook=webhook)
    other = DeliveryFactory(webhook=WebhookFactory())

    assert lifecycle.claim_next_delivery("w1").id == other.pk
    assert lifecycle.claim_next_delivery("w1") is None


def test_webhooks_have_their_turns_one_after_the_other(webhook):
    for _ in range(3):
        DeliveryFactory(webhook=webhook)
    other = DeliveryFactory(webhook=WebhookFactory())
    claim = lifecycle.claim_next_delivery("w1")
    lifecycle.succeed(claim, 200, {})

    assert lifecycle.claim_next_delivery("w1").id == other.pk


def test_a_secret_whose_key_has_changed_signs_nothing(server, delivery, answered, settings):
    answered()
    settings.SECRET_KEY = "another"

    send_next()

    delivery.refresh_from_db()
    assert delivery.status == "queued"
    assert "Rotate the secret." in delivery.error_message
    assert not server.asked


def test_a_delivery_that_is_sent_again_is_a_new_one_of_the_same_event(server, delivery, answered):
    answered()
    send_next()

    again = hooks.resend(delivery, actor="olga")
    send_next()

    assert (again.event_id, again.resend_of) == (delivery.event_id, delivery.pk)
    first, second = server.asked
    assert first.headers["x-ade-event"] == second.headers["x-ade-event"]
    assert first.headers["x-ade-delivery"] != second.headers["x-ade-delivery"]
    assert first.body == second.body


def test_a_ping_has_no_event(server, answered, webhook):
    answered()

    hooks.ping(webhook, actor="olga")
    send_next()

    (asked,) = server.asked
    assert "x-ade-event" not in asked.headers
    assert json.loads(asked.body)["topic"] == "ping"


def test_nothing_of_a_secret_stands_in_the_database(webhook, workspace):
    made, secret = hooks.add(workspace, "other", "https://hooks.example.com/", ["run.failed"], actor="olga")
    rotated = hooks.rotate(made, actor="olga")

    told = str([*Webhook.objects.values(), *events_of(made).values()])
    assert secret not in told
    assert rotated not in told
    assert secret != rotated


def test_the_secret_before_is_good_for_a_day(webhook):
    hooks.rotate(webhook, actor="olga")
    webhook.refresh_from_db()

    left = webhook.earlier_expires_at - clock.now()
    assert timedelta(hours=23) < left <= timedelta(hours=24)
