"""The actions that people perform on webhooks, for all interfaces. Each action is recorded with its actor in the
webhook's history.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import IntegrityError, transaction

from feeds.fetching import FetchFailed
from feeds.sources import one_line
from webhooks import addresses, lifecycle, payloads
from webhooks.lifecycle import EARLIER, NEWEST
from webhooks.models import Delivery, Topic, Webhook
from work import clock
from work.operations.outcomes import Outcome
from workspaces.models import Workspace

LONGEST_NAME = 100


class ActionRefused(Exception):
    """The action is refused. The code is for programs and never changes; the message is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def add(workspace: Workspace, name: str, url: str, topics: Iterable[str], *, actor: str) -> tuple[Webhook, str]:
    """Create a webhook and return it with its secret, to be shown once. Raises ActionRefused."""
    values = validate({"name": name, "url": url, "topics": topics})
    try:
        with transaction.atomic():
            return lifecycle.add(workspace, **values, actor=actor)
    except IntegrityError as error:
        raise _name_taken(workspace.pk, values["name"]) from error


def change(webhook: Webhook, values: Mapping[str, Any], *, actor: str) -> bool:
    """Change the name, URL or topics. Return False if the webhook was removed. Raises ActionRefused."""
    valid = validate(values)
    changed = {name: value for name, value in valid.items() if getattr(webhook, name) != value}
    try:
        with transaction.atomic():
            return not changed or lifecycle.change(webhook, changed, actor=actor)
    except IntegrityError as error:
        raise _name_taken(webhook.workspace_id, valid["name"]) from error


def pause(webhook: Webhook, *, actor: str, reason: str = "") -> Outcome:
    is_done = lifecycle.pause(webhook.pk, actor=actor, reason=reason)
    return Outcome.PAUSED if is_done else _not_done(webhook, Outcome.WAS_PAUSED)


def resume(webhook: Webhook, *, actor: str) -> Outcome:
    return Outcome.RESUMED if lifecycle.resume(webhook.pk, actor=actor) else _not_done(webhook, Outcome.NOT_PAUSED)


def remove(webhook: Webhook, *, actor: str) -> Outcome:
    return Outcome.REMOVED if lifecycle.remove(webhook.pk, actor=actor) else Outcome.NOT_FOUND


def rotate(webhook: Webhook, *, drop: str | None = None, actor: str) -> str | None:
    """Create a new secret and return it, to be shown once. Return None if another request has just rotated it, or if
    the webhook was removed. Raises ActionRefused if two secrets are valid and `drop` doesn't say which of them ends,
    because receivers may use either.
    """
    if drop is None and webhook.is_earlier_good(clock.now()):
        raise ActionRefused(
            "conflict",
            f"Two secrets are valid until {webhook.earlier_expires_at:%Y-%m-%d %H:%M} UTC. Choose the one to drop:"
            f" {NEWEST}, which receivers may not know yet, or {EARLIER}, which they may still use.",
        )
    return lifecycle.rotate(webhook, drop=drop or EARLIER, actor=actor)


def ping(webhook: Webhook, *, actor: str) -> Delivery:
    return lifecycle.ping(webhook, payloads.ping_payload(webhook, clock.now()), actor=actor)


def resend(delivery: Delivery, *, actor: str) -> Delivery:
    """Create a new delivery of the same event. Raises ActionRefused if the webhook was removed."""
    if not Webhook.objects.there().filter(pk=delivery.webhook_id).exists():
        raise ActionRefused(
            "conflict", f"Webhook {delivery.webhook_id} was removed. Its deliveries cannot be sent again."
        )
    return lifecycle.resend(delivery, actor=actor)


def validate(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given name, URL and topics in the form in which they are stored. Raises ActionRefused."""
    valid = dict(values)
    if "name" in values:
        valid["name"] = name = one_line(values["name"])
        if not 0 < len(name) <= LONGEST_NAME:
            raise ActionRefused(
                "invalid_request", f"The name must have 1 to {LONGEST_NAME} characters, not {len(name)}."
            )
    if "url" in values:
        try:
            valid["url"] = addresses.normalize(values["url"])
        except FetchFailed as error:
            raise ActionRefused("invalid_request", str(error)) from error
    if "topics" in values:
        topics = set(values["topics"])
        unknown = ", ".join(sorted(topics - set(Topic.values)))
        if unknown or not topics:
            problem = f"Unknown topics: {unknown}" if unknown else "No topics were given"
            raise ActionRefused("invalid_request", f"{problem}. Known topics: {', '.join(Topic.values)}.")
        valid["topics"] = [topic for topic in Topic.values if topic in topics]
    return valid


def _name_taken(workspace_id: int, name: str) -> ActionRefused:
    return ActionRefused("conflict", f"Workspace {workspace_id} already has a webhook named {name}.")


def _not_done(webhook: Webhook, why: Outcome) -> Outcome:
    return why if Webhook.objects.there().filter(pk=webhook.pk).exists() else Outcome.NOT_FOUND
