"""Threads with their own connections, controlled step by step, so that the winner of a race is chosen and not left to
chance.

`hold(act)` runs something in a transaction and keeps it open, with its locks, until `commit()`. `start(act)` starts
something; `waits()` returns whether it is waiting for a lock. On SQLite a held transaction is the write lock of the
whole database. `together(acts)` starts all at once.
"""

import time
from concurrent.futures import Future
from threading import Barrier, Thread
from threading import Event as Flag

from django.db import connection, transaction

# Nothing here takes a second on an idle machine.
DEADLINE_SECONDS = 300


def until(condition, seconds=DEADLINE_SECONDS, every=0.01):
    """Return the first true value of `condition`."""
    give_up_at = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < give_up_at, f"waited for {seconds} s"
        time.sleep(every)
    return answer


class Started:
    """A function that runs in a thread with its own connection."""

    def __init__(self, act):
        self._act, self._future, self._connected = act, Future(), Flag()
        self.backend = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._connected.wait(DEADLINE_SECONDS)

    def _run(self):
        try:
            connection.ensure_connection()
            if connection.vendor == "postgresql":
                self.backend = connection.connection.info.backend_pid
            self._connected.set()
            self._future.set_result(self._do())
        except BaseException as error:
            self._future.set_exception(error)
        finally:
            self._connected.set()
            connection.close()

    def _do(self):
        return self._act()

    def answer(self):
        """Return the result, or raise the error."""
        answer = self._future.result(DEADLINE_SECONDS)
        self._thread.join(DEADLINE_SECONDS)
        return answer

    def error(self):
        error = self._future.exception(DEADLINE_SECONDS)
        self._thread.join(DEADLINE_SECONDS)
        return error

    def is_under_way(self):
        return not self._future.done()

    def waits(self):
        """Wait until it waits for a lock or has ended; return False if it has ended. SQLite cannot report lock waits,
        but all writers wait there.
        """
        if connection.vendor == "postgresql":
            until(lambda: waits_for_a_lock(self.backend) or not self.is_under_way())
        return self.is_under_way()

    def end(self):
        self._thread.join(DEADLINE_SECONDS)
        assert not self._thread.is_alive()


class Held(Started):
    """Has run but is not committed. It rolls back unless `commit` is called."""

    def __init__(self, act):
        self.done, self._told, self._commits = Flag(), Flag(), False
        super().__init__(act)
        until(lambda: self.done.is_set() or not self.is_under_way())

    def _do(self):
        with transaction.atomic():
            answer = self._act()
            self.done.set()
            assert self._told.wait(DEADLINE_SECONDS)
            transaction.set_rollback(not self._commits)
        return answer

    def commit(self):
        self._commits = True
        self._told.set()
        return self.answer()

    def roll_back(self):
        self._told.set()
        return self.answer()

    def end(self):
        self._told.set()
        super().end()


class Threads:
    """The threads that a test has started; none of them outlives the test."""

    def __init__(self):
        self._started = []

    def start(self, act):
        return self._keep(Started(act))

    def hold(self, act):
        return self._keep(Held(act))

    def together(self, acts):
        """Return all results in order; an error is returned like a result."""
        acts = list(acts)
        barrier = Barrier(len(acts), timeout=DEADLINE_SECONDS)
        started = [self.start(lambda act=act: barrier.wait() is not None and act()) for act in acts]
        return [each.error() or each.answer() for each in started]

    def end(self):
        for each in self._started:
            each.end()

    def _keep(self, started):
        self._started.append(started)
        return started


class Step:
    """Replaces a failpoint: the first thread that reaches it waits until `go_on`."""

    def __init__(self, times=1):
        self.left = times
        self.reached, self._go = Flag(), Flag()
        self.backend = None

    def fire(self, name):
        if self.left == 0:
            return
        self.left -= 1
        if connection.vendor == "postgresql":
            self.backend = connection.connection.info.backend_pid
        self.reached.set()
        assert self._go.wait(DEADLINE_SECONDS), f"no thread continued from {name}"

    def until_reached(self):
        assert self.reached.wait(DEADLINE_SECONDS)

    def go_on(self):
        self._go.set()


def waits_for_a_lock(backend):
    with connection.cursor() as cursor:
        cursor.execute("SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s", [backend])
        row = cursor.fetchone()
    return row is not None and row[0] is True


def terminate(backend):
    """End this connection on the server, as an administrator or a restart would."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [backend])
    until(lambda: not _is_connected(backend))


def _is_connected(backend):
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [backend])
        return cursor.fetchone()[0]
