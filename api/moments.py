"""Parses timestamps in RFC 3339 format with an offset. Accepts only years that databases and schedules can handle."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

# Converting a time in this range to any time zone can't overflow.
_SHAPE = (
    r"^(19[7-9][0-9]|20[0-9]{2}|21[0-9]{2})-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})$"
)


def _parse(value: Any) -> datetime:
    if not isinstance(value, str) or not re.fullmatch(_SHAPE, value):
        raise ValueError("must be a time with an offset, such as 2026-03-01T06:00:00Z or 2026-03-01T06:00:00+01:00")
    return datetime.fromisoformat(value).astimezone(UTC)


Moment = Annotated[
    datetime,
    BeforeValidator(_parse),
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": _SHAPE, "examples": ["2026-03-01T06:00:00Z"]}),
]
