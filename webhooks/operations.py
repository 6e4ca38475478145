"""The operations that people perform on webhooks and their deliveries: see `work/operations/previews.py`."""

from collections.abc import Callable

from webhooks import hooks
from webhooks.hooks import ActionRefused
from webhooks.models import Delivery, Webhook
from work.operations.outcomes import Outcome, preview_pause, preview_resume
from work.operations.previews import Operation, OperationResult


def ping(webhook: Webhook, *, actor: str) -> Outcome | OperationResult:
    if webhook.removed_at:
        return Outcome.NOT_FOUND
    return OperationResult(Outcome.PINGED, hooks.ping(webhook, actor=actor))


def resend(delivery: Delivery, *, actor: str) -> Outcome | OperationResult:
    try:
        return OperationResult(Outcome.MADE, hooks.resend(delivery, actor=actor))
    except ActionRefused:
        return Outcome.NOT_FOUND


def _if_there(predict: Callable[[Webhook], Outcome]) -> Callable[[Webhook], Outcome]:
    return lambda webhook: Outcome.NOT_FOUND if webhook.removed_at else predict(webhook)


def _predict_resend(delivery: Delivery) -> Outcome:
    return Outcome.NOT_FOUND if delivery.webhook.removed_at else Outcome.MADE


PAUSE = Operation("pause", "Pause", hooks.pause, _if_there(preview_pause), takes_reason=True)
RESUME = Operation("resume", "Resume", hooks.resume, _if_there(preview_resume))
PING = Operation("ping", "Send a ping", ping, _if_there(lambda webhook: Outcome.PINGED))
REMOVE = Operation("remove", "Remove", hooks.remove, _if_there(lambda webhook: Outcome.REMOVED))
RESEND = Operation("resend", "Send again", resend, _predict_resend)
