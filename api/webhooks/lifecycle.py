"""What happens to webhooks and to their deliveries."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from api.models import PING, Delivery, Webhook
from api.webhooks import position, signing
from documents import backoff
from documents.models import Workspace
from work import clock, lifecycle, wakeups
from work.claims import Claim
from work.lifecycle import Data
from work.moves import By, Move, Moves
from work.pruning import in_batches
from work.recovery import Found

WEBHOOK = Moves(kind="webhook", model=Webhook, initial="", created="WEBHOOK_ADDED", table={})
DELIVERY = Moves(
    kind="delivery",
    model=Delivery,
    initial="queued",
    created="DELIVERY_QUEUED",
    table={
        "start": Move(("queued",), "sending", By.WORKER, "DELIVERY_STARTED"),
        "succeed": Move(("sending",), "delivered", By.HOLDER, "DELIVERY_DELIVERED"),
        "postpone": Move(("sending",), "queued", By.HOLDER, "DELIVERY_POSTPONED"),
        "fail": Move(("sending",), "failed", By.HOLDER, "DELIVERY_FAILED"),
        "drop": Move(("queued",), "failed", By.POLICY, "DELIVERY_DROPPED"),
        "release": Move(("sending",), "queued", By.RECOVERY, "DELIVERY_RELEASED"),
        "give_up": Move(("sending",), "failed", By.RECOVERY, "DELIVERY_FAILED"),
    },
)

# With pauses that double from the first to the longest, they go on for 15 to 30 hours.
ATTEMPTS = 18
FIRST_SECONDS, LONGEST_SECONDS = 10.0, 4 * 3600.0
# After a rotation, receivers that know only the secret before go on for so long.
OVERLAP = timedelta(hours=24)
# Of two secrets that are good.
NEWEST, EARLIER = "newest", "earlier"
THERE = {"removed_at__isnull": True}


def add(workspace: Workspace, name: str, url: str, topics: Sequence[str], *, actor: str) -> tuple[Webhook, str]:
    """The webhook, and its secret to show once. Raises IntegrityError when there is one of that name."""
    secret, made = _new_secret()
    values = {"workspace_id": workspace.pk, "name": name, "url": url, "topics": list(topics), **made}
    with transaction.atomic():
        # Before its birth: whatever happens after it lies behind.
        position.begin()
        values |= {"created_by": actor[: lifecycle.ACTOR_CHARACTERS], "tried_at": clock.now()}
        webhook: Webhook = lifecycle.create_one(WEBHOOK, values, actor=actor, data=_shown(values))
    return webhook, secret


def change(webhook: Webhook, values: Data, *, actor: str) -> bool:
    """Its name, its url or its topics. Raises IntegrityError when there is another one of that name."""
    data = {"before": _shown({name: getattr(webhook, name) for name in values}), **_shown(values)}
    return lifecycle.record(WEBHOOK, webhook.pk, "WEBHOOK_CHANGED", actor=actor, data=data, guards=THERE, **values)


def pause(webhook_id: int, *, actor: str, reason: str = "") -> bool:
    """False when it is paused already."""
    pauses: dict[str, Any] = {"paused_at": clock.now(), "paused_by": actor, "paused_for": reason[:500]}
    guards: dict[str, Any] = {"paused_at__isnull": True, **THERE}
    return lifecycle.record(WEBHOOK, webhook_id, "WEBHOOK_PAUSED", actor=actor, message=reason, guards=guards, **pauses)


def resume(webhook_id: int, *, actor: str) -> bool:
    """False when it is not paused. What has waited is sent now."""
    goes_on: dict[str, Any] = {"paused_at": None, "paused_by": "", "paused_for": ""}
    guards: dict[str, Any] = {"paused_at__isnull": False, **THERE}
    done = lifecycle.record(WEBHOOK, webhook_id, "WEBHOOK_RESUMED", actor=actor, guards=guards, **goes_on)
    if done:
        wakeups.ring(DELIVERY.kind)
    return done


def rotate(webhook: Webhook, *, drop: str = EARLIER, actor: str) -> str | None:
    """A new secret, to show once; the one before is good for a while. Of two that are good by now one is dropped at
    once. None: somebody else has just made another.
    """
    secret, made = _new_secret()
    now = clock.now()
    until = now + OVERLAP
    earlier: dict[str, Any] = {"earlier_expires_at": until}
    if drop != NEWEST or not webhook.is_earlier_good(now):
        earlier |= {"earlier_salt": webhook.salt, "earlier_sha256": webhook.secret_sha256}
    dropped = {"dropped": drop} if webhook.is_earlier_good(now) else {}
    told: dict[str, Any] = {"actor": actor, "data": {"earlier_expires_at": until.isoformat(), **dropped}}
    guards = {"salt": webhook.salt, **THERE}
    done = lifecycle.record(WEBHOOK, webhook.pk, "WEBHOOK_SECRET_ROTATED", guards=guards, **told, **earlier, **made)
    return secret if done else None


def remove(webhook_id: int, *, actor: str) -> bool:
    """What waits for it is not sent, and `upkeep` drops it: it may be more than anybody wants to wait for. What was
    sent stays to be seen for a while. False when it is gone already.
    """
    gone: dict[str, Any] = {"removed_at": clock.now(), "paused_at": None, "paused_by": "", "paused_for": ""}
    return lifecycle.record(WEBHOOK, webhook_id, "WEBHOOK_REMOVED", actor=actor, guards=THERE, **gone)


def deliver(event_id: int | None, topic: str, payload: Data, webhook_ids: Sequence[int]) -> list[int]:
    """One for each of these webhooks. In the transaction in which it becomes known that they are due."""
    constant = {"event_id": event_id, "topic": topic, "payload": dict(payload)}
    return lifecycle.create(DELIVERY, constant, varying={"webhook_id": list(webhook_ids)}) if webhook_ids else []


def ping(webhook: Webhook, payload: Data, *, actor: str) -> Delivery:
    values = {"webhook_id": webhook.pk, "topic": PING, "payload": dict(payload)}
    delivery: Delivery = lifecycle.create_one(DELIVERY, values, actor=actor)
    return delivery


def resend(delivery: Delivery, *, actor: str) -> Delivery:
    """Always a new delivery, of the same event; the old one stays as it is."""
    values = {name: getattr(delivery, name) for name in ("webhook_id", "event_id", "topic", "payload")}
    told: dict[str, Any] = {"actor": actor, "message": f"delivery {delivery.pk} again"}
    made: Delivery = lifecycle.create_one(DELIVERY, values | {"resend_of": delivery.pk}, **told)
    return made


def claim_next_delivery(owner: str) -> Claim | None:
    claim = lifecycle.claim_next(DELIVERY, "start", owner, Delivery.objects.claimable, "webhook_id", "attempts")
    if claim is not None:
        Webhook.objects.filter(pk=claim.values["webhook_id"]).update(tried_at=clock.now())
    return claim


def succeed(claim: Claim, status: int, data: Data) -> bool:
    return lifecycle.finish(claim, "succeed", data=data, error_message="", **_counted(claim, status))


def postpone(claim: Claim, status: int | None, message: str, data: Data, retry_after: float | None) -> bool:
    """For another attempt, or failed if this was the last."""
    counted = _counted(claim, status)
    if counted["attempts"] >= ATTEMPTS:
        return fail(claim, status, "ATTEMPTS_EXHAUSTED", f"{message}; that was attempt {ATTEMPTS}, the last", data)
    pause = backoff.seconds(counted["attempts"], first=FIRST_SECONDS, longest=LONGEST_SECONDS)
    if retry_after is not None:
        # Somebody who asks to be asked at once has his turn like others.
        pause = max(pause, backoff.seconds(counted["attempts"], retry_after))
    counted |= {"next_attempt_at": clock.now() + timedelta(seconds=pause), "error_message": message}
    return lifecycle.finish(claim, "postpone", message=message, data=data, **counted)


def fail(claim: Claim, status: int | None, failure_type: str, message: str, data: Data) -> bool:
    return _fail(claim, status, failure_type, message, data)


def fail_for_good(claim: Claim, status: int, message: str, data: Data) -> bool:
    """Its receiver wants nothing more: its webhook is paused with it."""

    def pause_it() -> None:
        pause(claim.values["webhook_id"], actor=claim.holder.owner, reason=message)

    return _fail(claim, status, "RECEIVER_GONE", message, data, also=pause_it)


def rescue(found: Found) -> str | None:
    """Back to the queue: whether it was sent, nobody knows. Failed when it has cost all of its attempts."""
    counted: dict[str, Any] = {"attempts": F("attempts") + found.losses, "error_message": found.rule}
    guards = {"attempts__lt": ATTEMPTS - found.losses}
    if found.move("release", message=found.rule, guards=guards, **counted):
        wakeups.ring(DELIVERY.kind)
        return "release"
    counted["error_message"] = message = f"{found.rule}; that was attempt {ATTEMPTS}, the last"
    return found.move("give_up", message=message, failure_type=found.failure_type, **counted)


def drop(which: Q, why: str, *, actor: str) -> Iterator[int]:
    """Those of these that wait are not sent any more; answers how many, after each short transaction."""
    said: dict[str, Any] = {"message": why, "failure_type": "DROPPED", "error_message": why}

    def drop_them(ids: list[int]) -> Mapping[str, int]:
        with transaction.atomic():
            return {"deliveries": sum(lifecycle.move(DELIVERY, id, "drop", actor=actor, **said) for id in ids)}

    waiting = Delivery.objects.filter(which, status="queued")
    for batch in in_batches(waiting, drop_them, moment="next_attempt_at"):
        yield sum(batch.gone.values())


def _fail(
    claim: Claim,
    status: int | None,
    failure_type: str,
    message: str,
    data: Data,
    also: Callable[[], object] | None = None,
) -> bool:
    said = _counted(claim, status) | {"failure_type": failure_type, "error_message": message}
    return lifecycle.finish(claim, "fail", also=also, message=message, data=data, **said)


def _counted(claim: Claim, status: int | None) -> dict[str, Any]:
    return {"attempts": claim.values["attempts"] + 1, "answered": status}


def _new_secret() -> tuple[str, dict[str, Any]]:
    salt = signing.new_salt()
    secret = signing.secret_of(salt)
    return secret, {"salt": salt, "secret_sha256": signing.known_by(secret)}


def _shown(values: Data) -> dict[str, Any]:
    """What a history may tell. Not the path of its URL: receivers hide secrets in it."""
    shown = {name: values[name] for name in ("name", "topics") if name in values}
    return shown | ({"host": host_of(values["url"])} if "url" in values else {})


def host_of(url: str) -> str:
    return url.split("/")[2]
