import time
from types import SimpleNamespace

import pytest

from api.models import Delivery
from api.webhooks import hooks, upkeep
from runs.jobs import job_named
from tests.factories import W1, DeliveryFactory, age, events_of, write
from work import clock
from work.models import Event

pytestmark = pytest.mark.django_db
DAYS = 24 * 3600


@pytest.fixture
def turn():
    return SimpleNamespace(owner=W1, go_on=lambda: None)


def test_it_is_a_job_of_the_schedule():
    assert job_named("webhook_upkeep") is upkeep.WEBHOOK_UPKEEP


def test_what_ended_long_ago_goes_with_its_history(turn, webhook, settings):
    settings.ADE_KEEP_DELIVERIES_DAYS = 30
    old = [age(DeliveryFactory(webhook=webhook, status=status), 31 * DAYS) for status in ("delivered", "failed")]
    young = age(DeliveryFactory(webhook=webhook, status="delivered"), 29 * DAYS)

    # With three events, and with two.
    assert upkeep.keep_up(turn) == 2 + 5

    assert list(Delivery.objects.all()) == [young]
    assert not Event.objects.filter(subject_kind="delivery", subject_id__in=[each.pk for each in old]).exists()


def test_what_has_waited_for_too_long_is_not_sent(turn, webhook, settings):
    settings.ADE_KEEP_DELIVERIES_DAYS = 30
    hooks.pause(webhook, actor="olga")
    old, young = age(DeliveryFactory(webhook=webhook), 31 * DAYS), DeliveryFactory(webhook=webhook)

    upkeep.keep_up(turn)

    old.refresh_from_db()
    young.refresh_from_db()
    assert (old.status, young.status) == ("failed", "queued")
    assert events_of(old).last().kind == "DELIVERY_DROPPED"


def test_what_waits_for_a_webhook_that_is_gone_is_not_sent(turn, webhook):
    write(webhook, removed_at=clock.now())
    delivery = DeliveryFactory(webhook=webhook)

    upkeep.keep_up(turn)

    delivery.refresh_from_db()
    assert delivery.failure_type == "DROPPED"


def test_for_ever_is_for_ever(turn, webhook, settings):
    settings.ADE_KEEP_DELIVERIES_DAYS = None
    age(DeliveryFactory(webhook=webhook, status="delivered"), 5000 * DAYS)

    began = time.monotonic()
    assert upkeep.keep_up(turn) == 0
    assert time.monotonic() - began < 5
