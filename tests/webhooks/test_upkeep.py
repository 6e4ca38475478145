import time
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from schedules.jobs import job_named
from tests.factories import W1, DeliveryFactory, WebhookFactory, age, events_of, write
from webhooks import hooks, lifecycle, upkeep, work_types
from webhooks.models import Delivery
from work import clock, pruning
from work.claims import Interrupted
from work.models import Event
from work.operations.outcomes import Outcome

pytestmark = [pytest.mark.edge, pytest.mark.django_db]
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

    # The two deliveries, and their three and two events.
    assert upkeep.maintain_deliveries(turn) == 2 + 5

    assert list(Delivery.objects.all()) == [young]
    assert not Event.objects.filter(subject_kind="delivery", subject_id__in=[each.pk for each in old]).exists()


def test_what_has_waited_for_too_long_is_not_sent(turn, webhook, settings):
    settings.ADE_KEEP_DELIVERIES_DAYS = 30
    hooks.pause(webhook, actor="olga")
    old, young = age(DeliveryFactory(webhook=webhook), 31 * DAYS), DeliveryFactory(webhook=webhook)

    upkeep.maintain_deliveries(turn)

    old.refresh_from_db()
    young.refresh_from_db()
    assert (old.status, young.status) == ("failed", "queued")
    assert events_of(old).last().kind == "DELIVERY_DROPPED"


def test_what_waits_for_a_webhook_that_is_gone_is_not_sent(turn, webhook):
    write(webhook, removed_at=clock.now())
    delivery = DeliveryFactory(webhook=webhook)

    upkeep.maintain_deliveries(turn)

    delivery.refresh_from_db()
    assert delivery.failure_type == "DROPPED"


def many_of(webhook, number):
    for id in range(1, number + 1):
        lifecycle.deliver(id, "run.failed", {}, [webhook.pk])
    return Delivery.objects.filter(webhook=webhook)


def test_a_webhook_is_removed_as_quickly_however_much_waits_for_it(turn, webhook):
    other = WebhookFactory()
    many_of(other, 1)
    waiting = many_of(webhook, 300)

    with CaptureQueriesContext(connection) as few:
        hooks.remove(other, actor="olga")
    with CaptureQueriesContext(connection) as many:
        assert hooks.remove(webhook, actor="olga") == Outcome.REMOVED

    assert len(many) == len(few) < 10
    assert waiting.filter(status="queued").count() == 300
    assert lifecycle.claim_next_delivery(W1) is None
    assert upkeep.maintain_deliveries(turn) == 301
    assert waiting.filter(status="failed", failure_type="DROPPED").count() == 300
    assert {events_of(delivery).last().kind for delivery in waiting} == {"DELIVERY_DROPPED"}


def test_workers_drop_some_of_it_at_a_time(webhook, monkeypatch):
    monkeypatch.setattr(upkeep, "SECONDS_AT_ONCE", 0)
    waiting = many_of(webhook, pruning.FIRST + 1)
    hooks.remove(webhook, actor="olga")
    assert upkeep.drop_of_removed in [task.do for task in work_types.DELIVERY.periodic_tasks]

    upkeep.drop_of_removed(W1)
    left = waiting.filter(status="queued").count()
    upkeep.drop_of_removed(W1)

    assert left == 1
    assert not waiting.filter(status="queued").exists()


def test_the_job_goes_on_no_longer_than_its_turn(webhook):
    waiting = many_of(webhook, pruning.FIRST + 1)
    hooks.remove(webhook, actor="olga")

    def is_over():
        raise Interrupted("stopping")

    with pytest.raises(Interrupted):
        upkeep.maintain_deliveries(SimpleNamespace(owner=W1, go_on=is_over))

    assert waiting.filter(status="queued").count() == 1


def test_for_ever_is_for_ever(turn, webhook, settings):
    settings.ADE_KEEP_DELIVERIES_DAYS = None
    age(DeliveryFactory(webhook=webhook, status="delivered"), 5000 * DAYS)

    began = time.monotonic()
    assert upkeep.maintain_deliveries(turn) == 0
    assert time.monotonic() - began < 50
