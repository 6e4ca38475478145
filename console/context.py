"""Template context of all pages, including pages of other apps that extend `templates/console/base.html`."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from work import clock

# The entries of the menu: label, page, and the prefixes of the URL names for which the entry is the current one.
MENU = (
    ("Overview", "console:dashboard", ("dashboard", "news")),
    ("Runs", "console:runs", ("run", "artifact")),
    ("Documents", "console:documents", ("document", "search", "sender")),
    ("Builds", "console:builds", ("build",)),
    ("Failures", "console:failures", ("failure",)),
    ("Jobs", "console:jobs", ("job",)),
    ("Feeds", "console:feeds", ("feed", "cluster")),
    ("Workers", "console:workers", ("worker", "promise", "late_write")),
)


def around(request: HttpRequest) -> dict[str, Any]:
    """Return the context for every template. The menu is computed lazily, because not every page shows it."""
    return {
        "menu": SimpleLazyObject(lambda: menu(request)),
        "as_of": clock.now(),
        "here": request.get_full_path(),
    }


def menu(request: HttpRequest) -> list[tuple[str, str, bool]]:
    """Return the label and URL of each entry, and whether the current page belongs to the entry."""
    name = str(request.resolver_match.url_name) if request.resolver_match else ""
    return [(word, reverse(url), name.startswith(parts)) for word, url, parts in MENU]
