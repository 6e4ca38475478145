"""How a cancel went: what runs and builds have in common."""

from typing import Annotated, Literal

from pydantic import Field

from api.errors import Problem
from api.frame import In
from work.moves import Moves
from work.outcomes import Outcome, of_cancel


class Reason(In):
    reason: Annotated[str, Field(max_length=500, description="for its history")] = ""


def cancelled(moves: Moves, id: int, before: str, after: str) -> Literal["cancelled", "asked"]:
    """What a cancel has done to a row that was seen in one status, and now has the other. Raises Problem."""
    found = of_cancel(moves, before, after)
    if found == Outcome.ENDED:
        message = f"expected a {moves.kind} that is queued or under way, found that {moves.kind} {id} is {after}"
        raise Problem("conflict", message, {"id": id, "status": after})
    return "asked" if found == Outcome.ASKED else "cancelled"
