"""Lists documents. The cost depends neither on the page nor on the filter nor on the number of documents.

Indexes order the documents of each workspace newest first, overall and per status. On PostgreSQL, each workspace is
queried separately for its first rows, as in `runs/listing.py`: in a query for several workspaces at once, the planner
would follow the primary key until it had found enough rows.
"""

from dataclasses import dataclass

from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection
from django.db.models import OuterRef, Q

from documents.models import Document, DocumentQuerySet
from workspaces.models import User, Workspace


@dataclass(frozen=True)
class Filters:
    """Filters for a list. None matches any value."""

    workspace_id: int | None = None
    status: str | None = None
    type: str | None = None
    is_to_review: bool = False


def documents(user: User, wanted: Filters, most: int, *, behind: int | None = None) -> list[Document]:
    """Return up to `most` documents that the user may see, newest first, starting after the one with ID `behind`."""
    return list(latest(user, wanted, most, behind=behind).listed())


def latest(user: User, wanted: Filters, most: int, *, behind: int | None = None) -> DocumentQuerySet:
    """Return the query for `documents`. It is empty if there is no document with the ID `behind`."""
    rows = Document.objects.order_by("-created_at", "-id")
    if wanted.status:
        rows = rows.filter(status=wanted.status)
    if wanted.type is not None:
        # PostgreSQL refuses NUL.
        rows = rows.filter(type=wanted.type.replace("\0", ""))
    if wanted.is_to_review:
        rows = rows.filter(to_review=True)
    if behind is not None:
        last = Document.objects.for_user(user).filter(pk=behind).values_list("created_at", flat=True).first()
        if last is None:
            return Document.objects.none()
        rows = rows.filter(Q(created_at__lt=last) | Q(pk__lt=behind), created_at__lte=last)
    workspaces = Workspace.objects.for_user(user).order_by()
    if wanted.workspace_id is not None:
        workspaces = workspaces.filter(pk=wanted.workspace_id)
    if connection.vendor == "postgresql":
        firsts = ArraySubquery(rows.filter(workspace=OuterRef("pk")).values("pk")[:most])
        ids = [id for ids in workspaces.annotate(firsts=firsts).values_list("firsts", flat=True) for id in ids]
        rows = Document.objects.filter(pk__in=ids).order_by("-created_at", "-id")
    else:
        rows = rows.filter(workspace__in=workspaces.values("pk"))
    return rows[:most]
