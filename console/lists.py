"""Keyset pagination for lists, with which each page costs the same however many rows there are."""

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
    """One page of rows, newest first, with the links to newer and older rows."""

    rows: Sequence[Any]
    newer: str
    older: str
    is_first: bool


def number(text: str | None) -> int | None:
    """Return the text as an ID, or None if the text is not a valid ID."""
    return int(text) if text and re.fullmatch("[0-9]{1,19}", text) and int(text) <= LARGEST_ID else None


def starts_after(request: HttpRequest) -> int | None:
    """Return the ID after which the requested page starts, or None for the first page."""
    return number(request.GET.get("before"))


def slice_of(request: HttpRequest, rows: Any) -> Slice:
    """Return one page of a queryset, which must already be filtered but not ordered."""
    before = starts_after(request)
    rows = rows if before is None else rows.filter(pk__lt=before)
    return sliced(request, list(rows.order_by("-pk")[: ROWS + 1]))


def sliced(request: HttpRequest, rows: Sequence[Any]) -> Slice:
    """Return a page of loaded rows. `rows` must include the first row of the next page, if there is one."""
    last = rows[ROWS - 1].pk if len(rows) > ROWS else None
    return slice_before(request, rows[:ROWS], last)


def slice_before(request: HttpRequest, rows: Sequence[Any], last: int | None) -> Slice:
    """Return a page of exactly these rows. The next page starts after the ID `last`; None means that there is no next
    page.
    """
    is_first = starts_after(request) is None
    newer = "" if is_first else f"?{query(request.GET, before=None)}"
    return Slice(rows, newer, f"?{query(request.GET, before=last)}" if last else "", is_first)
