"""Late writes: writes that were refused because the worker had lost its claim without knowing it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from console import lists
from console.frame import is_superuser, query
from console.lists import Slice
from console.subjects import Named, known_to, named
from work.models import Event
from workspaces.models import Workspace

LATE_WRITE_REFUSED = "LATE_WRITE_REFUSED"
# The table of events has no workspace column, so this many events are read and filtered for one page.
LOOKED_AT = 1000


@dataclass(frozen=True)
class Case:
    event: Event
    subject: Named

    @property
    def refused(self) -> str:
        """The move that the worker attempted."""
        return str((self.event.data or {}).get("refused", "")).replace("_", " ")

    @property
    def found(self) -> str:
        """The state of the row at that moment, which is why the write was refused."""
        found = (self.event.data or {}).get("found") or {}
        owner = found.get("lease_owner")
        held = f", held by {owner}" if owner else ""
        return f"{found.get('status', '')}, claim {found.get('claim_token', '')}{held}" if found else ""


@dataclass(frozen=True)
class Cases:
    slice: Slice
    # How many of the events that were read this user may see.
    number: int
    looked_at: int
    is_cut: bool


def cases_for(request: HttpRequest) -> Cases:
    """Return the newest late writes that this user may see: in their workspaces, and for members also in the
    installation.
    """
    if not (is_superuser(request) or Workspace.objects.for_user(request.user).exists()):
        return Cases(Slice((), "", "", is_first=True), 0, 0, is_cut=False)
    looked_at = _newest(request)
    theirs = _visible(request, looked_at[:LOOKED_AT])
    events = sorted(Event.objects.filter(pk__in=theirs[: lists.ROWS]), key=lambda event: -event.pk)
    known = named(request, [(event.subject_kind, event.subject_id) for event in events])
    shown = [Case(event, known[event.subject_kind, event.subject_id]) for event in events]
    return Cases(_piece(request, shown, theirs, looked_at), len(theirs), len(looked_at), len(looked_at) > LOOKED_AT)


def _visible(request: HttpRequest, looked_at: Sequence[tuple[int, str, int]]) -> list[int]:
    known = known_to(request, {(kind, id) for _, kind, id in looked_at})
    return [pk for pk, kind, id in looked_at if (kind, id) in known]


def _newest(request: HttpRequest) -> Sequence[tuple[int, str, int]]:
    before = lists.behind(request)
    late: Any = Event.objects.filter(kind=LATE_WRITE_REFUSED, **({} if before is None else {"pk__lt": before}))
    return list(late.order_by("-pk").values_list("pk", "subject_kind", "subject_id")[: LOOKED_AT + 1])


def _piece(request: HttpRequest, shown: Sequence[Case], theirs: Sequence[int], looked_at: Sequence[Any]) -> Slice:
    """Page the cases. The next page starts after the last case shown, or after all events read if all visible ones
    are shown.
    """
    behind = shown[-1].event.pk if len(theirs) > len(shown) else None
    if behind is None and len(looked_at) > LOOKED_AT:
        behind = looked_at[LOOKED_AT - 1][0]
    is_first = lists.behind(request) is None
    newer = "" if is_first else f"?{query(request.GET, before=None)}"
    return Slice(shown, newer, f"?{query(request.GET, before=behind)}" if behind else "", is_first)
