from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Query, Router, Schema
from pydantic import Field

from api.callers import ADMIN, caller_of
from api.errors import Problem
from api.frame import In, Out, empty_to_null, responses
from api.idempotency import create_once
from api.pages import Listing, Page, page
from webhooks import hooks
from webhooks.delivery_history import attempts_of
from webhooks.hooks import ActionRefused
from webhooks.models import Delivery, Webhook
from work.operations.outcomes import Outcome
from workspaces.models import Workspace

routes = Router(tags=["webhooks"])

# Must have the same values as Topic; a test compares them.
TopicName = Literal[
    "run.succeeded", "run.failed", "run.cancelled", "build.ready", "build.failed", "build.cancelled",
    "document.processed", "document.failed",
]  # fmt: skip
Topics = Annotated[list[TopicName], Field(min_length=1, max_length=50)]
Url = Annotated[str, Field(min_length=1, max_length=2000)]
Name = Annotated[str, Field(min_length=1, max_length=hooks.LONGEST_NAME)]


class WebhookOut(Out):
    id: int
    workspace_id: int
    name: str
    url: str
    topics: list[TopicName]
    state: Literal["active", "paused", "removed"]
    paused_at: datetime | None
    paused_by: str | None
    paused_for: str | None
    earlier_expires_at: Annotated[datetime | None, Field(description="until then, the previous secret is also valid")]
    created_at: datetime
    created_by: str


class WithSecret(WebhookOut):
    secret: Annotated[str | None, Field(description="shown only once; null in a repeated response")]


class DeliveryOut(Out):
    id: int
    webhook_id: int
    topic: str
    event_id: int | None
    resend_of: int | None
    status: Literal["queued", "sending", "delivered", "failed"]
    attempts: int
    answered: Annotated[int | None, Field(description="status of the last response")]
    failure_type: str | None
    error_message: str | None
    created_at: datetime
    next_attempt_at: Annotated[datetime | None, Field(description="null unless queued")]
    finished_at: datetime | None


class Attempt(Schema):
    at: datetime
    event: str
    message: str
    status: int | None
    seconds: float | None
    answer: Annotated[str | None, Field(description="beginning of the response")]


class DeliveryDetail(DeliveryOut):
    payload: dict[str, Any]
    history: list[Attempt]


class NewWebhook(In):
    name: Name
    url: Url
    topics: Topics


class Changes(In):
    name: Name | None = None
    url: Url | None = None
    topics: Topics | None = None


class Rotation(In):
    drop: Annotated[
        Literal["newest", "earlier"] | None, Field(description="secret that ends at once, if two are valid")
    ] = None


class Deliveries(Listing):
    status: Literal["queued", "sending", "delivered", "failed"] | None = None
    topic: TopicName | Literal["ping"] | None = None


@routes.get("/workspaces/{id:id}/webhooks", response=responses({200: Page[WebhookOut]}), auth=ADMIN)
def list_webhooks(request: HttpRequest, id: int, listing: Query[Listing]) -> dict[str, Any]:
    workspace = _find_as_admin(request, id)
    return page(Webhook.objects.there().filter(workspace=workspace), listing, row_of)


@routes.post("/workspaces/{id:id}/webhooks", response=responses({201: WithSecret}, 409, 422), auth=ADMIN)
def add_webhook(request: HttpRequest, id: int, body: NewWebhook) -> HttpResponseBase:
    """Add a webhook, which is notified when work of the workspace ends. Its secret is shown only once."""
    workspace, actor = _find_as_admin(request, id), caller_of(request).actor

    def make() -> dict[str, Any]:
        with _refusals():
            webhook, secret = hooks.add(workspace, **body.dict(), actor=actor)
        return row_of(webhook) | {"secret": secret}

    return create_once(request, 201, make, unkept=("secret",))


@routes.get("/webhooks/{id:id}", response=responses({200: WebhookOut}), auth=ADMIN)
def show_webhook(request: HttpRequest, id: int) -> dict[str, Any]:
    return row_of(_webhook(request, id))


@routes.patch("/webhooks/{id:id}", response=responses({200: WebhookOut}, 409), auth=ADMIN)
def change_webhook(request: HttpRequest, id: int, body: Changes) -> dict[str, Any]:
    """Change the name, URL or topics of a webhook. Waiting deliveries go to the new URL."""
    webhook = _webhook(request, id)
    with _refusals():
        hooks.change(webhook, body.dict(exclude_none=True), actor=caller_of(request).actor)
    return row_of(_webhook(request, id))


@routes.delete("/webhooks/{id:id}", response=responses({200: WebhookOut}), auth=ADMIN)
def remove_webhook(request: HttpRequest, id: int) -> dict[str, Any]:
    """Remove a webhook. Waiting deliveries are not sent."""
    webhook = _webhook(request, id)
    hooks.remove(webhook, actor=caller_of(request).actor)
    webhook.refresh_from_db()
    return row_of(webhook)


@routes.post("/webhooks/{id:id}/pause", response=responses({200: WebhookOut}, 409), auth=ADMIN)
def pause_webhook(request: HttpRequest, id: int) -> dict[str, Any]:
    """Pause a webhook. Deliveries wait until it is resumed."""
    webhook = _webhook(request, id)
    _expect(Outcome.PAUSED, hooks.pause(webhook, actor=caller_of(request).actor), webhook)
    return row_of(_webhook(request, id))


@routes.post("/webhooks/{id:id}/resume", response=responses({200: WebhookOut}, 409), auth=ADMIN)
def resume_webhook(request: HttpRequest, id: int) -> dict[str, Any]:
    webhook = _webhook(request, id)
    _expect(Outcome.RESUMED, hooks.resume(webhook, actor=caller_of(request).actor), webhook)
    return row_of(_webhook(request, id))


@routes.post("/webhooks/{id:id}/rotate", response=responses({200: WithSecret}, 409), auth=ADMIN)
def rotate_secret(request: HttpRequest, id: int, body: Rotation | None = None) -> dict[str, Any]:
    """Create a new secret, shown only once. The previous one stays valid for 24 hours.

    Deliveries are signed with both secrets. To rotate again in that time, choose the secret to drop.
    """
    webhook, drop = _webhook(request, id), body.drop if body else None
    with _refusals():
        secret = hooks.rotate(webhook, drop=drop, actor=caller_of(request).actor)
    if secret is None:
        raise Problem("conflict", "Another request has just rotated this secret.", {"webhook": id})
    return row_of(_webhook(request, id)) | {"secret": secret}


@routes.post("/webhooks/{id:id}/ping", response=responses({201: DeliveryOut}, 422), auth=ADMIN)
def ping_webhook(request: HttpRequest, id: int) -> HttpResponseBase:
    """Send a test delivery with the topic `ping` to a webhook."""
    webhook, actor = _webhook(request, id), caller_of(request).actor
    return create_once(request, 201, lambda: delivery_row(hooks.ping(webhook, actor=actor)))


@routes.get("/webhooks/{id:id}/deliveries", response=responses({200: Page[DeliveryOut]}), auth=ADMIN)
def list_deliveries(request: HttpRequest, id: int, listing: Query[Deliveries]) -> dict[str, Any]:
    webhook = _webhook(request, id)
    return page(Delivery.objects.filter(webhook=webhook, **listing.filters()), listing, delivery_row)


@routes.get("/deliveries/{id:id}", response=responses({200: DeliveryDetail}), auth=ADMIN)
def show_delivery(request: HttpRequest, id: int) -> dict[str, Any]:
    delivery = _delivery(request, id)
    return delivery_row(delivery) | {"payload": delivery.payload, "history": attempts_of(delivery)}


@routes.post("/deliveries/{id:id}/resend", response=responses({201: DeliveryOut}, 409, 422), auth=ADMIN)
def resend_delivery(request: HttpRequest, id: int) -> HttpResponseBase:
    """Send a delivery again, as a new delivery of the same event."""
    delivery, actor = _delivery(request, id), caller_of(request).actor

    def make() -> dict[str, Any]:
        with _refusals():
            return delivery_row(hooks.resend(delivery, actor=actor))

    return create_once(request, 201, make)


def row_of(webhook: Webhook) -> dict[str, Any]:
    return empty_to_null(WebhookOut.of(webhook))


def delivery_row(delivery: Delivery) -> dict[str, Any]:
    row = empty_to_null(DeliveryOut.of(delivery))
    return row if delivery.status == Delivery.Status.QUEUED else row | {"next_attempt_at": None}


def _find_as_admin(request: HttpRequest, id: int) -> Workspace:
    caller = caller_of(request)
    workspace = caller.find(Workspace, id)
    caller.require_admin(workspace)
    return workspace


def _webhook(request: HttpRequest, id: int) -> Webhook:
    caller = caller_of(request)
    webhook = caller.find(Webhook, id)
    caller.require_admin(webhook.workspace)
    return webhook


def _delivery(request: HttpRequest, id: int) -> Delivery:
    caller = caller_of(request)
    delivery = caller.find(Delivery, id)
    caller.require_admin(delivery.webhook.workspace)
    return delivery


def _expect(wanted: Outcome, outcome: Outcome, webhook: Webhook) -> None:
    if outcome != wanted:
        message = f"Nothing was changed: webhook {webhook.pk} {outcome}."
        raise Problem("conflict", message, {"state": webhook.state})


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except ActionRefused as refused:
        raise Problem(refused.code, str(refused)) from refused
