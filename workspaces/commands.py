"""Finds workspaces that are named on the command line."""

from work.operations.commands import LARGEST_ID, not_found
from workspaces.models import Workspace


def find_workspace(text: str) -> Workspace:
    """Return the workspace with this name, or with this ID if no name matches. Raises Failure if there is none."""
    workspace = Workspace.objects.filter(name=text).first()
    if workspace is None and text.isascii() and text.isdigit() and int(text) <= LARGEST_ID:
        workspace = Workspace.objects.filter(pk=int(text)).first()
    if workspace is None:
        raise not_found("workspace", text, "`manage.py workspace list` shows them")
    return workspace
