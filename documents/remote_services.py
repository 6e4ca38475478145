"""Calls external services. A child process with a deadline makes each call, and this module judges how it ended."""

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings

from ade_services import Asking
from work.claims import Interrupted
from work.processes import hidden_paths, supervise
from work.processes.supervise import Child, Ended, Limits

# Twice the memory that is needed to parse the longest accepted answer.
ADDRESSES_BYTES = 2 << 30
FILE_BYTES = 256 << 20
CONNECT_SECONDS = 5.0
# The longest time without a byte; the call's wall-clock limit applies to the whole answer.
READ_SECONDS = 30.0
# Time that remains for a child to report its own timeout before the wall-clock limit ends it.
REPORT_SECONDS = 1.0
_PASSED = re.compile(r"(HTTPS?|ALL|NO)_PROXY|(https?|all|no)_proxy|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE")


class NoAnswer(Exception):
    """The service gave no usable answer; the message is for people.

    `permanent`: another attempt with the same settings and document would fail too. `away`: the service would currently
    fail for every document.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        permanent: bool = False,
        retry_after: float | None = None,
        away: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.permanent = permanent
        self.retry_after = retry_after
        self.away = away


def ask(
    asking: Asking,
    order: Mapping[str, Any],
    directory: Path,
    *,
    wall_seconds: float,
    readable: Sequence[Path] = (),
    stop: Callable[[], str | None] = lambda: None,
    on_start: Callable[[Child], None] = lambda child: None,
) -> dict[str, Any]:
    """Ask a service and return its answer. The child process works in `directory` and may also read `readable`.

    Raises NoAnswer and CannotStart, and Interrupted if `stop` returns a reason.
    """
    events: dict[str, dict[str, Any]] = {}
    output: list[str] = []
    times = {"connect_seconds": CONNECT_SECONDS, "read_seconds": READ_SECONDS, "seconds": wall_seconds - REPORT_SECONDS}
    environment = {name: text for name, text in os.environ.items() if _PASSED.fullmatch(name)}
    with _pipe_with({**times, **order, "environment": environment}) as stdin:
        ended = supervise.run(
            [sys.executable, "-I", "-B", "-X", "utf8", "-c", asking.program, str(settings.PROGRAMS_DIR)],
            cwd=directory,
            stdin=stdin,
            limits=Limits(
                wall_seconds=wall_seconds,
                cpu_seconds=max(1, math.ceil(wall_seconds)),
                address_space_bytes=ADDRESSES_BYTES,
                file_size_bytes=FILE_BYTES,
                open_files=128,
                event_bytes=1 << 20,
            ),
            stop=stop,
            on_start=on_start,
            on_event=lambda event: events.update({str(event.get("kind")): event}),
            on_output=lambda lines: output.extend(line.text for line in lines),
            network=True,
            readable=readable,
            hidden=hidden_paths.places(),
        )
    if ended.stop_reason:
        raise Interrupted(ended.stop_reason)
    if ended.returncode == 0 and "answered" in events:
        return events["answered"]
    raise _failure(ended, events.get("failed"), output, str(order["key"]), asking.service, wall_seconds)


@contextmanager
def _pipe_with(order: Mapping[str, Any]) -> Iterator[int]:
    """Yield a pipe that contains the order. The order's access key must not be stored or visible anywhere else."""
    reading, writing = os.pipe()
    try:
        # No process reads the pipe yet, so the order must fit into the pipe's buffer. A larger order raises an error
        # instead of blocking.
        os.set_blocking(writing, False)
        with open(writing, "wb") as file:
            file.write(json.dumps(order).encode())
        yield reading
    finally:
        os.close(reading)


def _failure(
    ended: Ended, failed: dict[str, Any] | None, output: list[str], key: str, service: str, wall_seconds: float
) -> NoAnswer:
    if failed is not None:
        retry_after = failed.get("retry_after")
        return NoAnswer(
            str(failed.get("code")),
            _masked(str(failed.get("message")), key),
            permanent=failed.get("permanent") is True,
            retry_after=float(retry_after) if isinstance(retry_after, int | float) else None,
            away=failed.get("away") is True,
        )
    if ended.reason == "timed_out":
        return NoAnswer("timed_out", f"{service} did not answer within {wall_seconds:.0f} s.")
    last = _masked(" ".join(output[-3:]), key)
    return NoAnswer("internal", f"The process that called {service} {ended}: {last}")


def _masked(text: str, key: str) -> str:
    return text.replace(key, "***")
