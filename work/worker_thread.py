"""A worker thread claims one row, does its work, records how it ended, and starts over."""

import time
from collections.abc import Callable
from functools import partial
from threading import Condition
from threading import Event as Flag

import structlog
from django.conf import settings
from django.db import DataError, Error, IntegrityError, connection

from work import claims, outages, recovery
from work.claims import Claim, Holdings, Interrupted, ResultRefused
from work.sql.contention import Contended
from work.threads import FIRST_PAUSE_SECONDS, SteadyThread
from work.work_types import WorkType

# The longest pause between tries to record the end of work while the database refuses it.
LONGEST_PAUSE_SECONDS = 5.0

log = structlog.get_logger(__name__)


class Bell:
    """Wakes one waiting thread. A thread that finds work wakes the next one, so that few threads wake for nothing."""

    def __init__(self) -> None:
        self._condition = Condition()
        self._rung = False
        self._is_over = False

    def ring(self) -> None:
        with self._condition:
            self._rung = True
            self._condition.notify()

    def wake_all(self) -> None:
        """Wake all threads for good, including any that is just about to wait."""
        with self._condition:
            self._is_over = True
            self._condition.notify_all()

    def wait(self, seconds: float) -> None:
        with self._condition:
            if not (self._rung or self._is_over):
                self._condition.wait(seconds)
            self._rung = False


class WorkerThread(SteadyThread):
    def __init__(
        self,
        kind: WorkType,
        number: int,
        *,
        owner: str,
        bell: Bell,
        holdings: Holdings,
        stopping: Flag,
        on_end: Callable[[WorkType], None],
        on_contention: Callable[[WorkType, Contended], None],
    ) -> None:
        super().__init__(f"{kind.name}-{number}", stopping)
        assert kind.handler is not None
        self.kind, self.handler, self.owner, self.bell, self.holdings = kind, kind.handler, owner, bell, holdings
        self.on_end, self.on_contention = on_end, on_contention

    def do_round(self) -> None:
        try:
            if not self.run_once():
                self.bell.wait(settings.ADE_TICK_SECONDS)
        except Contended as contention:
            self.on_contention(self.kind, contention)
            self.stopping.wait(settings.ADE_TICK_SECONDS)

    def run_once(self) -> bool:
        """Claim and do one piece of work. Return False if there was none; otherwise the caller looks again at once."""
        claim = self.handler.claim(self.owner)
        if claim is None:
            return False
        self.bell.ring()
        with claim.afterwards, self.holdings.holding(claim):
            self._end(claim, self._do(claim))
        claim.forget()
        self.on_end(self.kind)
        return True

    def _do(self, claim: Claim) -> Callable[[], object]:
        """Do the work. Return the function that records how it ended."""
        handler = self.handler
        try:
            claim.go_on()
            result = handler.do(claim)
        except Interrupted as interruption:
            log.info("slot.interrupted", slot=self.name, claim=str(claim), reason=interruption.reason)
            if interruption.reason == claims.CANCEL_REQUESTED and handler.stop is not None:
                return partial(handler.stop, claim)
            return partial(recovery.release, self.kind, claim, self.owner) if claim.is_trusted() else lambda: None
        except (Exception, SystemExit) as error:
            report = log.warning if isinstance(error, handler.expected) else log.exception
            report("slot.failed", slot=self.name, claim=str(claim), error=str(error))
            return partial(handler.fail, claim, error)
        return partial(handler.succeed, claim, result)

    def _end(self, claim: Claim, record: Callable[[], object]) -> None:
        """Record how the work ended. If the database refuses the result, record that as a failure. Retry on other
        database errors until the claim runs out, then leave it to recovery.
        """
        is_refused = False
        pause = FIRST_PAUSE_SECONDS
        # Fix the time limit now. If the database answers but refuses to write this row, the lease thread keeps renewing
        # the lease, and the retries would never end.
        until = claim.trusted_until
        while True:
            try:
                record()
                return
            except (IntegrityError, DataError) as error:
                log.warning("slot.result_refused", slot=self.name, claim=str(claim), error=str(error).strip())
                if is_refused:
                    return
                is_refused, record = True, partial(self.handler.fail, claim, ResultRefused(error))
            except Error as error:
                if not outages.is_outage(error) or pause == FIRST_PAUSE_SECONDS:
                    log.warning("slot.cannot_end", slot=self.name, claim=str(claim), error=str(error).strip())
                connection.close()
                if time.monotonic() + pause >= until:
                    return
                time.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
