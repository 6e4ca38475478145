"""Sends one delivery. If the worker dies meanwhile, the delivery may be sent twice; its headers let the receiver
recognise that.
"""

import json
import time
from typing import Any

from feeds.fetching import FetchFailed
from feeds.fetching.posting import PostResponse, post
from webhooks import lifecycle, signing
from webhooks.addresses import reach_of
from webhooks.models import Delivery
from work import clock, failpoints
from work.claims import Claim

GONE = 410
LONGEST_ANSWER = 200


class NotAccepted(Exception):
    """The receiver did not accept the delivery. The message is for people."""

    def __init__(
        self, message: str, seconds: float, posted: PostResponse | None = None, failure_type: str = ""
    ) -> None:
        super().__init__(message)
        self.seconds, self.posted = seconds, posted
        # Set only if another attempt can't succeed.
        self.failure_type = failure_type


EXPECTED = (NotAccepted,)


def do(claim: Claim) -> tuple[PostResponse, float]:
    """Send the delivery. Return the response, and how many seconds it took. Raises NotAccepted."""
    delivery = Delivery.objects.select_related("webhook").get(pk=claim.id)
    if delivery.webhook.removed_at:
        raise NotAccepted("The webhook was removed.", 0.0, failure_type="DROPPED")
    claim.go_on()
    webhook, began = delivery.webhook, time.monotonic()
    # The body is the same at each attempt.
    body = json.dumps(delivery.payload, sort_keys=True, separators=(",", ":")).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "ADE (webhooks)",
        "X-ADE-Topic": delivery.topic,
        "X-ADE-Delivery": str(delivery.pk),
    }
    if delivery.event_id:
        headers["X-ADE-Event"] = str(delivery.event_id)
    try:
        headers["X-ADE-Signature"] = signing.signature(webhook, body, clock.now())
        posted = post(webhook.url, body, headers, reach_of(webhook.url))
    except signing.SecretLost as error:
        raise NotAccepted(str(error), 0.0) from error
    except FetchFailed as error:
        raise NotAccepted(str(error), time.monotonic() - began) from error
    failpoints.hit("delivery.sent")
    seconds = time.monotonic() - began
    if not 200 <= posted.status < 300:
        raise NotAccepted(
            f"The receiver answered {posted.words}. Only statuses from 200 to 299 count as delivered.", seconds, posted
        )
    return posted, seconds


def succeed(claim: Claim, sent: tuple[PostResponse, float]) -> bool:
    posted, seconds = sent
    return lifecycle.succeed(claim, posted.status, _data(posted, seconds))


def fail(claim: Claim, error: BaseException) -> bool:
    if not isinstance(error, NotAccepted):
        return lifecycle.postpone(claim, None, f"Internal error: {type(error).__name__}.", {}, None)
    posted, data, message = error.posted, _data(error.posted, error.seconds), str(error)
    if error.failure_type:
        return lifecycle.fail(claim, None, error.failure_type, message, data)
    if posted and posted.status == GONE:
        return lifecycle.fail_for_good(claim, GONE, f"The receiver is gone, so the webhook was paused. {message}", data)
    retry_after = posted.retry_after if posted else None
    return lifecycle.postpone(claim, posted.status if posted else None, message, data, retry_after)


def _data(posted: PostResponse | None, seconds: float) -> dict[str, Any]:
    data: dict[str, Any] = {"seconds": round(seconds, 3)}
    return data | {"status": posted.status, "answer": posted.start[:LONGEST_ANSWER]} if posted else data
