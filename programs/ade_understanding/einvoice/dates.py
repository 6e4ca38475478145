"""Reads the dates of e-invoices. A text that is no day stays as it is written, so that a check can name it."""

import re
from datetime import date

_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T Z+-].*)?", re.DOTALL)
_DIGITS = re.compile(r"(\d{4})(\d\d)(\d\d)\d*")
# Formats that begin with the day: CCYYMMDD, also with a time.
_DAYS = ("", "102", "203", "204", "205")


def of_cii(text: str, format: str) -> str:
    match = _ISO.fullmatch(text) or (_DIGITS.fullmatch(text) if format in _DAYS else None)
    return _iso(match) or text


def of_iso(text: str) -> str:
    return _iso(_ISO.fullmatch(text)) or text


def is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == len("2026-01-31")


def _iso(match: re.Match[str] | None) -> str:
    text = "-".join(match.groups()) if match else ""
    return text if is_day(text) else ""
