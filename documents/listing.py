"""Lists documents at a cost that depends on neither the page, the filter nor the number of documents.

Indexes order the documents of each workspace, and of each status within it, newest first. On PostgreSQL each workspace
is queried for its own first rows, as in `runs/listing.py`: for several workspaces at once, the planner would walk along
the primary key until it has found enough rows.
"""

from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection
from django.db.models import OuterRef, Q

from documents.models import Document, DocumentQuerySet
from workspaces.models import User, Workspace


@dataclass(frozen=True)
class Wanted:
    """Filters of a list; None means any."""

    workspace_id: int | None = None
    status: str | None = None


def documents(user: User, wanted: Wanted, most: int, *, behind: int | None = None) -> list[Document]:
    """Return up to `most` documents that the user may see, newest first, following the one with the ID `behind`."""
    found = Document.objects.filter(**({"status": wanted.status} if wanted.status else {}))
    if behind is not None:
        last = Document.objects.for_user(user).filter(pk=behind).values_list("created_at", flat=True).first()
        if last is None:
            return []
        found = found.filter(Q(created_at__lt=last) | Q(pk__lt=behind), created_at__lte=last)
    workspaces = Workspace.objects.for_user(user)
    if wanted.workspace_id is not None:
        workspaces = workspaces.filter(pk=wanted.workspace_id)
    if connection.vendor == "postgresql":
        found = Document.objects.filter(pk__in=_firsts(workspaces, found, most))
    else:
        found = found.filter(workspace__in=workspaces.order_by().values("pk"))
    return list(_ordered(found).listed()[:most])


def _firsts(workspaces: Any, found: Any, most: int) -> list[int]:
    firsts = _ordered(found.filter(workspace=OuterRef("pk"))).values("pk")[:most]
    arrays = workspaces.order_by().annotate(firsts=ArraySubquery(firsts)).values_list("firsts", flat=True)
    return [id for ids in arrays for id in ids]


def _ordered(found: DocumentQuerySet) -> DocumentQuerySet:
    return found.order_by("-created_at", "-id")
