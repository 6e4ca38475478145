import signal

import pytest

from tests.factories import DocumentFactory, events_of
from tests.feeds import servers
from tests.stepping import until
from tests.webhooks.told import NETWORK
from webhooks import hooks
from webhooks.models import Delivery

pytestmark = pytest.mark.edge

ONE_LANE = {"ADE_LEASE_SECONDS": 1, "ADE_WEBHOOK_NETWORKS": NETWORK, "ADE_SCHEDULES": "false"}


@pytest.fixture
def received(server, workspace):
    server.on("/hook", servers.answering())
    hooks.add(workspace, "all", server.url("/hook"), ["document.processed"], actor="olga")
    return server.asked


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_what_was_sent_and_not_recorded_is_sent_again_and_recognised(programs, workspace, received):
    first = programs.worker("w1", ADE_FAILPOINTS="delivery.sent:kill9", **ONE_LANE)
    DocumentFactory(workspace=workspace, status="processed")
    assert first.code() == -signal.SIGKILL
    assert len(received) == 1

    programs.worker("w2", **ONE_LANE)
    until(lambda: Delivery.objects.filter(status="delivered").exists())

    delivery = Delivery.objects.get()
    assert len(received) == 2
    for name in ("x-ade-delivery", "x-ade-event"):
        assert received[0].headers[name] == received[1].headers[name]
    assert received[0].body == received[1].body
    assert delivery.attempts == 2
    kinds = list(events_of(delivery).values_list("kind", flat=True))
    assert kinds[:2] == ["DELIVERY_QUEUED", "DELIVERY_STARTED"]
    assert kinds[2:] == ["DELIVERY_RELEASED", "RECOVERED", "DELIVERY_STARTED", "DELIVERY_DELIVERED"]


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_two_workers_send_each_once(programs, workspace, received):
    for name in ("w1", "w2"):
        programs.worker(name, **ONE_LANE)

    for _ in range(20):
        DocumentFactory(workspace=workspace, status="processed")
    until(lambda: Delivery.objects.filter(status="delivered").count() == 20)

    assert len({asked.headers["x-ade-event"] for asked in received}) == len(received) == 20


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_a_slow_receiver_holds_up_nobody_else(programs, workspace, server, received):
    server.on("/slow", servers.silent)
    hooks.add(workspace, "slow", server.url("/slow"), ["document.processed"], actor="olga")
    for _ in range(5):
        DocumentFactory(workspace=workspace, status="processed")

    programs.worker("w1", **ONE_LANE)
    until(lambda: "/slow" in server.paths())

    # The slow delivery is still waiting for its timeout of ten seconds.
    until(lambda: Delivery.objects.filter(status="delivered").count() == 5, seconds=9)
    assert server.paths().count("/slow") == 1
