"""Keyset pagination for lists: each page costs the same however many rows there are."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from console.frame import query

ROWS = 50
LARGEST_ID = 2**63 - 1


@dataclass(frozen=True)
class Slice:
    """A page of rows, newest first, with links to newer and older rows."""

    rows: Sequence[Any]
    newer: str
    older: str
    is_first: bool


def number(text: str | None) -> int | None:
    """Return the ID, or None if the text is not one."""
    return int(text) if text and re.fullmatch("[0-9]{1,19}", text) and int(text) <= LARGEST_ID else None


def behind(request: HttpRequest) -> int | None:
    """Return the ID after which the page starts."""
    return number(request.GET.get("before"))


def slice_of(request: HttpRequest, rows: Any, most: int = ROWS) -> Slice:
    """Return one page of an unordered queryset that has its filters applied."""
    before = behind(request)
    found = rows if before is None else rows.filter(pk__lt=before)
    return sliced(request, list(found.order_by("-pk")[: most + 1]), most)


def sliced(request: HttpRequest, found: Sequence[Any], most: int = ROWS) -> Slice:
    """Return a page from loaded rows. `found` must have one row more than is shown, if there is one."""
    shown, more = found[:most], len(found) > most
    is_first = behind(request) is None
    return Slice(
        rows=shown,
        newer="" if is_first else f"?{query(request.GET, before=None)}",
        older=f"?{query(request.GET, before=shown[-1].pk)}" if more else "",
        is_first=is_first,
    )
