"""Threads on connections of their own, one step at a time: who is first is said and not hoped for.

`hold(act)` does something in a transaction and keeps it open, with its locks, until `commit()`. `start(act)` begins
something; `waits()` tells whether it has come to wait for somebody else's lock. On SQLite a held transaction is the
write lock of the whole database. `together(acts)` lets go of all at once.
"""

import time
from concurrent.futures import Future
from threading import Barrier, Thread
from threading import Event as Flag

from django.db import connection, transaction

# Nothing here takes a second on a machine that has nothing else to do.
DEADLINE_SECONDS = 300


def until(condition, seconds=DEADLINE_SECONDS, every=0.01):
    """The first true answer of `condition`."""
    give_up_at = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < give_up_at, f"waited for {seconds} s"
        time.sleep(every)
    return answer


class Started:
    """Something under way in a thread and on a connection of its own."""

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
        """What it answered, or the error that it raised."""
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
        """Until it waits for a lock, or has ended. SQLite cannot be asked who waits, but there all writers do."""
        if connection.vendor == "postgresql":
            until(lambda: waits_for_a_lock(self.backend) or not self.is_under_way())
        return self.is_under_way()

    def end(self):
        self._thread.join(DEADLINE_SECONDS)
        assert not self._thread.is_alive()


class Held(Started):
    """Done, but not committed. One that is not told to commit rolls back."""

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
    """All that a test has started, so that nothing of it outlives the test."""

    def __init__(self):
        self._started = []

    def start(self, act):
        return self._keep(Started(act))

    def hold(self, act):
        return self._keep(Held(act))

    def together(self, acts):
        """The answers of all, in order; an error is an answer too."""
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
    """In the place of a failpoint: the first thread to come there stands still until it is told to go on."""

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
        assert self._go.wait(DEADLINE_SECONDS), f"nobody went on from {name}"

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
    """The server ends this connection, as an administrator or a restart would."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [backend])
    until(lambda: not _is_connected(backend))


def _is_connected(backend):
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [backend])
        return cursor.fetchone()[0]
