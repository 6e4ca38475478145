"""Numbers that strangers have written."""

import re


def id_of(text: str | None) -> int | None:
    """An id, as a form or an address of the admin has it; None for anything else."""
    return int(text) if text and re.fullmatch("[0-9]{1,18}", text) else None
