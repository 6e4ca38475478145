"""Shows retention on the command line."""

from typing import Any

from documents.retention import Rehearsal
from workspaces.models import Workspace


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
