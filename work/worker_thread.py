"""A worker thread: it claims one row, does the work, records the end, and starts over."""

import time
from collections.abc import Callable
from threading import Condition
from threading import Event as Flag

import structlog
from django.conf import settings
from django.db import DatabaseError, connection

from work import claims, outages, recovery
from work.claims import Claim, Holdings, Interrupted
from work.sql.contention import Contended
from work.steady import FIRST_PAUSE_SECONDS, Steady
from work.work_types import WorkType

# How often at least to retry a database that does not accept the end of some work.
LONGEST_PAUSE_SECONDS = 5.0

log = structlog.get_logger(__name__)


class Bell:
    """Wakes one waiting thread. A thread that finds work rings for the next, so that none wakes up for nothing."""

    def __init__(self) -> None:
        self._condition = Condition()
        self._rung = False
        self._is_over = False

    def ring(self) -> None:
        with self._condition:
            self._rung = True
            self._condition.notify()

    def wake_all(self) -> None:
        """Wake all threads for good, including one that is just about to wait."""
        with self._condition:
            self._is_over = True
            self._condition.notify_all()

    def wait(self, seconds: float) -> None:
        with self._condition:
            if not (self._rung or self._is_over):
                self._condition.wait(seconds)
            self._rung = False


class WorkerThread(Steady):
    def __init__(
        self,
        kind: WorkType,
        number: int,
        *,
        owner: str,
        bell: Bell,
        holdings: Holdings,
        stopping: Flag,
        after: Callable[[WorkType], None],
        contended: Callable[[WorkType, Contended], None],
    ) -> None:
        super().__init__(f"{kind.name}-{number}", stopping)
        self.kind, self.owner, self.bell, self.holdings = kind, owner, bell, holdings
        self.after, self.contended = after, contended

    def go_on(self) -> None:
        try:
            if not self.run_once():
                self.bell.wait(settings.ADE_TICK_SECONDS)
        except Contended as met:
            self.contended(self.kind, met)
            self.stopping.wait(settings.ADE_TICK_SECONDS)

    def run_once(self) -> bool:
        """Do one piece of work. Return True if there was any: then look again at once."""
        assert self.kind.handler is not None
        claim = self.kind.handler.claim(self.owner)
        if claim is None:
            return False
        self.bell.ring()
        with claim.afterwards, self.holdings.holding(claim):
            self._end(claim, self._do(claim))
        claim.forget()
        self.after(self.kind)
        return True

    def _do(self, claim: Claim) -> Callable[[], object]:
        """Do the work. Return the function that records how it ended."""
        handler = self.kind.handler
        assert handler is not None
        try:
            claim.go_on()
            result = handler.do(claim)
        except Interrupted as interruption:
            return self._interrupted(claim, interruption.reason)
        except (Exception, SystemExit) as error:
            tell = log.warning if isinstance(error, handler.expected) else log.exception
            tell("slot.failed", slot=self.name, claim=str(claim), error=str(error))
            failure = error
            return lambda: handler.fail(claim, failure)
        return lambda: handler.succeed(claim, result)

    def _interrupted(self, claim: Claim, reason: str) -> Callable[[], object]:
        assert self.kind.handler is not None
        log.info("slot.interrupted", slot=self.name, claim=str(claim), reason=reason)
        stop = self.kind.handler.stop
        if reason == claims.CANCEL_REQUESTED and stop is not None:
            return lambda: stop(claim)
        if not claim.is_trusted():
            return lambda: None
        return lambda: recovery.release(self.kind, claim, self.owner)

    def _end(self, claim: Claim, say: Callable[[], object]) -> None:
        """Record the end. Retry while the database is away and the claim is ours, then leave the row to recovery."""
        pause = FIRST_PAUSE_SECONDS
        # Fixed now: a row that cannot be written, in a database that answers, must not be renewed forever.
        until = claim.trusted_until
        while True:
            try:
                say()
                return
            except DatabaseError as error:
                if not outages.met(error) or pause == FIRST_PAUSE_SECONDS:
                    log.warning("slot.cannot_end", slot=self.name, claim=str(claim), error=str(error).strip())
                connection.close()
                if time.monotonic() + pause >= until:
                    return
                time.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
