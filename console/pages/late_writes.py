"""The list of late writes: writes that were refused because the worker had lost its claim without noticing."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from console import lists
from console.frame import is_superuser, page, show
from console.lists import Slice
from console.subjects import Named, known_to, named
from work.models import Event
from workspaces.models import Workspace

LATE_WRITE_REFUSED = "LATE_WRITE_REFUSED"
# At most this many events are read for one page and then filtered by workspace, because events have no workspace
# column.
MOST_READ = 1000


@dataclass(frozen=True)
class LateWrite:
    event: Event
    subject: Named

    @property
    def verb(self) -> str:
        """Return the verb that the worker tried."""
        return str((self.event.data or {}).get("refused", "")).replace("_", " ")

    @property
    def row_state(self) -> str:
        """Describe the state of the row at that moment, which is why the write was refused."""
        row = (self.event.data or {}).get("found") or {}
        owner = row.get("lease_owner")
        holder = f", held by {owner}" if owner else ""
        return f"{row.get('status', '')}, claim {row.get('claim_token', '')}{holder}" if row else ""


@dataclass(frozen=True)
class LateWrites:
    slice: Slice
    # The number of events that were read and that the user may see.
    number: int
    is_cut: bool


@page
def late_writes(request: HttpRequest) -> HttpResponseBase:
    late = late_writes_for(request)
    context = {"late": late, "slice": late.slice, "most": MOST_READ}
    live = reverse("console:live")
    return show(request, "console/late_writes.html", "Refused late writes", context, live=live)


def late_writes_for(request: HttpRequest) -> LateWrites:
    """Return the newest late writes that this user may see: in the user's workspaces and, if the user is a member of
    any workspace, in the installation.
    """
    if not (is_superuser(request) or Workspace.objects.for_user(request.user).exists()):
        return LateWrites(Slice((), "", "", is_first=True), 0, is_cut=False)
    late: Any = Event.objects.filter(kind=LATE_WRITE_REFUSED)
    if (before := lists.starts_after(request)) is not None:
        late = late.filter(pk__lt=before)
    newest = list(late.order_by("-pk").values_list("pk", "subject_kind", "subject_id")[: MOST_READ + 1])
    is_cut = len(newest) > MOST_READ
    known = known_to(request, {(kind, id) for _, kind, id in newest[:MOST_READ]})
    visible = [pk for pk, kind, id in newest[:MOST_READ] if (kind, id) in known]
    events = sorted(Event.objects.filter(pk__in=visible[: lists.ROWS]), key=lambda event: -event.pk)
    names = named(request, [(event.subject_kind, event.subject_id) for event in events])
    rows = [LateWrite(event, names[event.subject_kind, event.subject_id]) for event in events]
    # The next page starts after the last shown row or, if all visible rows are shown, after the last event that was
    # read.
    last = newest[MOST_READ - 1][0] if is_cut else None
    if len(visible) > len(rows):
        last = rows[-1].event.pk
    return LateWrites(lists.slice_before(request, rows, last), len(visible), is_cut)
