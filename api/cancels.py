"""Reports the result of a cancel, for runs and builds."""

from typing import Annotated, Literal

from pydantic import Field

from api.errors import Problem
from api.frame import In
from work.operations.outcomes import Outcome, of_cancel
from work.state_machine import StateMachine


class Reason(In):
    reason: Annotated[str, Field(max_length=500, description="reason, for the history")] = ""


def result_of(states: StateMachine, id: int, before: str, after: str) -> Literal["cancelled", "asked"]:
    """Return the result of a cancel from the row's status before and after it. Raises Problem if the row had already
    ended.
    """
    outcome = of_cancel(states, before, after)
    if outcome == Outcome.ENDED:
        message = f"Cannot cancel {states.kind} {id}: its status is {after}."
        raise Problem("conflict", message, {"id": id, "status": after})
    return "asked" if outcome == Outcome.ASKED else "cancelled"
