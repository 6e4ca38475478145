"""What stands around all pages, also those of apps that know nothing of this one: `templates/console/base.html`."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from work import clock

# The menu, in this order: word, name of the page, and the first words of names of pages below it.
MENU = (
    ("Now", "console:dashboard", ("dashboard", "news")),
    ("Runs", "console:runs", ("run", "artifact")),
    ("Documents", "console:documents", ("document", "search")),
    ("Builds", "console:builds", ("build",)),
    ("Failures", "console:failures", ("failure",)),
    ("Jobs", "console:jobs", ("job",)),
    ("Feeds", "console:feeds", ("feed", "cluster")),
    ("Workers", "console:workers", ("worker", "promise", "late_write")),
)


def around(request: HttpRequest) -> dict[str, Any]:
    """For each template; what it costs is paid by those that show it."""
    return {
        "menu": SimpleLazyObject(lambda: menu(request)),
        "as_of": clock.now(),
        "here": request.get_full_path(),
    }


def menu(request: HttpRequest) -> list[tuple[str, str, bool]]:
    """Word, address, and whether that is where one is."""
    name = str(request.resolver_match.url_name) if request.resolver_match else ""
    return [(word, reverse(url), name.startswith(parts)) for word, url, parts in MENU]
