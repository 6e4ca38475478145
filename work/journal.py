"""Collects the events of a claim while its work is being done, and writes them to the row's history in batches."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from django.db import Error, connection

from work import clock, lifecycle, outages
from work.changes import INFO, EventDraft
from work.claims import Claim
from work.processes.child import Child
from work.processes.output import Line

LOG = "LOG"
# The longest that an event waits to be written, so that a person who follows a log sees new lines soon. Most runs end
# sooner and write everything at once.
DUE_SECONDS = 0.5
# A batch of this many events is written at once. If the worker is killed, up to this many lines are lost.
BATCH = 500
# The number of events to keep while the database is unavailable. Further events are dropped and counted.
MOST_WAITING = 5000

log = structlog.get_logger(__name__)


class Journal:
    """The journal of one claim, used by one thread. Events unwritten when the work ends are written with its end."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        claim.pending_events = self._pending_events
        self._process: dict[str, Any] | None = None
        self._record_process_at = 0.0
        self._waiting: list[EventDraft] = []
        self._dropped = 0
        self._due_at = float("inf")
        self._away_until = 0.0

    def tell(self, kind: str, message: str = "", data: Mapping[str, Any] | None = None, level: int = INFO) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._dropped += 1
            return
        if not self._waiting:
            self._due_at = time.monotonic() + DUE_SECONDS
        owner = self._claim.holder.owner[: lifecycle.ACTOR_CHARACTERS]
        self._waiting.append(EventDraft(kind, clock.now(), owner, message, data, level))

    def lines(self, lines: Sequence[Line]) -> None:
        for line in lines:
            self.tell(LOG, line.text, {"stream": line.stream})
        self.look()

    def keep(self, child: Child) -> None:
        """Make the child end with the claim, and store its process id so that recovery can end it."""
        self._claim.take_charge_of(child)
        self._process = child.process_id.to_json()
        self._record_process()

    def _record_process(self) -> None:
        """Store the process id. If the database is unavailable, retry later: the child ends with its worker anyway."""
        if self._process is None or time.monotonic() < self._record_process_at:
            return
        try:
            lifecycle.record_process(self._claim, self._process)
            self._process = None
        except Error as error:
            self._record_process_at = time.monotonic() + DUE_SECONDS
            if not outages.is_outage(error):
                log.warning("journal.cannot_record", claim=str(self._claim), error=str(error).strip())
            connection.close()

    def why_stop(self) -> str | None:
        """Return why the child must end, or None. The supervisor calls this often, so it also writes what is due."""
        self._record_process()
        self.look()
        return self._claim.why_stop()

    def look(self) -> None:
        """Write the waiting events if they are due. If the database refuses them, try again later."""
        now = time.monotonic()
        if now < self._away_until or (len(self._waiting) < BATCH and now < self._due_at):
            return
        try:
            self.write()
        except Error as error:
            if not outages.is_outage(error):
                log.warning("journal.cannot_write", claim=str(self._claim), error=str(error).strip())
            connection.close()
            self._due_at = self._away_until = time.monotonic() + DUE_SECONDS

    def write(self) -> None:
        """Write all waiting events. On an error of the database keep them all and raise it."""
        if entries := self._pending_events():
            lifecycle.record_many(self._claim, entries)
        self._waiting, self._dropped, self._due_at = [], 0, float("inf")

    def _pending_events(self) -> list[EventDraft]:
        if not self._dropped:
            return [*self._waiting]
        message = f"[{self._dropped} lines are missing: the database was unavailable]"
        return [*self._waiting, EventDraft(LOG, clock.now(), self._claim.holder.owner, message, {"stream": "stderr"})]
