"""Finds configurations that are named on the command line."""

from django.db.models import Q

from builds.models import Configuration
from work.operations.commands import LARGEST_ID, Exit, Failure, not_found


def find_configuration(text: str) -> Configuration:
    """Find a configuration by id, by WORKSPACE/NAME, or by a unique name."""
    if text.isascii() and text.isdigit():
        named = Q(pk=min(int(text), LARGEST_ID))
    else:
        splits = [Q(workspace__name=text[:n], name=text[n + 1 :]) for n, c in enumerate(text) if c == "/"]
        named = Q(Q(name=text), *splits, _connector=Q.OR)
    found = list(Configuration.objects.filter(named).select_related("workspace").defer("files")[:2])
    if not found:
        raise not_found("configuration", text, "`manage.py configuration list` shows them")
    if len(found) > 1:
        message = f"Several configurations are named {text!r}. Use WORKSPACE/NAME or the id."
        raise Failure(message, Exit.USAGE, "ambiguous", wanted=text)
    return found[0]
