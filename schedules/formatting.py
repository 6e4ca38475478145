"""Describes simple schedules in words, and shows others as they are declared."""

import re
from collections.abc import Callable

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_PATTERNS: tuple[tuple[str, Callable[..., str]], ...] = (
    (r"\* \* \* \* \*", lambda: "every minute"),
    (r"\*/(\d+) \* \* \* \*", lambda n: f"every {n} minutes"),
    (r"(\d+) \* \* \* \*", lambda minute: f"every hour at minute {minute}"),
    (r"(\d+) \*/(\d+) \* \* \*", lambda minute, n: f"every {n} hours at minute {minute}"),
    (r"(\d+) (\d+) \* \* \*", lambda minute, hour: f"every day at {_time(hour, minute)}"),
    (r"(\d+) (\d+) \* \* 1-5", lambda minute, hour: f"from Monday to Friday at {_time(hour, minute)}"),
    (r"(\d+) (\d+) \* \* ([0-7])", lambda minute, hour, day: f"every {_DAYS[int(day)]} at {_time(hour, minute)}"),
    (r"(\d+) (\d+) (\d+) \* \*", lambda minute, hour, day: f"on day {day} of every month at {_time(hour, minute)}"),
)


def of_schedule(cron: str, time_zone: str) -> str:
    text = " ".join(cron.split())
    for pattern, say in _PATTERNS:
        if match := re.fullmatch(pattern, text):
            return f"{say(*match.groups())}, {time_zone}"
    return f"{text}, {time_zone}"


def _time(hour: str, minute: str) -> str:
    return f"{int(hour):02}:{int(minute):02}"
