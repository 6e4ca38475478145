import pytest

from tests.factories import DeliveryFactory, WebhookFactory, events_of
from webhooks.models import Delivery, Topic, Webhook

pytestmark = [pytest.mark.edge, pytest.mark.django_db]
URL = "https://hooks.example.com/ade?key=1"


@pytest.fixture
def webhook(workspace):
    return WebhookFactory(workspace=workspace, name="ledger")


def test_add_shows_the_secret_once(manage, workspace):
    ended = manage("webhook", "add", URL, "--workspace", "Aster", "--name", "ledger", "--as", "olga", "--json")

    webhook = Webhook.objects.get()
    assert (ended.code, ended.json["id"], ended.json["url"]) == (0, webhook.pk, URL)
    assert webhook.topics == Topic.values
    assert ended.json["secret"].startswith("whsec_")
    assert events_of(webhook).get().actor == "olga (command)"
    assert ended.json["secret"] not in manage("webhook", "show", webhook.pk, "--json").out


def test_add_says_what_it_does_not_take(manage, workspace):
    ended = manage("webhook", "add", "http://10.0.0.1/", "--workspace", "Aster", "--name", "x", "--json")

    assert ended.code == 1
    assert not Webhook.objects.exists()


def test_add_asks_for_topics_that_there_are(manage, workspace):
    assert manage("webhook", "add", URL, "--workspace", "Aster", "--name", "x", "--topic", "all").code == 2


def test_list_shows_those_of_a_workspace(manage, webhook):
    WebhookFactory()

    ended = manage("webhook", "list", "--workspace", "Aster", "--json")

    assert [row["name"] for row in ended.json["webhooks"]] == ["ledger"]


def test_pause_and_resume(manage, webhook):
    paused = manage("webhook", "pause", webhook.pk, webhook.pk + 1, "--reason", "moving", "--as", "olga", "--json")
    webhook.refresh_from_db()

    assert paused.code == 6
    assert [row["result"] for row in paused.json["webhooks"]] == ["paused", "not found"]
    assert (webhook.state, webhook.paused_by, webhook.paused_for) == ("paused", "olga (command)", "moving")
    assert manage("webhook", "pause", webhook.pk).code == 1
    assert manage("webhook", "resume", webhook.pk).code == 0
    assert manage("webhook", "resume", webhook.pk).code == 1


def test_rotate_shows_a_new_secret(manage, webhook):
    ended = manage("webhook", "rotate", webhook.pk, "--json")

    assert ended.json["secret"].startswith("whsec_")
    assert ended.json["earlier_expires_at"]
    assert manage("webhook", "rotate", webhook.pk).code == 1
    assert manage("webhook", "rotate", webhook.pk, "--drop", "newest").code == 0


def test_remove_leaves_its_history(manage, webhook):
    assert manage("webhook", "remove", webhook.pk).code == 0

    assert manage("webhook", "show", webhook.pk).code == 6
    assert events_of(webhook).last().kind == "WEBHOOK_REMOVED"


def test_ping_queues_a_delivery(manage, webhook):
    ended = manage("webhook", "ping", webhook.pk, "--json")

    assert Delivery.objects.get(pk=ended.json["id"]).topic == "ping"


def test_deliveries_are_listed_by_status(manage, webhook):
    DeliveryFactory(webhook=webhook)
    failed = DeliveryFactory(webhook=webhook, status="failed")

    ended = manage("webhook", "deliveries", webhook.pk, "--status", "failed", "--json")

    assert [row["id"] for row in ended.json["deliveries"]] == [failed.pk]
    assert "nobody answered" in manage("webhook", "deliveries", webhook.pk).out


def test_resend_makes_a_new_delivery_of_each(manage, webhook):
    failed = DeliveryFactory(webhook=webhook, status="failed")

    ended = manage("webhook", "resend", failed.pk, "--json")

    (row,) = ended.json["deliveries"]
    assert (ended.code, row["result"]) == (0, "queued again")
    assert Delivery.objects.get(pk=row["new_delivery"]).resend_of == failed.pk
