from argparse import ArgumentParser
from typing import Any

from webhooks import hooks
from webhooks.hooks import ActionRefused
from webhooks.lifecycle import EARLIER, NEWEST
from webhooks.models import Delivery, Topic, Webhook
from webhooks.operations import RESEND
from work.operations.commands import (
    AddVerb,
    Answer,
    Exit,
    Failure,
    NounCommand,
    Row,
    actor_of,
    add_actor,
    add_ids,
    add_limit,
    clean,
    events_about,
    fields,
    history,
    not_found,
    of_each,
    table,
)
from work.operations.outcomes import Outcome
from workspaces.commands import find_workspace

COLUMNS = (
    *("id", "workspace_id", "name", "url", "topics", "state", "paused_at", "paused_by", "paused_for"),
    *("earlier_expires_at", "created_at", "created_by"),
)
DELIVERY_COLUMNS = (
    *("id", "webhook_id", "topic", "event_id", "resend_of", "status", "attempts", "answered", "error_message"),
    *("created_at", "next_attempt_at", "finished_at"),
)
EVENTS = 100


class Command(NounCommand):
    help = "Manage webhooks, which are notified when work ends."

    def add_verbs(self, add: AddVerb) -> None:
        adding = add("add", self.add, "Add a webhook and show its secret, only once.")
        adding.add_argument("url", metavar="URL")
        adding.add_argument("--workspace", metavar="WORKSPACE", required=True, help="name or ID of the workspace")
        adding.add_argument("--name", required=True, help="name of the webhook")
        adding.add_argument(
            "--topic",
            dest="topics",
            action="append",
            choices=Topic.values,
            help="topic to subscribe to; repeatable (default: all)",
        )
        add_actor(adding)
        listing = add("list", self.list_webhooks, "List webhooks, newest first.")
        listing.add_argument("--workspace", metavar="WORKSPACE", help="only this workspace (name or ID)")
        add_limit(listing)
        add_ids(add("show", self.show, "Show a webhook and its events."))
        pausing = _of_several(add("pause", self.pause, "Pause webhooks: nothing is sent until they are resumed."))
        pausing.add_argument("--reason", default="", help="reason, shown in the history")
        _of_several(add("resume", self.resume, "Resume paused webhooks and send the waiting deliveries."))
        _of_several(add("remove", self.remove, "Remove webhooks. Waiting deliveries are not sent."))
        rotating = add(
            "rotate", self.rotate, "Create a new secret, shown only once. The old one stays valid for a day."
        )
        add_ids(rotating)
        rotating.add_argument("--drop", choices=[NEWEST, EARLIER], help="secret that ends at once, if two are valid")
        add_actor(rotating)
        pinging = add("ping", self.ping, "Send a test delivery to a webhook.")
        add_ids(pinging)
        add_actor(pinging)
        delivered = add("deliveries", self.deliveries, "List the deliveries of a webhook, newest first.")
        add_ids(delivered)
        delivered.add_argument("--status", choices=Delivery.Status.values, help="only deliveries with this status")
        add_limit(delivered)
        _of_several(add("resend", self.resend, "Send deliveries again, each as a new delivery of the same event."))

    def add(
        self, *, url: str, workspace: str, name: str, topics: list[str] | None, actor: str | None, **_: Any
    ) -> Answer:
        owner = find_workspace(workspace)
        try:
            webhook, secret = hooks.add(owner, name, url, topics or Topic.values, actor=actor_of(actor))
        except ActionRefused as refused:
            raise Failure(str(refused), Exit.REFUSED, refused.code) from refused
        return _with_secret(webhook, secret, f"Added webhook {webhook.pk}, {webhook.name}.")

    def list_webhooks(self, *, workspace: str | None, limit: int, before: int | None, **_: Any) -> Answer:
        webhooks = Webhook.objects.there()
        webhooks = webhooks.filter(workspace=find_workspace(workspace)) if workspace else webhooks
        webhooks = webhooks.filter(pk__lt=before) if before else webhooks
        rows = [_row(webhook) for webhook in webhooks.order_by("-id")[:limit]]
        return Answer({"webhooks": rows}, table(rows, "id", "state", "workspace_id", "name", "url", "topics"))

    def show(self, *, id: int, **_: Any) -> Answer:
        row, events = _row(_webhook(id)), events_about("webhook", id, EVENTS)
        return Answer(row | {"events": events}, f"{fields(row)}\n\n{history(events)}")

    def pause(self, *, ids: list[int], reason: str, actor: str | None, **_: Any) -> Answer:
        return _each(ids, lambda webhook: hooks.pause(webhook, actor=actor_of(actor), reason=reason))

    def resume(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        return _each(ids, lambda webhook: hooks.resume(webhook, actor=actor_of(actor)))

    def remove(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        return _each(ids, lambda webhook: hooks.remove(webhook, actor=actor_of(actor)))

    def rotate(self, *, id: int, drop: str | None, actor: str | None, **_: Any) -> Answer:
        try:
            secret = hooks.rotate(_webhook(id), drop=drop, actor=actor_of(actor))
        except ActionRefused as refused:
            raise Failure(str(refused), Exit.REFUSED, refused.code, id=id) from refused
        if secret is None:
            raise Failure(
                f"Another request has just rotated the secret of webhook {id}.", Exit.REFUSED, "refused", id=id
            )
        webhook = _webhook(id)
        until = f"{webhook.earlier_expires_at:%Y-%m-%d %H:%M}"
        return _with_secret(webhook, secret, f"Webhook {id} has a new secret. The old one is valid until {until} UTC.")

    def ping(self, *, id: int, actor: str | None, **_: Any) -> Answer:
        delivery = hooks.ping(_webhook(id), actor=actor_of(actor))
        return Answer(_delivery_row(delivery), f"Queued delivery {delivery.pk}.")

    def deliveries(self, *, id: int, status: str | None, limit: int, before: int | None, **_: Any) -> Answer:
        deliveries = Delivery.objects.filter(webhook=_webhook(id))
        deliveries = deliveries.filter(status=status) if status else deliveries
        deliveries = deliveries.filter(pk__lt=before) if before else deliveries
        rows = [_delivery_row(delivery) for delivery in deliveries.order_by("-id")[:limit]]
        columns = ("id", "status", "topic", "event_id", "attempts", "answered", "created_at", "error_message")
        return Answer({"deliveries": rows}, table(rows, *columns))

    def resend(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        def again(delivery: Delivery) -> tuple[Outcome, Row]:
            outcome, new = RESEND.apply_to(delivery, actor=actor_of(actor))
            return outcome, {"new_delivery": new.pk} if new else {}

        answer = of_each("delivery", ids, Delivery.objects.in_bulk(ids), again, "new_delivery")
        return Answer({"deliveries": answer.data["deliverys"]}, answer.text, answer.exit)


def _of_several(parser: ArgumentParser) -> ArgumentParser:
    add_ids(parser, many=True)
    add_actor(parser)
    return parser


def _each(ids: list[int], do: Any) -> Answer:
    return of_each("webhook", ids, Webhook.objects.there().in_bulk(ids), lambda webhook: (do(webhook), {}))


def _webhook(id: int) -> Webhook:
    webhook = Webhook.objects.there().filter(pk=id).first()
    if webhook is None:
        raise not_found("webhook", id, "`manage.py webhook list` shows them")
    return webhook


def _row(webhook: Webhook) -> dict[str, Any]:
    return {name: getattr(webhook, name) for name in COLUMNS}


def _delivery_row(delivery: Delivery) -> dict[str, Any]:
    return {name: getattr(delivery, name) for name in DELIVERY_COLUMNS}


def _with_secret(webhook: Webhook, secret: str, message: str) -> Answer:
    text = f"{clean(message)}\nSecret (shown only once): {secret}"
    return Answer(_row(webhook) | {"secret": secret}, text)
