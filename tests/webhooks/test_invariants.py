from datetime import timedelta

import pytest

from tests.breaches import assert_all_hold, breaches, plant_copy, unguard
from tests.factories import W1, DeliveryFactory, WebhookFactory, age, write
from tests.webhooks.told import follow
from webhooks.models import Delivery, WebhookTail
from work import boots, clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]
LONG = 3600


@pytest.fixture(autouse=True)
def worker():
    worker = boots.register("w1", "boot-1", {})
    write(worker, started_at=age(worker, 0).started_at.replace(year=2020))
    for status in (None, "sending", "delivered", "failed"):
        DeliveryFactory(status=status)
    follow(W1)
    assert_all_hold()


def test_an_event_that_is_delivered_twice():
    delivery = DeliveryFactory(status="delivered")
    unguard(Delivery)
    plant_copy(delivery, id=999_999)

    assert breaches("an_event_is_delivered_once") == [("delivery", 999_999)]


def test_what_was_sent_again_is_none():
    first = DeliveryFactory()
    DeliveryFactory(webhook=first.webhook, event_id=first.event_id, resend_of=first.pk)

    assert breaches("an_event_is_delivered_once") == []


def test_a_delivery_that_never_has_its_turn():
    delivery = DeliveryFactory(webhook=age(WebhookFactory(), LONG))
    age(delivery, LONG)

    assert breaches("a_delivery_that_is_due_has_its_turn") == [("delivery", delivery.pk)]


@pytest.mark.parametrize("why", ["paused", "tried", "sending"])
def test_one_that_waits_for_a_reason_is_none(why):
    webhook = age(WebhookFactory(), LONG)
    age(DeliveryFactory(webhook=webhook), LONG)
    if why == "paused":
        write(webhook, paused_at=webhook.created_at, paused_by="olga")
    elif why == "tried":
        write(webhook, tried_at=WebhookFactory().created_at)
    else:
        DeliveryFactory(webhook=webhook, status="sending")

    assert breaches("a_delivery_that_is_due_has_its_turn") == []


@pytest.mark.parametrize("removed", [LONG, 1])
def test_what_waits_for_a_webhook_that_was_removed_is_dropped_by_then(removed):
    webhook = age(WebhookFactory(), LONG)
    delivery = age(DeliveryFactory(webhook=webhook), LONG)
    write(webhook, removed_at=clock.now() - timedelta(seconds=removed))

    expected = [("delivery", delivery.pk)] if removed == LONG else []
    assert breaches("a_delivery_that_is_due_has_its_turn") == expected


def test_events_that_nobody_follows():
    webhook = age(WebhookFactory(), LONG)
    assert breaches("events_are_followed_for_webhooks") == []
    age(WebhookTail.objects.get(), LONG)

    assert breaches("events_are_followed_for_webhooks") == [("webhook", webhook.pk)]
