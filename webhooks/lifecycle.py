"""The verbs of webhooks, and the state machine of deliveries with its verbs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from documents import backoff
from webhooks import signing
from webhooks.models import PING, Delivery, Webhook, WebhookTail
from work import clock, lifecycle, wakeups
from work.claims import Claim
from work.lifecycle import Data
from work.pruning import in_batches
from work.recovery import LostClaim
from work.state_machine import By, StateMachine, Transition
from work.tail import Position
from workspaces.models import Workspace

WEBHOOK_STATES = StateMachine(
    kind="webhook",
    model=Webhook,
    initial="",
    created="WEBHOOK_ADDED",
    table={},
    events={
        "WEBHOOK_ADDED": "A person added it; the data have its name, host and topics.",
        "WEBHOOK_CHANGED": (
            "A person changed its name, URL or topics; the data have the new values and the values `before` (only the"
            " host of a URL)."
        ),
        "WEBHOOK_PAUSED": "A person paused it, or its receiver answered 410; the message is the reason.",
        "WEBHOOK_RESUMED": "A person resumed it.",
        "WEBHOOK_SECRET_ROTATED": "A person created a new secret; the data say until when the earlier one is valid.",
        "WEBHOOK_REMOVED": "A person removed it.",
    },
)
_Status = Delivery.Status
DELIVERY_STATES = StateMachine(
    kind="delivery",
    model=Delivery,
    initial=_Status.QUEUED,
    created="DELIVERY_QUEUED",
    table={
        "start": Transition((_Status.QUEUED,), _Status.SENDING, By.WORKER, "DELIVERY_STARTED"),
        "succeed": Transition((_Status.SENDING,), _Status.DELIVERED, By.HOLDER, "DELIVERY_DELIVERED"),
        "postpone": Transition((_Status.SENDING,), _Status.QUEUED, By.HOLDER, "DELIVERY_POSTPONED"),
        "fail": Transition((_Status.SENDING,), _Status.FAILED, By.HOLDER, "DELIVERY_FAILED"),
        "drop": Transition((_Status.QUEUED,), _Status.FAILED, By.POLICY, "DELIVERY_DROPPED"),
        "release": Transition((_Status.SENDING,), _Status.QUEUED, By.RECOVERY, "DELIVERY_RELEASED"),
        "give_up": Transition((_Status.SENDING,), _Status.FAILED, By.RECOVERY, "DELIVERY_FAILED"),
    },
    events={
        "DELIVERY_QUEUED": "Work ended that its webhook subscribes to, or a person sent a ping or resent a delivery.",
        "DELIVERY_STARTED": "A worker claimed it.",
        "DELIVERY_DELIVERED": (
            "The answer was 200 to 299; the data have `status`, `seconds` and the start of the `answer`."
        ),
        "DELIVERY_POSTPONED": "It was not accepted, and is sent again later; the same data.",
        "DELIVERY_FAILED": (
            "It is not sent again: the receiver refused it for good, or the last attempt failed; the same data."
        ),
        "DELIVERY_DROPPED": "Its webhook was removed, or it waited for too long.",
        "DELIVERY_RELEASED": "Its worker was lost; it may have been sent.",
    },
)

# The pauses double from the first to the longest, so 18 attempts take 15 to 30 hours.
ATTEMPTS = 18
FIRST_SECONDS, LONGEST_SECONDS = 10.0, 4 * 3600.0
_LAST_ATTEMPT = f"This was the last of {ATTEMPTS} attempts."
# How long the previous secret stays valid after a rotation, for receivers that only know that one.
OVERLAP = timedelta(hours=24)
# Which of two valid secrets to drop.
NEWEST, EARLIER = "newest", "earlier"
_NOT_REMOVED: dict[str, Any] = {"removed_at__isnull": True}
_NOT_PAUSED: dict[str, Any] = {"paused_at": None, "paused_by": "", "paused_for": ""}


def add(workspace: Workspace, name: str, url: str, topics: Sequence[str], *, actor: str) -> tuple[Webhook, str]:
    """Create a webhook and return it with its secret, to be shown once. Raises IntegrityError if the name is taken."""
    secret, columns = _new_secret()
    values = {"workspace_id": workspace.pk, "name": name, "url": url, "topics": list(topics), **columns}
    with transaction.atomic():
        # While there are no webhooks, events are not followed. So the position is moved to now just before the first
        # webhook is created, and all later events are followed. The lock makes requests that create a first webhook
        # wait for each other.
        WebhookTail.objects.get_or_create(pk=WebhookTail.ONLY)
        WebhookTail.objects.select_for_update().get(pk=WebhookTail.ONLY)
        if not Webhook.objects.there().exists():
            WebhookTail.objects.filter(pk=WebhookTail.ONLY).update(position=Position.now().to_text())
        values |= {"created_by": actor[: lifecycle.ACTOR_CHARACTERS], "tried_at": clock.now()}
        webhook: Webhook = lifecycle.create_one(WEBHOOK_STATES, values, actor=actor, data=_public_values(values))
    return webhook, secret


def change(webhook: Webhook, values: Data, *, actor: str) -> bool:
    """Change the name, URL or topics. Raises IntegrityError if the name is taken."""
    before = _public_values({name: getattr(webhook, name) for name in values})
    data = {"before": before, **_public_values(values)}
    return lifecycle.record(
        WEBHOOK_STATES, webhook.pk, "WEBHOOK_CHANGED", actor=actor, data=data, guards=_NOT_REMOVED, **values
    )


def pause(webhook_id: int, *, actor: str, reason: str = "") -> bool:
    """Pause a webhook. Return False if it is already paused, or was removed."""
    values: dict[str, Any] = {"paused_at": clock.now(), "paused_by": actor, "paused_for": reason[:500]}
    guards = {"paused_at__isnull": True, **_NOT_REMOVED}
    return lifecycle.record(
        WEBHOOK_STATES, webhook_id, "WEBHOOK_PAUSED", actor=actor, message=reason, guards=guards, **values
    )


def resume(webhook_id: int, *, actor: str) -> bool:
    """Resume a webhook; waiting deliveries become due. Return False if it is not paused, or was removed."""
    guards = {"paused_at__isnull": False, **_NOT_REMOVED}
    is_resumed = lifecycle.record(
        WEBHOOK_STATES, webhook_id, "WEBHOOK_RESUMED", actor=actor, guards=guards, **_NOT_PAUSED
    )
    if is_resumed:
        wakeups.ring(DELIVERY_STATES.kind)
    return is_resumed


def rotate(webhook: Webhook, *, drop: str = EARLIER, actor: str) -> str | None:
    """Create a new secret and return it, to be shown once. The previous secret stays valid for a while. If two are
    valid now, the one that `drop` names ends at once. Return None if another request has just rotated the secret.
    """
    secret, columns = _new_secret()
    now = clock.now()
    has_two = webhook.is_earlier_good(now)
    columns["earlier_expires_at"] = now + OVERLAP
    if drop != NEWEST or not has_two:
        columns |= {"earlier_salt": webhook.salt, "earlier_sha256": webhook.secret_sha256}
    data = {"earlier_expires_at": (now + OVERLAP).isoformat(), **({"dropped": drop} if has_two else {})}
    guards = {"salt": webhook.salt, **_NOT_REMOVED}
    is_rotated = lifecycle.record(
        WEBHOOK_STATES, webhook.pk, "WEBHOOK_SECRET_ROTATED", actor=actor, data=data, guards=guards, **columns
    )
    return secret if is_rotated else None


def remove(webhook_id: int, *, actor: str) -> bool:
    """Mark a webhook as removed. Waiting deliveries are not sent, and `upkeep` drops them later because there may be
    many. Finished deliveries stay visible for a while. Return False if it was already removed.
    """
    values: dict[str, Any] = {"removed_at": clock.now(), **_NOT_PAUSED}
    return lifecycle.record(WEBHOOK_STATES, webhook_id, "WEBHOOK_REMOVED", actor=actor, guards=_NOT_REMOVED, **values)


def deliver(event_id: int | None, topic: str, payload: Data, webhook_ids: Sequence[int]) -> list[int]:
    """Create a delivery for each webhook. Call it in the transaction that saves the position of the event."""
    if not webhook_ids:
        return []
    values = {"event_id": event_id, "topic": topic, "payload": dict(payload)}
    return lifecycle.create(DELIVERY_STATES, values, varying={"webhook_id": list(webhook_ids)})


def ping(webhook: Webhook, payload: Data, *, actor: str) -> Delivery:
    values = {"webhook_id": webhook.pk, "topic": PING, "payload": dict(payload)}
    delivery: Delivery = lifecycle.create_one(DELIVERY_STATES, values, actor=actor)
    return delivery


def resend(delivery: Delivery, *, actor: str) -> Delivery:
    """Create a new delivery of the same event; the old one doesn't change."""
    values = {name: getattr(delivery, name) for name in ("webhook_id", "event_id", "topic", "payload")}
    message = f"Repeats delivery {delivery.pk}."
    new: Delivery = lifecycle.create_one(
        DELIVERY_STATES, values | {"resend_of": delivery.pk}, actor=actor, message=message
    )
    return new


def claim_next_delivery(owner: str) -> Claim | None:
    claim = lifecycle.claim_next(DELIVERY_STATES, "start", owner, Delivery.objects.claimable, "webhook_id", "attempts")
    if claim is not None:
        Webhook.objects.filter(pk=claim.values["webhook_id"]).update(tried_at=clock.now())
    return claim


def succeed(claim: Claim, status: int, data: Data) -> bool:
    return lifecycle.finish(claim, "succeed", data=data, error_message="", **_attempt(claim, status))


def postpone(claim: Claim, status: int | None, message: str, data: Data, retry_after: float | None) -> bool:
    """Queue the delivery for another attempt, or fail it if this was the last one."""
    values = _attempt(claim, status)
    if values["attempts"] >= ATTEMPTS:
        return fail(claim, status, "ATTEMPTS_EXHAUSTED", f"{message.rstrip('.')}. {_LAST_ATTEMPT}", data)
    pause = backoff.seconds(values["attempts"], first=FIRST_SECONDS, longest=LONGEST_SECONDS)
    if retry_after is not None:
        # A receiver that asks for an immediate retry still has to wait for the usual pause.
        pause = max(pause, backoff.seconds(values["attempts"], retry_after))
    values |= {"next_attempt_at": clock.now() + timedelta(seconds=pause), "error_message": message}
    return lifecycle.finish(claim, "postpone", message=message, data=data, **values)


def fail(
    claim: Claim,
    status: int | None,
    failure_type: str,
    message: str,
    data: Data,
    *,
    also: Callable[[], object] | None = None,
) -> bool:
    values = _attempt(claim, status) | {"failure_type": failure_type, "error_message": message}
    return lifecycle.finish(claim, "fail", also=also, message=message, data=data, **values)


def fail_for_good(claim: Claim, status: int, message: str, data: Data) -> bool:
    """Fail the delivery and pause its webhook, because the receiver wants no further deliveries."""

    def pause_webhook() -> None:
        pause(claim.values["webhook_id"], actor=claim.holder.owner, reason=message)

    return fail(claim, status, "RECEIVER_GONE", message, data, also=pause_webhook)


def rescue(lost: LostClaim) -> str | None:
    """Recover a delivery whose worker is gone. Queue it again, because it is unknown whether it was sent; but fail it
    if its attempts are used up.
    """
    attempts, guards = F("attempts") + lost.losses, {"attempts__lt": ATTEMPTS - lost.losses}
    if lost.move("release", message=lost.rule, guards=guards, attempts=attempts, error_message=lost.rule):
        wakeups.ring(DELIVERY_STATES.kind)
        return "release"
    message = f"{lost.rule.rstrip('.')}. {_LAST_ATTEMPT}"
    values: dict[str, Any] = {"failure_type": lost.failure_type, "attempts": attempts, "error_message": message}
    return lost.move("give_up", message=message, **values)


def drop(which: Q, why: str, *, actor: str) -> Iterator[int]:
    """Fail waiting deliveries without sending them. Yield the number of rows after each short transaction."""
    values: dict[str, Any] = {"message": why, "failure_type": "DROPPED", "error_message": why}

    def drop_batch(ids: list[int]) -> Mapping[str, int]:
        with transaction.atomic():
            dropped = sum(lifecycle.move(DELIVERY_STATES, id, "drop", actor=actor, **values) for id in ids)
            return {"deliveries": dropped}

    queued = Delivery.objects.filter(which, status=Delivery.Status.QUEUED)
    for batch in in_batches(queued, drop_batch, moment="next_attempt_at"):
        yield sum(batch.gone.values())


def _attempt(claim: Claim, status: int | None) -> dict[str, Any]:
    return {"attempts": claim.values["attempts"] + 1, "answered": status}


def _new_secret() -> tuple[str, dict[str, Any]]:
    salt = signing.new_salt()
    secret = signing.secret_of(salt)
    return secret, {"salt": salt, "secret_sha256": signing.hash_of(secret)}


def _public_values(values: Data) -> dict[str, Any]:
    """Return the values that a history may show. The path of the URL is left out because it may contain a secret."""
    public = {name: values[name] for name in ("name", "topics") if name in values}
    return public | ({"host": host_of(values["url"])} if "url" in values else {})


def host_of(url: str) -> str:
    return url.split("/")[2]
