"""Keyset pagination for lists: a page starts after the last row of the previous one, so every page costs the same."""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from ninja import Schema
from pydantic import ConfigDict, Field, PrivateAttr, ValidationInfo, model_validator

from api.errors import Problem
from api.frame import Out
from api.ids import MOST

LIMIT, MOST_ROWS = 50, 200

T = TypeVar("T")


class Listing(Schema):
    """The query parameters that every list accepts. A list with filters declares them in a subclass."""

    model_config = ConfigDict(extra="forbid")

    limit: Annotated[int, Field(ge=1, le=MOST_ROWS, description="rows per page")] = LIMIT
    cursor: Annotated[
        str, Field(max_length=200, description="`next` of the previous page", json_schema_extra={"format": "cursor"})
    ] = ""
    order: Annotated[Literal["-id", "id"], Field(description="newest first (-id) or oldest first (id)")] = "-id"

    # The request path, which is part of the cursor's hash, so that a cursor works only for its own list.
    _path: str = PrivateAttr()

    @model_validator(mode="after")
    def _keep_path(self, info: ValidationInfo) -> Self:
        assert info.context is not None
        self._path = info.context["request"].path_info
        return self

    def filters(self) -> dict[str, Any]:
        """Return the filters that were given."""
        return self.model_dump(exclude={"limit", "cursor", "order"}, exclude_none=True)


class Page(Out, Generic[T]):
    items: list[T]
    next: Annotated[str | None, Field(description="`cursor` of the next page; null on the last one")]


def page(rows: Any, listing: Listing, row: Callable[[Any], Mapping[str, Any]]) -> dict[str, Any]:
    """Return one page of a queryset, which must already be filtered but not ordered."""
    after = after_of(listing)
    if after is not None:
        rows = rows.filter(**{"pk__lt" if listing.order == "-id" else "pk__gt": after})
    rows = list(rows.order_by("-pk" if listing.order == "-id" else "pk")[: listing.limit + 1])
    shown, cursor = rows[: listing.limit], None
    if len(rows) > listing.limit:
        cursor = base64.urlsafe_b64encode(f"{shown[-1].pk}.{_hash_of(listing)}".encode()).decode().rstrip("=")
    return {"items": [row(each) for each in shown], "next": cursor}


def after_of(listing: Listing) -> int | None:
    """Return the ID after which the page starts, or None. Raises Problem."""
    if not listing.cursor:
        return None
    try:
        padded = listing.cursor + "=" * (-len(listing.cursor) % 4)
        pk, _, hash = base64.b64decode(padded.encode("ascii"), b"-_", validate=True).decode("ascii").partition(".")
        if hash == _hash_of(listing) and pk.isdecimal() and int(pk) <= MOST:
            return int(pk)
    except (ValueError, binascii.Error):
        pass
    message = "This cursor does not belong to this list with these filters and this order. Start with the first page."
    raise Problem("invalid_cursor", message)


def _hash_of(listing: Listing) -> str:
    """Return a hash of the list's path, order and filters. It is part of each cursor: with another list's cursor, rows
    would be skipped.
    """
    text = json.dumps([listing._path, listing.order, listing.filters()], default=str, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
