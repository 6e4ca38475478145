import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# Who asks for a longer pause is not obeyed to the letter: a feed is looked at again on the next day.
LONGEST_SECONDS = 24 * 3600.0


def seconds_of(retry_after: str, now: datetime) -> float | None:
    """It may be seconds or a date. None for what is neither."""
    if re.fullmatch(r"[0-9]{1,10}", retry_after):
        return min(float(retry_after), LONGEST_SECONDS)
    try:
        date = parsedate_to_datetime(retry_after)
    except (ValueError, OverflowError):
        return None
    # Without a zone it means that of Greenwich.
    seconds = (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds()
    return min(max(seconds, 0.0), LONGEST_SECONDS)
