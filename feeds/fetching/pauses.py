import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# Longer pauses are cut to a day, so that a feed is checked at least daily.
LONGEST_SECONDS = 24 * 3600.0


def seconds_of(retry_after: str, now: datetime) -> float | None:
    """Parse a Retry-After header, which is a number of seconds or a date. Return None for anything else."""
    if re.fullmatch(r"[0-9]{1,10}", retry_after):
        return min(float(retry_after), LONGEST_SECONDS)
    try:
        date = parsedate_to_datetime(retry_after)
    except (ValueError, OverflowError):
        return None
    # A date without a zone is in UTC.
    seconds = (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds()
    return min(max(seconds, 0.0), LONGEST_SECONDS)
