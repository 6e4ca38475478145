"""What became of each row of several that a person had a wish for, in the words of commands and of the admin."""

from collections import Counter
from enum import StrEnum

from work.moves import Moves


class Outcome(StrEnum):
    CANCELLED = "cancelled"
    ASKED = "asked to stop"
    MADE = "queued again"
    ENDED = "had finished already"
    NOT_ENDED = "has not failed"
    UNDER_WAY = "is under way"
    PURGED = "was purged"
    NO_PLACE = "no place in the queue"
    NOT_YOURS = "not yours"
    NOT_FOUND = "not found"


DONE = frozenset({Outcome.CANCELLED, Outcome.ASKED, Outcome.MADE})
# For one, and for several.
_CLAUSES = {
    Outcome.CANCELLED: ("cancelled {n} {one}", "cancelled {n} {many}"),
    Outcome.ASKED: ("asked {n} that is {claimed} to stop", "asked {n} that are {claimed} to stop"),
    Outcome.MADE: ("queued {n} {one} again", "queued {n} {many} again"),
    Outcome.ENDED: ("{n} that had already finished", "{n} that had already finished"),
    Outcome.NOT_ENDED: ("{n} that has neither failed nor been cancelled",) * 2,
    Outcome.UNDER_WAY: ("{n} that is under way", "{n} that are under way"),
    Outcome.PURGED: ("{n} of which nothing is left: the document was purged",) * 2,
    Outcome.NO_PLACE: ("{n} for which the queue has no place", "{n} for which the queue has no place"),
    Outcome.NOT_YOURS: ("{n} that is not yours", "{n} that are not yours"),
    Outcome.NOT_FOUND: ("{n} that is not there any more", "{n} that are not there any more"),
}


def of_cancel(moves: Moves, before: str, after: str) -> Outcome:
    """Of a cancel of a row that was seen in one status, and that answered the other."""
    if before not in {*moves["cancel"].origins, *moves["request_cancel"].origins}:
        return Outcome.ENDED
    if after == moves.claimed:
        return Outcome.ASKED
    return Outcome.CANCELLED if after == moves["cancel"].target else Outcome.ENDED


def sentence(moves: Moves, outcomes: "Counter[Outcome]") -> str:
    """Cancelled 3 runs, asked 1 that is running to stop. Skipped 1 that had already finished."""
    words = {
        "one": moves.model._meta.verbose_name,
        "many": moves.model._meta.verbose_name_plural,
        "claimed": moves.claimed,
    }

    def clauses(*, done: bool) -> str:
        said = [
            _CLAUSES[outcome][number != 1].format(n=number, **words)
            for outcome in Outcome
            if (number := outcomes[outcome]) and (outcome in DONE) == done
        ]
        return ", ".join(said)

    did, skipped = clauses(done=True), clauses(done=False)
    parts = [f"{did[0].upper()}{did[1:]}." if did else "", f"Skipped {skipped}." if skipped else ""]
    return " ".join(filter(None, parts)) or f"No {words['one']} was chosen."
