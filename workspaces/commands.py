"""Finds workspaces on the command line."""

from work.operations.commands import LARGEST_ID, Failure, not_found
from workspaces.models import Workspace


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
