import pytest
from django.urls import reverse

from tests.factories import DeliveryFactory, MembershipFactory, UserFactory, WebhookFactory
from webhooks.models import Delivery, Webhook

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def ada(workspace):
    user = UserFactory(username="ada", is_staff=True)
    return MembershipFactory(workspace=workspace, user=user, role="admin").user


@pytest.fixture
def webhook(workspace):
    return WebhookFactory(workspace=workspace, url="https://hooks.example.com/secret-path")


def list_of(model):
    return reverse(f"admin:webhooks_{model._meta.model_name}_changelist")


def page_of(row, verb="change"):
    if verb == "change":
        return reverse(f"admin:webhooks_{row._meta.model_name}_change", args=[row.pk])
    return f"/admin/webhooks/{row._meta.model_name}/{row.pk}/{verb}/"


def test_admins_of_a_workspace_see_its_webhooks(sign_in, ada, webhook):
    other = WebhookFactory()
    site = sign_in(ada)

    assert list(site.get(list_of(Webhook)).context["cl"].result_list) == [webhook]
    assert "secret-path" in site.get(page_of(webhook)).content.decode()
    assert site.get(page_of(other)).status_code == 302


@pytest.mark.parametrize("who", ["olga", "ravi", "zed"])
def test_others_do_not(sign_in, who, webhook, request):
    delivery = DeliveryFactory(webhook=webhook)
    site = sign_in(request.getfixturevalue(who))

    for model in (Webhook, Delivery):
        assert site.get(list_of(model)).status_code == 403
    for row in (webhook, delivery):
        assert site.get(page_of(row)).status_code in (302, 403)
    assert site.post(page_of(webhook, "pause")).status_code == 404
    assert site.post(page_of(delivery, "resend")).status_code == 404


def test_no_page_shows_what_signs(sign_in, ada, webhook):
    site = sign_in(ada)

    for page in (site.get(list_of(Webhook)), site.get(page_of(webhook))):
        assert webhook.salt not in page.content.decode()


def test_its_buttons(sign_in, said, ada, webhook):
    site = sign_in(ada)

    assert said(site.post(page_of(webhook, "pause"), follow=True)) == ["Paused 1 webhook."]
    assert said(site.post(page_of(webhook, "resume"), follow=True)) == ["Resumed 1 webhook."]
    sent, new = said(site.post(page_of(webhook, "ping"), follow=True))
    assert sent == "Sent a ping to 1 webhook."
    assert new == f'New: <a href="{page_of(Delivery.objects.get())}">delivery {Delivery.objects.get().pk}</a>.'
    site.post(page_of(webhook, "remove"))
    webhook.refresh_from_db()
    assert webhook.state == "removed"


def test_a_delivery_is_sent_again_by_its_button(sign_in, said, ada, webhook):
    delivery = DeliveryFactory(webhook=webhook, status="failed")

    page = sign_in(ada).post(page_of(delivery, "resend"), follow=True)

    new = Delivery.objects.get(resend_of=delivery.pk)
    assert said(page) == ["Queued 1 delivery again.", f'New: <a href="{page_of(new)}">delivery {new.pk}</a>.']
    assert new.event_id == delivery.event_id
