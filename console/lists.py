"""Lists of rows, page by page: each costs what the first does, however many rows there are."""

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
    """Some rows, the newest first, and where the ones before and after them are."""

    rows: Sequence[Any]
    newer: str
    older: str
    is_first: bool


def number(text: str | None) -> int | None:
    """An id as addresses have it; None for anything else."""
    return int(text) if text and re.fullmatch("[0-9]{1,19}", text) and int(text) <= LARGEST_ID else None


def behind(request: HttpRequest) -> int | None:
    """The id behind which the page begins."""
    return number(request.GET.get("before"))


def slice_of(request: HttpRequest, rows: Any, most: int = ROWS) -> Slice:
    """Of a queryset that is filtered and not ordered."""
    before = behind(request)
    found = rows if before is None else rows.filter(pk__lt=before)
    return sliced(request, list(found.order_by("-pk")[: most + 1]), most)


def sliced(request: HttpRequest, found: Sequence[Any], most: int = ROWS) -> Slice:
    """Of rows that were found already: one more than are shown, if there is one."""
    shown, more = found[:most], len(found) > most
    is_first = behind(request) is None
    return Slice(
        rows=shown,
        newer="" if is_first else f"?{query(request.GET, before=None)}",
        older=f"?{query(request.GET, before=shown[-1].pk)}" if more else "",
        is_first=is_first,
    )
