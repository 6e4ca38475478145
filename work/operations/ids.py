"""Parsing of numbers from requests."""

import re


def id_of(text: str | None) -> int | None:
    """Return the id in a form field or URL of the admin, or None for any other text."""
    return int(text) if text and re.fullmatch("[0-9]{1,18}", text) else None
