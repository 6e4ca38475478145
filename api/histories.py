"""Lists the events of one row in pages, ordered by sequence."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from api.frame import Out
from api.ids import MOST
from api.pages import Listing, page
from work.models import Event


class SubjectEventOut(Out):
    sequence: int
    at: datetime
    kind: str
    from_status: str | None
    to_status: str | None
    actor: str | None
    level: int
    message: str
    data: dict[str, Any] | None


class History(Listing):
    order: Annotated[Literal["-id", "id"], Field(description="newest first (-id) or oldest first (id)")] = "id"
    after: Annotated[int | None, Field(ge=0, le=MOST, description="only events with a higher sequence")] = None

    def more(self) -> dict[str, Any]:
        """Return extra filters for the queryset. Subclasses with filters override this."""
        return {}


def history_of(kind: str, id: int, listing: History) -> dict[str, Any]:
    """Return a page of the events of a row. The caller must have checked that the row is visible."""
    rows = Event.objects.about(kind, id).filter(**listing.more())
    rows = rows.filter(sequence__gt=listing.after) if listing.after is not None else rows
    # Paging by ID gives sequence order: whatever writes an event locks the row first, so IDs and sequences ascend
    # together.
    return page(rows, listing, row_of)


def row_of(event: Event) -> dict[str, Any]:
    optional = {name: getattr(event, name) or None for name in ("from_status", "to_status", "actor", "data")}
    return SubjectEventOut.of(event, **optional)
