"""Outcomes of an operator's action on each of several rows, and how commands and the admin word them."""

from collections import Counter
from enum import StrEnum
from typing import Any

from django.db.models import Model
from django.utils.text import capfirst

from work.state_machine import StateMachine


class Outcome(StrEnum):
    CANCELLED = "cancelled"
    ASKED = "asked to stop"
    MADE = "queued again"
    STARTED = "queued"
    PAUSED = "paused"
    RESUMED = "goes on"
    DUE = "is due now"
    REMOVED = "removed"
    RENAMED = "renamed"
    REVOKED = "revoked"
    PINGED = "was sent a ping"
    DISMISSED = "dismissed"
    WAS_DISMISSED = "was dismissed already"
    SWITCHED_OFF = "switched off"
    SWITCHED_ON = "switched on"
    IS_OFF = "is switched off"
    IS_ON = "is switched on"
    APPLIED = "is being applied"
    FORGOTTEN = "is being forgotten"
    ENDED = "had finished already"
    NOT_ENDED = "has not failed"
    UNDER_WAY = "is under way"
    PURGED = "was purged"
    NOT_PROCESSED = "document could not be processed"
    WAS_PAUSED = "was paused already"
    NOT_PAUSED = "is not paused"
    DRAINING = "asked to drain"
    WAS_DRAINING = "was draining already"
    NOT_ALIVE = "is not alive"
    IS_PAUSED = "is paused"
    HAS_ARTICLES = "has articles"
    WAS_REVOKED = "was revoked already"
    SAME_NAME = "is called so already"
    NO_PLACE = "no place in the queue"
    HAS_NEWER = "has a newer run"
    NOT_YOURS = "not yours"
    NOT_FOUND = "not found"


DONE = frozenset(
    {
        *(Outcome.CANCELLED, Outcome.ASKED, Outcome.MADE, Outcome.STARTED),
        *(Outcome.PAUSED, Outcome.RESUMED, Outcome.DUE, Outcome.REMOVED, Outcome.RENAMED),
        *(Outcome.REVOKED, Outcome.PINGED, Outcome.DRAINING, Outcome.DISMISSED),
        *(Outcome.SWITCHED_OFF, Outcome.SWITCHED_ON, Outcome.APPLIED, Outcome.FORGOTTEN),
    }
)
# Meanings for docs/reference/commands.md. Commands never return the outcomes that are missing here.
MEANINGS = {
    Outcome.CANCELLED: "it was queued, and is cancelled",
    Outcome.ASKED: "it is running; the request is binding, and the worker stops it within seconds",
    Outcome.MADE: "it is queued, or a new run or delivery repeats it",
    Outcome.PAUSED: "paused until it is resumed",
    Outcome.RESUMED: "it was paused; a feed or a webhook continues at once, a job at its next slot",
    Outcome.REMOVED: "only its history stays",
    Outcome.RENAMED: "it has the new name",
    Outcome.REVOKED: "the token is refused from the next request on",
    Outcome.DISMISSED: "the problem stays dismissed when the document is processed again",
    Outcome.WAS_DISMISSED: "unchanged",
    Outcome.SWITCHED_OFF: "it is not used any more, and its values are removed from all documents",
    Outcome.SWITCHED_ON: "new documents use it again; apply it for those that are there already",
    Outcome.IS_OFF: "unchanged",
    Outcome.IS_ON: "unchanged",
    Outcome.APPLIED: "the documents that are there already are updated in batches",
    Outcome.FORGOTTEN: "what is known about it is deleted, and its values are removed from all documents",
    Outcome.ENDED: "too late: unchanged",
    Outcome.NOT_ENDED: "only failed or cancelled builds can be built again",
    Outcome.UNDER_WAY: "it is being processed; try again when that has ended",
    Outcome.PURGED: "the retention of the workspace deleted the content",
    Outcome.NOT_PROCESSED: "the document could not be processed; process it again first",
    Outcome.WAS_PAUSED: "unchanged",
    Outcome.NOT_PAUSED: "unchanged",
    Outcome.DRAINING: "the worker claims nothing more, finishes its work and stops",
    Outcome.WAS_DRAINING: "the earlier request stays",
    Outcome.NOT_ALIVE: "the worker stopped, or has sent no heartbeat for as long as a lease",
    Outcome.HAS_ARTICLES: "a feed with articles cannot be removed; pause it",
    Outcome.WAS_REVOKED: "unchanged",
    Outcome.SAME_NAME: "unchanged",
    Outcome.NO_PLACE: "the queue is full; try again later",
    Outcome.NOT_FOUND: "it does not exist (a delivery: or its webhook was removed)",
}
# Words for a result: the clause for one row and the clause for several.
_CLAUSES = {
    Outcome.CANCELLED: ("cancelled {n} {one}", "cancelled {n} {many}"),
    Outcome.ASKED: ("asked {n} that is {claimed} to stop", "asked {n} that are {claimed} to stop"),
    Outcome.MADE: ("queued {n} {one} again", "queued {n} {many} again"),
    Outcome.STARTED: ("queued a run over {n} {one}", "queued a run over each of {n} {many}"),
    Outcome.PAUSED: ("paused {n} {one}", "paused {n} {many}"),
    Outcome.RESUMED: ("resumed {n} {one}", "resumed {n} {many}"),
    Outcome.DUE: ("made {n} {one} due now", "made {n} {many} due now"),
    Outcome.REMOVED: ("removed {n} {one}", "removed {n} {many}"),
    Outcome.RENAMED: ("renamed {n} {one}", "renamed {n} {many}"),
    Outcome.REVOKED: ("revoked {n} {one}", "revoked {n} {many}"),
    Outcome.PINGED: ("sent a ping to {n} {one}", "sent a ping to {n} {many}"),
    Outcome.DISMISSED: ("dismissed {n} {one}", "dismissed {n} {many}"),
    Outcome.WAS_DISMISSED: ("{n} that was already dismissed", "{n} that were already dismissed"),
    Outcome.SWITCHED_OFF: ("switched off {n} {one}", "switched off {n} {many}"),
    Outcome.SWITCHED_ON: ("switched on {n} {one}", "switched on {n} {many}"),
    Outcome.IS_OFF: ("{n} that is switched off", "{n} that are switched off"),
    Outcome.IS_ON: ("{n} that is switched on", "{n} that are switched on"),
    Outcome.APPLIED: ("began to apply {n} {one}", "began to apply {n} {many}"),
    Outcome.FORGOTTEN: ("began to forget {n} {one}", "began to forget {n} {many}"),
    Outcome.ENDED: ("{n} that had already finished", "{n} that had already finished"),
    Outcome.NOT_ENDED: ("{n} that has neither failed nor been cancelled",) * 2,
    Outcome.UNDER_WAY: ("{n} that is in progress", "{n} that are in progress"),
    Outcome.PURGED: ("{n} whose document was purged",) * 2,
    Outcome.NOT_PROCESSED: ("{n} whose document could not be processed",) * 2,
    Outcome.WAS_PAUSED: ("{n} that was already paused", "{n} that were already paused"),
    Outcome.NOT_PAUSED: ("{n} that is not paused", "{n} that are not paused"),
    Outcome.DRAINING: ("asked {n} {one} to drain", "asked {n} {many} to drain"),
    Outcome.WAS_DRAINING: ("{n} that was already draining", "{n} that were already draining"),
    Outcome.NOT_ALIVE: ("{n} that is not alive", "{n} that are not alive"),
    Outcome.IS_PAUSED: ("{n} that is paused", "{n} that are paused"),
    Outcome.HAS_ARTICLES: ("{n} that has articles: pause it", "{n} that have articles: pause them"),
    Outcome.WAS_REVOKED: ("{n} that was already revoked", "{n} that were already revoked"),
    Outcome.SAME_NAME: ("{n} that already has this name", "{n} that already have this name"),
    Outcome.NO_PLACE: ("{n} because the queue is full",) * 2,
    Outcome.HAS_NEWER: ("{n} that has a newer run", "{n} that have newer runs"),
    Outcome.NOT_YOURS: ("{n} that you may not change",) * 2,
    Outcome.NOT_FOUND: ("{n} that no longer exists", "{n} that no longer exist"),
}
# Words for a preview: again for one row and for several.
_AHEAD = {
    Outcome.CANCELLED: ("will be cancelled",) * 2,
    Outcome.ASKED: ("will be asked to stop",) * 2,
    Outcome.MADE: ("will be queued again",) * 2,
    Outcome.STARTED: ("will be queued",) * 2,
    Outcome.PAUSED: ("will be paused",) * 2,
    Outcome.RESUMED: ("will be resumed",) * 2,
    Outcome.DUE: ("will be due now",) * 2,
    Outcome.REMOVED: ("will be removed",) * 2,
    Outcome.RENAMED: ("will be renamed",) * 2,
    Outcome.REVOKED: ("will be revoked",) * 2,
    Outcome.PINGED: ("will be sent a ping",) * 2,
    Outcome.DISMISSED: ("will be dismissed",) * 2,
    Outcome.WAS_DISMISSED: ("is already dismissed", "are already dismissed"),
    Outcome.SWITCHED_OFF: ("will be switched off",) * 2,
    Outcome.SWITCHED_ON: ("will be switched on",) * 2,
    Outcome.IS_OFF: ("is switched off", "are switched off"),
    Outcome.IS_ON: ("is switched on", "are switched on"),
    Outcome.APPLIED: ("will be applied",) * 2,
    Outcome.FORGOTTEN: ("will be forgotten",) * 2,
    Outcome.ENDED: ("has already finished", "have already finished"),
    Outcome.NOT_ENDED: ("has neither failed nor been cancelled", "have neither failed nor been cancelled"),
    Outcome.UNDER_WAY: ("is in progress", "are in progress"),
    Outcome.PURGED: ("belongs to a purged document", "belong to purged documents"),
    Outcome.NOT_PROCESSED: (
        "belongs to a document that could not be processed",
        "belong to documents that could not be processed",
    ),
    Outcome.WAS_PAUSED: ("is already paused", "are already paused"),
    Outcome.NOT_PAUSED: ("is not paused", "are not paused"),
    Outcome.DRAINING: ("will be asked to drain",) * 2,
    Outcome.WAS_DRAINING: ("is already draining", "are already draining"),
    Outcome.NOT_ALIVE: ("is not alive", "are not alive"),
    Outcome.IS_PAUSED: ("is paused", "are paused"),
    Outcome.HAS_ARTICLES: ("has articles", "have articles"),
    Outcome.WAS_REVOKED: ("is already revoked", "are already revoked"),
    Outcome.SAME_NAME: ("already has this name", "already have this name"),
    Outcome.NO_PLACE: ("will not fit in the queue",) * 2,
    Outcome.HAS_NEWER: ("has a newer run", "have newer runs"),
    Outcome.NOT_YOURS: ("cannot be changed by you",) * 2,
    Outcome.NOT_FOUND: ("no longer exists", "no longer exist"),
}


def of_cancel(states: StateMachine, before: str, after: str) -> Outcome:
    """Return the outcome of a cancel. `before` is the status seen before it, `after` the status that it returned."""
    if before not in {*states["cancel"].origins, *states["request_cancel"].origins}:
        return Outcome.ENDED
    if after == states.claimed:
        return Outcome.ASKED
    return Outcome.CANCELLED if after == states["cancel"].target else Outcome.ENDED


def preview_cancel(states: StateMachine, status: str) -> Outcome:
    """Return the outcome that cancelling a row in this status would have."""
    if status in states["cancel"].origins:
        return Outcome.CANCELLED
    return Outcome.ASKED if status in states["request_cancel"].origins else Outcome.ENDED


def preview_pause(row: Any) -> Outcome:
    return Outcome.WAS_PAUSED if row.paused_at else Outcome.PAUSED


def preview_resume(row: Any) -> Outcome:
    return Outcome.RESUMED if row.paused_at else Outcome.NOT_PAUSED


def forecast(outcome: Outcome, number: int = 1) -> str:
    return _AHEAD[outcome][number != 1]


def preview_sentence(outcomes: "Counter[Outcome]", of_what: str = "selected") -> str:
    """Summarise a preview, as in "Of 240 selected, 180 will be cancelled, 52 have already finished,
    8 cannot be changed by you."
    """
    clauses = [f"{number:,} {forecast(outcome, number)}" for outcome in Outcome if (number := outcomes[outcome])]
    return f"Of {outcomes.total():,} {of_what}, {', '.join(clauses)}." if clauses else f"None {of_what}."


def sentence(model: type[Model], outcomes: "Counter[Outcome]", claimed: str | None = None) -> str:
    """Summarise an action, as in "Cancelled 3 runs, asked 1 that is running to stop. Skipped 1 that had already
    finished."
    """
    one, many = model._meta.verbose_name, model._meta.verbose_name_plural
    clauses = {
        outcome: _CLAUSES[outcome][number != 1].format(n=number, one=one, many=many, claimed=claimed)
        for outcome in Outcome
        if (number := outcomes[outcome])
    }
    done = ", ".join(clause for outcome, clause in clauses.items() if outcome in DONE)
    skipped = ", ".join(clause for outcome, clause in clauses.items() if outcome not in DONE)
    parts = [f"{capfirst(done)}." if done else "", f"Skipped {skipped}." if skipped else ""]
    return " ".join(filter(None, parts)) or f"No {one} was selected."
