import json

import pytest

from api import tokens
from api.models import KeptAnswer
from tests.factories import DeliveryFactory, MembershipFactory, UserFactory, WebhookFactory, events_of
from webhooks.models import Delivery, Webhook

pytestmark = [pytest.mark.edge, pytest.mark.django_db]
BODY = {"name": "ledger", "url": "https://hooks.example.com/ade", "topics": ["run.failed", "run.succeeded"]}


@pytest.fixture(autouse=True)
def is_reached_by_http(settings):
    settings.SECURE_SSL_REDIRECT = False


@pytest.fixture
def ada(workspace):
    return MembershipFactory(workspace=workspace, user=UserFactory(username="ada"), role="admin").user


@pytest.fixture
def ask(client, workspace):
    """Send a request with a token of this user for Aster that has all scopes."""

    def as_user(user, scopes=("operate", "admin")):
        _, shown = tokens.issue(workspace, user, f"test {user.api_tokens.count()}", scopes, actor="olga")

        def ask(method, path, body=None, **headers):
            about = {"HTTP_AUTHORIZATION": f"Bearer {shown}", **headers}
            if body is not None:
                about |= {"data": json.dumps(body), "content_type": "application/json"}
            return client.generic(method.upper(), f"/api/v1{path}", **about)

        return ask

    return as_user


@pytest.fixture
def as_ada(ask, ada):
    return ask(ada)


@pytest.fixture
def hook(workspace):
    return WebhookFactory(workspace=workspace, name="hook")


def test_a_webhook_is_added_and_its_secret_shown_once(as_ada, workspace):
    answer = as_ada("post", f"/workspaces/{workspace.pk}/webhooks", BODY)

    made = answer.json()
    assert answer.status_code == 201
    assert made["secret"].startswith("whsec_")
    assert (made["state"], made["topics"]) == ("active", ["run.succeeded", "run.failed"])
    assert made["created_by"].startswith("ada (token ")
    shown = as_ada("get", f"/webhooks/{made['id']}").json()
    assert shown == {name: value for name, value in made.items() if name != "secret"}


def test_who_asks_again_with_the_same_key_gets_the_row_and_not_the_secret(as_ada, workspace):
    key = {"HTTP_IDEMPOTENCY_KEY": "k1"}
    first = as_ada("post", f"/workspaces/{workspace.pk}/webhooks", BODY, **key)

    again = as_ada("post", f"/workspaces/{workspace.pk}/webhooks", BODY, **key)

    assert again.json() == first.json() | {"secret": None}
    assert Webhook.objects.count() == 1
    assert first.json()["secret"] not in KeptAnswer.objects.get().body


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"url": "http://10.0.0.1/"}, 400, "invalid_request"),
        ({"url": "https://169.254.169.254/"}, 400, "invalid_request"),
        ({"url": ""}, 400, "invalid_request"),
        ({"topics": []}, 400, "invalid_request"),
        ({"topics": ["run.began"]}, 400, "invalid_request"),
        ({"topics": ["ping"]}, 400, "invalid_request"),
        ({"name": " \n "}, 400, "invalid_request"),
        ({"name": "hook"}, 409, "conflict"),
        ({"secret": "mine"}, 400, "invalid_request"),
    ],
)
def test_what_is_no_webhook_is_refused(as_ada, workspace, hook, changes, status, code):
    answer = as_ada("post", f"/workspaces/{workspace.pk}/webhooks", BODY | changes)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert Webhook.objects.count() == 1


def test_a_webhook_is_changed(as_ada, hook):
    answer = as_ada("patch", f"/webhooks/{hook.pk}", {"topics": ["build.ready"]})

    assert answer.json()["topics"] == ["build.ready"]
    assert events_of(hook).last().data["before"] == {"topics": hook.topics}
    assert as_ada("patch", f"/webhooks/{hook.pk}", {"url": "http://127.0.0.1:1/"}).status_code == 200
    assert as_ada("patch", f"/webhooks/{hook.pk}", {"url": "http://10.0.0.1/"}).status_code == 400


def test_it_is_paused_and_resumed(as_ada, hook):
    assert as_ada("post", f"/webhooks/{hook.pk}/pause").json()["state"] == "paused"

    refused = as_ada("post", f"/webhooks/{hook.pk}/pause")

    assert (refused.status_code, refused.json()["details"]) == (409, {"state": "paused"})
    assert as_ada("post", f"/webhooks/{hook.pk}/resume").json()["state"] == "active"
    assert as_ada("post", f"/webhooks/{hook.pk}/resume").status_code == 409


def test_its_secret_is_rotated(as_ada, hook):
    answer = as_ada("post", f"/webhooks/{hook.pk}/rotate")

    assert answer.json()["secret"].startswith("whsec_")
    assert answer.json()["earlier_expires_at"]


def test_its_secret_is_rotated_again_by_who_says_which_one_ends(as_ada, hook):
    first = as_ada("post", f"/webhooks/{hook.pk}/rotate")

    again = as_ada("post", f"/webhooks/{hook.pk}/rotate")
    said = as_ada("post", f"/webhooks/{hook.pk}/rotate", {"drop": "newest"})

    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert said.json()["secret"].startswith("whsec_")
    assert said.json()["secret"] != first.json()["secret"]


def test_it_is_removed(as_ada, hook, workspace):
    assert as_ada("delete", f"/webhooks/{hook.pk}").json()["state"] == "removed"

    assert as_ada("get", f"/webhooks/{hook.pk}").status_code == 404
    assert as_ada("post", f"/webhooks/{hook.pk}/ping").status_code == 404
    assert as_ada("get", f"/workspaces/{workspace.pk}/webhooks").json()["items"] == []


def test_a_ping_is_a_delivery(as_ada, hook):
    answer = as_ada("post", f"/webhooks/{hook.pk}/ping")

    assert answer.status_code == 201
    shown = as_ada("get", f"/deliveries/{answer.json()['id']}").json()
    assert (shown["topic"], shown["status"], shown["attempts"]) == ("ping", "queued", 0)
    assert shown["payload"]["subject"] == {"kind": "webhook", "id": hook.pk}
    assert [each["event"] for each in shown["history"]] == ["DELIVERY_QUEUED"]


def test_deliveries_are_listed_and_sent_again(as_ada, hook):
    DeliveryFactory(webhook=hook)
    failed = DeliveryFactory(webhook=hook, status="failed")
    DeliveryFactory()

    listed = as_ada("get", f"/webhooks/{hook.pk}/deliveries?status=failed").json()["items"]
    again = as_ada("post", f"/deliveries/{failed.pk}/resend")

    assert [row["id"] for row in listed] == [failed.pk]
    assert (again.status_code, again.json()["resend_of"]) == (201, failed.pk)
    assert Delivery.objects.filter(webhook=hook).count() == 3


PATHS = [
    ("get", "/workspaces/{workspace}/webhooks"),
    ("post", "/workspaces/{workspace}/webhooks"),
    ("get", "/webhooks/{webhook}"),
    ("patch", "/webhooks/{webhook}"),
    ("delete", "/webhooks/{webhook}"),
    *(("post", f"/webhooks/{{webhook}}/{verb}") for verb in ("pause", "resume", "rotate", "ping")),
    ("get", "/webhooks/{webhook}/deliveries"),
    ("get", "/deliveries/{delivery}"),
    ("post", "/deliveries/{delivery}/resend"),
]


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_only_admins_come_to_them_and_nobody_from_elsewhere(ask, ada, olga, method, path):
    def asked_of(person, delivery, scopes):
        webhook = delivery.webhook
        ids = {"workspace": webhook.workspace_id, "webhook": webhook.pk, "delivery": delivery.pk}
        body = {"post": BODY, "patch": {}}.get(method) if path.endswith(("webhooks", "{webhook}")) else None
        return ask(person, scopes)(method, path.format(**ids), body).status_code

    mine = DeliveryFactory(webhook__workspace=ada.memberships.get().workspace)
    others = DeliveryFactory()

    assert asked_of(olga, mine, ["operate", "admin"]) == 403
    assert asked_of(ada, mine, ["operate"]) == 403
    assert asked_of(ada, others, ["operate", "admin"]) == 404
    assert Webhook.objects.filter(paused_at=None, removed_at=None).count() == 2
