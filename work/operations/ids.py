"""Parses ids in requests."""

import re


def id_of(text: str | None) -> int | None:
    """Return the id in a form field or URL of the admin, or None if the text is not an id."""
    return int(text) if text and re.fullmatch("[0-9]{1,18}", text) else None
