"""Finds and shows rows on the command line, for the commands of this app and the apps above."""

from typing import Any

from documents.models import Workspace
from documents.retention import Rehearsal
from work.commands import LARGEST_ID, Failure, not_found


def find_workspace(text: str) -> Workspace:
    """Return the workspace with this name, or with this ID if no name matches. Raises Failure if there is none."""
    found = Workspace.objects.filter(name=text).first()
    if found is None and text.isascii() and text.isdigit() and int(text) <= LARGEST_ID:
        found = Workspace.objects.filter(pk=int(text)).first()
    if found is None:
        raise no_workspace(text)
    return found


def no_workspace(text: str) -> Failure:
    return not_found("workspace", text, "`manage.py workspace list` shows them")


def row_of(workspace: Workspace, days: int | None, found: Rehearsal) -> dict[str, Any]:
    """Return what a retention of this many days would delete or deletes, as commands print it."""
    return {
        "id": workspace.pk,
        "workspace": workspace.name,
        "days": days,
        "documents": found.documents,
        "size_bytes": found.size_bytes,
        "oldest": found.oldest,
        "kept": found.kept,
        "sample": list(found.sample),
    }
