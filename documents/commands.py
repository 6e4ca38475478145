"""Shows retention on the command line."""

from typing import Any

from documents.retention import RetentionPreview
from workspaces.models import Workspace


def preview_row(workspace: Workspace, days: int | None, preview: RetentionPreview) -> dict[str, Any]:
    """Return what a retention of this many days would delete or deletes, as commands print it."""
    return {
        "id": workspace.pk,
        "workspace": workspace.name,
        "days": days,
        "documents": preview.documents,
        "size_bytes": preview.size_bytes,
        "oldest": preview.oldest,
        "kept": preview.kept,
        "sample": list(preview.sample),
    }
