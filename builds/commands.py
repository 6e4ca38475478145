"""Finds the configurations that are named on the command line."""

from django.db.models import Q

from builds.models import Configuration
from work.operations.commands import LARGEST_ID, Exit, Failure, not_found


def find_configuration(text: str) -> Configuration:
    """Find a configuration by its id, by WORKSPACE/NAME, or by its name if only one has that name."""
    if text.isascii() and text.isdigit():
        condition = Q(pk=min(int(text), LARGEST_ID))
    else:
        splits = [Q(workspace__name=text[:n], name=text[n + 1 :]) for n, c in enumerate(text) if c == "/"]
        condition = Q(Q(name=text), *splits, _connector=Q.OR)
    configurations = list(Configuration.objects.filter(condition).select_related("workspace").defer("files")[:2])
    if not configurations:
        raise not_found("configuration", text, "`manage.py configuration list` shows them")
    if len(configurations) > 1:
        message = f"Several configurations are named {text!r}. Use WORKSPACE/NAME or the id."
        raise Failure(message, Exit.USAGE, "ambiguous", wanted=text)
    return configurations[0]
