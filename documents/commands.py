"""Formats retention for commands."""

from typing import Any

from documents.retention import RetentionPreview
from workspaces.models import Workspace


def preview_row(workspace: Workspace, days: int | None, preview: RetentionPreview) -> dict[str, Any]:
    """Return, as commands print it, what a retention of this many days deletes or would delete."""
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
