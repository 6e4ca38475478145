"""The process that claims and does work. The web process never does."""

import signal
import time
import uuid
from queue import SimpleQueue
from threading import Event as Flag
from types import FrameType

import structlog
from django.conf import settings
from django.db import DatabaseError, connection

from work import boots, drains, recovery, wakeups
from work.caretaker import Caretaker, Rescuer
from work.claims import Holdings
from work.contention import Contended
from work.kinds import Kind, all_kinds
from work.leases import LeaseKeeper
from work.slots import Bell, Slot

# How soon a drain sees that all is done, or a second signal.
LOOK_SECONDS = 0.1
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# What slots that were told to end at once may take before their work is given back without them.
LAST_SECONDS = 10.0
# What people ask of a worker, or of what it holds: the keeper of its leases looks for it.
ASKED = frozenset({"cancel", drains.TOPIC})

log = structlog.get_logger(__name__)


class Worker:
    def __init__(self, name: str, slots: dict[str, int] | None = None) -> None:
        self.kinds = list(all_kinds())
        self.numbers = {kind.name: _number(kind, slots or {}) for kind in self.kinds if kind.lane}
        self.row = boots.register(name, uuid.uuid4().hex[:12], self.numbers)
        self.owner = self.row.owner
        self.holdings = Holdings()
        self.draining, self.ending = Flag(), Flag()
        self.leases = LeaseKeeper(self.row, self.holdings, self.ending)
        self.rescuer = Rescuer(self.kinds, self.owner, self.ending, self.ring)
        self.caretaker = Caretaker(self.kinds, self.owner, self.ending, self.ring)
        self.listener = wakeups.Listener(self.hear, self.ending)
        self.bells = {kind.name: Bell() for kind in self.kinds if kind.lane}
        self.slots = [self._slot(kind, n) for kind in self.kinds if kind.lane for n in range(self.numbers[kind.name])]
        # Not a Flag: a signal that comes while its handler sets one would wait for the lock that it has interrupted.
        self.asked_to_stop: SimpleQueue[int] = SimpleQueue()

    def run(self) -> int:
        """Until a signal or a person says stop. 0: all was finished or given back; 1: something is left to recovery."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_signal)
        log.info("worker.started", owner=self.owner, slots=self.numbers)
        boots.recover_earlier(self.row, self.kinds)
        # Before the first claim: what a worker that died had not come to may be what has its turn. At tick 0 every
        # chore is due, also those that sweep what it has left on the disk.
        self.caretaker.do_chores(all_of_them=False)
        # Whoever connects from here on is a thread of its own.
        connection.close()
        for thread in (self.leases, self.rescuer, self.caretaker, self.listener, *self.slots):
            thread.start()
        # Asked, not waited for: a signal that comes just before a wait begins would be heard at its end only.
        while self.asked_to_stop.empty() and not self.leases.drain_requested.is_set():
            time.sleep(LOOK_SECONDS)
        return self._drain()

    def hear(self, topic: str) -> None:
        """A bell has rung, here or in another process; "" when nobody can tell for what."""
        if topic == "" or topic in ASKED:
            self.leases.woken.set()
        if topic in ASKED:
            return
        for kind in self.kinds:
            if topic in ("", kind.name, *kind.wakes_on):
                self.ring(kind)
            if topic in kind.wakes_on:
                self.caretaker.woken.set()

    def ring(self, kind: Kind) -> None:
        if bell := self.bells.get(kind.name):
            bell.ring()

    def contended(self, kind: Kind, met: Contended) -> None:
        log.warning("worker.contention", kind=kind.name, error=str(met).strip())
        try:
            boots.record_contention(self.row, str(met).strip())
        except DatabaseError as error:
            log.warning("worker.contention_not_recorded", error=str(error).strip())

    def _slot(self, kind: Kind, number: int) -> Slot:
        return Slot(
            kind,
            number,
            owner=self.owner,
            bell=self.bells[kind.name],
            holdings=self.holdings,
            stopping=self.draining,
            after=lambda ended: self._after(ended),
            contended=self.contended,
        )

    def _after(self, ended: Kind) -> None:
        """What one lane has finished another may wait for, and SQLite's bell cannot say so."""
        for kind in self.kinds:
            if ended.name in kind.wakes_on:
                self.caretaker.woken.set()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.asked_to_stop.put(number)

    def _drain(self) -> int:
        """Let what is under way finish, for a while; then end it and give it back."""
        by = "signal" if self.asked_to_stop.qsize() else "request"
        log.info("worker.draining", owner=self.owner, by=by, holding=[str(claim) for claim in self.holdings])
        self.draining.set()
        for bell in self.bells.values():
            bell.wake_all()
        until = time.monotonic() + settings.ADE_DRAIN_SECONDS
        # Also when a person has asked, the first signal is a polite one: whoever keeps the worker running may send it.
        while self._slots_alive() and self.asked_to_stop.qsize() < 2 and time.monotonic() < until:
            self._join(LOOK_SECONDS)
        until = time.monotonic() + LAST_SECONDS
        while self._slots_alive() and time.monotonic() < until:
            # Again and again: a claim may have been on its way.
            for claim in self.holdings:
                claim.stopping.set()
            self._join(LOOK_SECONDS)
        left = self._give_back()
        self.ending.set()
        self.leases.woken.set()
        self.caretaker.woken.set()
        # Its last heartbeat would say that we are there.
        self.leases.join(LOOK_SECONDS)
        boots.sign_off(self.row)
        log.info("worker.stopped", owner=self.owner, left=left)
        for number in STOP_SIGNALS:
            # Python puts the defaults back while it ends; one signal more is not to change how we ended.
            signal.signal(number, signal.SIG_IGN)
        return 1 if left else 0

    def _slots_alive(self) -> bool:
        return any(slot.is_alive() for slot in self.slots)

    def _join(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        for slot in self.slots:
            slot.join(max(0.0, until - time.monotonic()))

    def _give_back(self) -> list[str]:
        """What slots could not bring to an end themselves."""
        left = []
        for claim in self.holdings:
            kind = next(kind for kind in self.kinds if kind.moves is claim.moves)
            try:
                if not recovery.release(kind, claim, self.owner):
                    left.append(str(claim))
            except DatabaseError as error:
                log.warning("worker.cannot_give_back", claim=str(claim), error=str(error).strip())
                left.append(str(claim))
        return left


def _number(kind: Kind, slots: dict[str, int]) -> int:
    assert kind.lane is not None
    return slots[kind.name] if kind.name in slots else int(getattr(settings, kind.lane.slots))
