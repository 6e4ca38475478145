"""The worker: the process that claims and does work. The web process never does any."""

import os
import signal
import time
import uuid
from collections.abc import Mapping
from queue import SimpleQueue
from threading import Event as Flag
from threading import Thread

import structlog
from django.conf import settings
from django.db import Error, connection

from work import boots, draining, recovery, wakeups
from work.claims import Holdings
from work.housekeeping import HousekeepingThread, RecoveryThread
from work.leases import LeaseRenewer
from work.processes import hardening
from work.sql.contention import Contended
from work.work_types import WorkType, all_work_types
from work.worker_thread import Bell, WorkerThread

# How often to check for signals and, during a drain, for the end of all work.
LOOK_SECONDS = 0.1
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Share of ADE_EXIT_SECONDS in which worker threads may end their work. After it, the worker gives the work back without
# waiting for the threads. The rest of the time is for giving back and signing off.
SHARE_OF_THREADS = 2 / 3
# Time between SIGTERM and SIGKILL for the children of a worker that ends. The usual grace period is longer than
# ADE_EXIT_SECONDS.
GRACE_SECONDS = 1.0
# Time limit for logging that a worker is forced to exit.
LOG_SECONDS = 5.0
# Topics of requests that people make to a worker or about its work. The lease thread handles them.
REQUESTS = frozenset({"cancel", draining.TOPIC})

log = structlog.get_logger(__name__)


class Worker:
    def __init__(self, name: str, concurrency: Mapping[str, int] | None = None) -> None:
        self.kinds = list(all_work_types())
        self.concurrency: dict[str, int] = {}
        for kind in self.kinds:
            if kind.handler:
                default = int(getattr(settings, kind.handler.concurrency_setting))
                self.concurrency[kind.name] = (concurrency or {}).get(kind.name, default)
        self.row = boots.register(name, uuid.uuid4().hex[:12], self.concurrency)
        self.owner = self.row.owner
        self.holdings = Holdings()
        self.draining, self.ending = Flag(), Flag()
        self.leases = LeaseRenewer(self.row, self.holdings, self.ending)
        self.recovery = RecoveryThread(self.kinds, self.owner, self.ending, self.ring)
        self.housekeeping = HousekeepingThread(self.kinds, self.owner, self.ending, self.ring)
        self.listener = wakeups.Listener(self.handle_wakeup, self.ending)
        self.bells = {name: Bell() for name in self.concurrency}
        self.threads = [
            WorkerThread(
                kind,
                number,
                owner=self.owner,
                bell=self.bells[kind.name],
                holdings=self.holdings,
                stopping=self.draining,
                on_end=self.wake_followers,
                on_contention=self.record_contention,
            )
            for kind in self.kinds
            for number in range(self.concurrency.get(kind.name, 0))
        ]
        # Not a threading.Event: a signal handler that sets an event could deadlock if it interrupted code that holds
        # the event's lock.
        self.signals: SimpleQueue[int] = SimpleQueue()

    def run(self) -> int:
        """Work until a signal or drain request arrives. Return 1 if work is left for recovery, otherwise 0."""
        for number in STOP_SIGNALS:
            signal.signal(number, lambda number, frame: self.signals.put(number))
        log.info("worker.started", owner=self.owner, slots=self.concurrency)
        for weakness in self.row.weaknesses:
            log.warning("worker.weakness", found=hardening.SAID[weakness], advice=hardening.ADVICE[weakness])
        boots.recover_earlier(self.row, self.kinds)
        # Run the periodic tasks before the first claim: tasks that a dead worker left undone may decide what is next.
        # At tick 0 every task is due, including the removal of a dead worker's files.
        self.housekeeping.do_tasks(is_woken=False)
        # From here on, each thread opens its own connection.
        connection.close()
        for thread in (self.leases, self.recovery, self.housekeeping, self.listener, *self.threads):
            thread.start()
        # Poll instead of waiting: a signal that arrives just before a wait would be noticed only at the wait's end.
        while self.signals.empty() and not self.leases.drain_requested.is_set():
            time.sleep(LOOK_SECONDS)
        return self._drain()

    def handle_wakeup(self, topic: str) -> None:
        """Handle a wake-up from this or another process. The topic is "" if it is unknown."""
        if topic == "" or topic in REQUESTS:
            self.leases.woken.set()
        if topic in REQUESTS:
            return
        for kind in self.kinds:
            if topic in ("", kind.name, *kind.wakes_on):
                self.ring(kind)
            if topic in kind.wakes_on:
                self.housekeeping.woken.set()

    def ring(self, kind: WorkType) -> None:
        if bell := self.bells.get(kind.name):
            bell.ring()

    def wake_followers(self, ended: WorkType) -> None:
        """Wake the periodic tasks of kinds that wait for this kind to end.

        The listener cannot do it on SQLite, where notifications carry no topic.
        """
        if any(ended.name in kind.wakes_on for kind in self.kinds):
            self.housekeeping.woken.set()

    def record_contention(self, kind: WorkType, contention: Contended) -> None:
        message = str(contention).strip()
        log.warning("worker.contention", kind=kind.name, error=message)
        try:
            boots.record_contention(self.row, message)
        except Error as error:
            log.warning("worker.contention_not_recorded", error=str(error).strip())

    def _drain(self) -> int:
        """Let running work finish for up to ADE_DRAIN_SECONDS. Then stop the rest and give it back."""
        exit_by = Deadline(settings.ADE_DRAIN_SECONDS + settings.ADE_EXIT_SECONDS)
        by = "signal" if self.signals.qsize() else "request"
        log.info("worker.draining", owner=self.owner, by=by, holding=[str(claim) for claim in self.holdings])
        self.draining.set()
        for bell in self.bells.values():
            bell.wake_all()
        until = time.monotonic() + settings.ADE_DRAIN_SECONDS
        # After a drain request, the first signal does not shorten the drain, because a process supervisor may send it.
        while self._is_working() and self.signals.qsize() < 2 and time.monotonic() < until:
            self._join(LOOK_SECONDS)
        exit_by.bring_forward(settings.ADE_EXIT_SECONDS)
        until = time.monotonic() + settings.ADE_EXIT_SECONDS * SHARE_OF_THREADS
        while self._is_working() and time.monotonic() < until:
            # Repeated in every round, because a claim or its child may have just started.
            for claim in self.holdings:
                claim.end(GRACE_SECONDS)
            self._join(LOOK_SECONDS)
        left = self._give_back()
        self.ending.set()
        self.leases.woken.set()
        self.housekeeping.woken.set()
        # A heartbeat after the sign-off would make this worker look alive again.
        self.leases.join(LOOK_SECONDS)
        boots.sign_off(self.row)
        log.info("worker.stopped", owner=self.owner, left=left)
        for number in STOP_SIGNALS:
            # Python restores the default handlers while it exits, but a further signal must not change the exit code.
            signal.signal(number, signal.SIG_IGN)
        return 1 if left else 0

    def _is_working(self) -> bool:
        return any(thread.is_alive() for thread in self.threads)

    def _join(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _give_back(self) -> list[str]:
        """Give back the work that threads could not end themselves. Return the claims that are left for recovery."""
        left = []
        for claim in self.holdings:
            kind = next(kind for kind in self.kinds if kind.states is claim.states)
            try:
                if not recovery.release(kind, claim, self.owner) and recovery.is_held(kind, claim):
                    left.append(str(claim))
            except Error as error:
                log.warning("worker.cannot_give_back", claim=str(claim), error=str(error).strip())
                left.append(str(claim))
        return left


class Deadline(Thread):
    """Ends this process in time, even if a database lock, an unreachable database or an unkillable child blocks it.

    Other workers recover the work that the process still holds, and process guards end its children.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(daemon=True)
        self._at = time.monotonic() + seconds
        self.start()

    def bring_forward(self, seconds: float) -> None:
        self._at = min(self._at, time.monotonic() + seconds)

    def run(self) -> None:
        while (left := self._at - time.monotonic()) > 0:
            time.sleep(min(left, LOOK_SECONDS))
        # Logging may hang too, so do it in another thread.
        limit = {"limit": settings.ADE_EXIT_SECONDS}
        logging = Thread(target=log.error, args=["worker.exit_forced"], kwargs=limit, daemon=True)
        logging.start()
        logging.join(LOG_SECONDS)
        os._exit(1)
