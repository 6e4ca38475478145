"""Workers that lose their database, and workers that are killed, stopped and started at random."""

import random
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
import psycopg
import pytest
from django.conf import settings
from django.db import connection, transaction

from tests.processes import START_SECONDS
from tests.races.invariants import assert_all_hold
from tests.races.test_sqlite import HOLD
from tests.stepping import until
from tests.testwork import lifecycle as errands
from tests.testwork.models import Errand
from tests.work.test_worker_process import (
    add,
    child_of,
    events,
    is_gone,
    seconds_until,
    somebody_listens,
    statuses,
    until_at_work,
)
from work import lifecycle
from work.models import Event

pytestmark = pytest.mark.long

# Children end a sixth of the lease before it expires; a busy machine may be late by that much.
LEASE = 30
WORDS = ("away", "back")
WAIT = "import os, signal; print(os.environ['DATABASE_URL'], flush=True); signal.pause()"


def main(script):
    """Add an errand, in another process and on another database."""
    add(script)


class Server:
    """A separate PostgreSQL server that a test can stop and start."""

    def __init__(self):
        self._keeper = subprocess.Popen(
            [sys.executable, "tools/with_postgres.py", sys.executable, "-c", WAIT],
            cwd=settings.BASE_DIR,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = self._keeper.stdout.readline().strip()
        self.data = Path(parse_qs(urlsplit(self.url).query)["host"][0])
        self._again = []

    def stop(self):
        server = psutil.Process(int((self.data / "postmaster.pid").read_text().split()[0]))
        server.send_signal(signal.SIGINT)
        server.wait(START_SECONDS)

    def start(self):
        command = shlex.split((self.data / "postmaster.opts").read_text())
        # PostgreSQL refuses to run as root, and its files belong to another user.
        with open(self.data / "log", "ab") as log:
            self._again.append(subprocess.Popen(command, user=self.data.stat().st_uid, stdout=log, stderr=log))
        until(self.answers)

    def answers(self):
        try:
            return self.ask("SELECT true") == [(True,)]
        except psycopg.OperationalError:
            return False

    def ask(self, sql):
        with psycopg.connect(self.url) as asking:
            return asking.execute(sql).fetchall()

    def end(self):
        for each in self._again:
            each.terminate()
            each.wait(START_SECONDS)
        self._keeper.terminate()
        self._keeper.wait(START_SECONDS)
        self._keeper.stdout.close()


@pytest.fixture
def server(programs):
    server = Server()
    migrated = programs.start("manage.py", "migrate", "--verbosity", 0, DATABASE_URL=server.url)
    assert migrated.code() == 0, migrated.logged()
    yield server
    programs.end()
    server.end()


def add_there(programs, server, script):
    added = programs.main(__name__, script, DATABASE_URL=server.url)
    assert added.code() == 0, added.logged()


@pytest.mark.long(seconds=40)
@pytest.mark.only_on("postgresql")
def test_a_database_that_is_away_for_longer_than_the_lease_costs_the_work_and_not_the_worker(programs, server):
    add_there(programs, server, "child:600")
    worker = programs.worker(DATABASE_URL=server.url, ADE_LEASE_SECONDS=LEASE)
    asked = "SELECT (process->>'pid')::int FROM errands WHERE process IS NOT NULL"
    ((pid,),) = until(lambda: server.ask(asked), START_SECONDS)
    child = psutil.Process(pid)

    away_at = time.monotonic()
    server.stop()
    took = seconds_until(lambda: is_gone(child), START_SECONDS)
    until(lambda: time.monotonic() > away_at + LEASE + 3, every=0.2)
    assert worker.is_alive(), worker.logged()
    server.start()

    # Before its lease expires.
    assert took < LEASE
    worker.until_logged("worker.database_back")
    lines = worker.logged().splitlines()
    (gone,), (back,) = ([n for n, line in enumerate(lines) if f"worker.database_{word}" in line] for word in WORDS)
    # The single errand in progress may log that it was interrupted.
    assert back - gone < 8, worker.logged()
    # The worker claims the same errand again, and new ones.
    until(lambda: server.ask("SELECT 1 FROM errands WHERE status = 'doing' AND claim_token = 2"))
    add_there(programs, server, "noop")
    until(lambda: server.ask("SELECT 1 FROM errands WHERE status = 'done'"))
    worker.end_at_once()
    assert worker.code() == 0, worker.logged()
    kinds = Counter(kind for (kind,) in server.ask("SELECT kind FROM events WHERE subject_kind = 'errand'"))
    assert kinds["ERRAND_STARTED"] == 3
    assert server.ask("SELECT status, claim_token FROM errands ORDER BY id") == [("queued", 2), ("done", 1)]


@pytest.mark.only_on("postgresql")
def test_a_worker_that_starts_while_the_database_is_away_waits_for_it(programs, server):
    add_there(programs, server, "noop")
    server.stop()

    impatient = programs.worker(DATABASE_URL=server.url, ADE_DATABASE_WAIT_SECONDS=1)
    assert impatient.code() == 1
    assert "The database is unavailable" in impatient.logged()
    assert "Traceback" not in impatient.logged()

    worker = programs.worker(DATABASE_URL=server.url)
    worker.until_logged("worker.database_away")
    server.start()
    until(lambda: server.ask("SELECT 1 FROM errands WHERE status = 'done'"))
    assert worker.logged().count("worker.database_away") == worker.logged().count("worker.database_back") == 1
    worker.end_at_once()
    assert worker.code() == 0, worker.logged()


@pytest.mark.only_on("postgresql")
def test_work_that_ends_while_the_database_is_away_is_not_done_again(programs, server):
    add_there(programs, server, "deaf:4")
    worker = programs.worker(DATABASE_URL=server.url, ADE_LEASE_SECONDS=30)
    until(lambda: server.ask("SELECT 1 FROM errands WHERE status = 'doing'"), START_SECONDS)

    server.stop()
    worker.until_logged("slot.cannot_end")
    server.start()

    until(lambda: server.ask("SELECT 1 FROM errands WHERE status = 'done' AND claim_token = 1"))
    kinds = [kind for (kind,) in server.ask("SELECT kind FROM events WHERE subject_kind = 'errand' ORDER BY sequence")]
    assert kinds == ["ERRAND_QUEUED", "ERRAND_STARTED", "ERRAND_DONE"]
    worker.send(signal.SIGTERM)
    assert worker.code() == 0, worker.logged()


@pytest.mark.only_on("postgresql")
def test_a_worker_that_is_told_to_end_while_the_database_is_away_ends(programs, server):
    add_there(programs, server, "sleep:600")
    worker = programs.worker(DATABASE_URL=server.url)
    until(lambda: server.ask("SELECT 1 FROM errands WHERE status = 'doing'"), START_SECONDS)

    server.stop()
    worker.end_at_once()

    assert worker.code() in (0, 1), worker.logged()
    server.start()
    assert server.ask("SELECT status FROM errands") == [("doing",)]


@pytest.mark.only_on("postgresql")
def test_a_worker_that_cannot_give_back_what_somebody_has_locked_ends_all_the_same(programs):
    row = add("sleep:600")
    worker = programs.worker(ADE_DRAIN_SECONDS=1, ADE_EXIT_SECONDS=1, ADE_LEASE_SECONDS=600)
    until_at_work(row)

    with transaction.atomic():
        Errand.objects.select_for_update().get(pk=row.pk)
        worker.send(signal.SIGTERM)
        assert worker.code() == 1, worker.logged()

    assert worker.logged().count("event='worker.exit_forced' limit=1") == 1
    assert Errand.objects.get(pk=row.pk).status == "doing"


@pytest.mark.long(seconds=40)
@pytest.mark.only_on("sqlite")
def test_a_database_that_is_locked_for_longer_than_the_lease_costs_the_work_and_not_the_worker(programs):
    row = add("child:600")
    worker = programs.worker(ADE_LEASE_SECONDS=LEASE)
    until_at_work(row)
    child = child_of(row)

    holder = programs.start("-c", HOLD, connection.settings_dict["NAME"], LEASE + 3)
    assert holder.line()
    took = seconds_until(lambda: is_gone(child), START_SECONDS)
    assert holder.code() == 0

    # Before its lease expires.
    assert took < LEASE
    until(lambda: events(row, "ERRAND_STARTED").count() == 2)
    late = add()
    until(lambda: events(late, "ERRAND_DONE").exists())
    worker.end_at_once()
    assert worker.code() == 0, worker.logged()
    assert_all_hold()


@pytest.mark.only_on("postgresql")
def test_a_worker_whose_connections_are_ended_again_and_again_does_all_its_work_once(programs):
    rows = [add("sleep:0.05") for _ in range(60)]
    worker = programs.worker(ADE_LEASE_SECONDS=5)
    until(lambda: statuses()["done"], START_SECONDS)
    pause = 0.1

    def end_connections():
        nonlocal pause
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        # A busy machine takes its time until it has connected again, and must get on in between.
        time.sleep(pause := min(pause * 1.05, 5.0))
        return statuses() == {"done": len(rows)}

    until(end_connections, START_SECONDS)

    worker.send(signal.SIGTERM)
    assert worker.code() == 0, worker.logged()
    assert Event.objects.filter(kind="ERRAND_DONE").count() == len(rows)
    assert not Event.objects.filter(kind=lifecycle.LATE_WRITE_REFUSED).exists()
    assert_all_hold()


@pytest.mark.only_on("postgresql")
def test_a_bell_that_rang_while_nobody_could_hear_it_is_not_missed(programs):
    worker = programs.worker(ADE_TICK_SECONDS=60, ADE_LEASE_SECONDS=60)
    worker.until_logged("worker.recovered")
    until(somebody_listens)

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
            " AND datname = current_database()"
        )
        assert cursor.fetchall() == [(True,)]
    row = add()

    # Well before the next tick.
    until(lambda: events(row, "ERRAND_DONE").exists())


@pytest.mark.long(seconds=40)
@pytest.mark.only_on("postgresql")
def test_a_table_that_is_locked_for_longer_than_the_lease_costs_the_work_and_not_the_worker(programs, threads):
    row = add("child:600")
    worker = programs.worker(ADE_LEASE_SECONDS=LEASE)
    until_at_work(row)
    child = child_of(row)

    def lock():
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE errands IN ACCESS EXCLUSIVE MODE")
        return time.monotonic()

    migration = threads.hold(lock)
    locked_at = time.monotonic()
    took = seconds_until(lambda: is_gone(child), START_SECONDS)
    until(lambda: time.monotonic() > locked_at + LEASE + 3, every=0.1)
    migration.commit()

    # Before its lease expires.
    assert took < LEASE
    until(lambda: events(row, "ERRAND_STARTED").count() == 2)
    worker.end_at_once()
    assert worker.code() == 0, worker.logged()
    assert_all_hold()


@pytest.mark.long(seconds=20)
@pytest.mark.parametrize("seed", [1, 2])
def test_workers_that_are_killed_stopped_and_started_at_random_do_everything(programs, seed):
    chance = random.Random(seed)
    scripts = ["noop", "sleep:0.3", "deaf:0.3", "child:0.3", "raise"]
    rows = [add(chance.choice(scripts)) for _ in range(200)]
    to_cancel = chance.sample(rows, 20)
    accepted = set()

    def start(n):
        return programs.worker(f"w{n}", ADE_LEASE_SECONDS=1, ADE_DRAIN_SECONDS=2)

    workers = [start(n) for n in range(3)]
    until(lambda: statuses()["done"], START_SECONDS)

    def happen():
        n = chance.randrange(len(workers))
        worker, what = workers[n], chance.choice(["kill", "stop", "end", "cancel", "cancel"])
        if what == "cancel" and to_cancel:
            row = to_cancel.pop()
            if lifecycle.cancel(errands.ERRAND, row.pk, actor="olga") in ("cancelled", "doing"):
                accepted.add(row.pk)
        elif what == "stop":
            # For longer than its lease. On SQLite all others wait if it was stopped while writing.
            worker.send(signal.SIGSTOP)
            stopped_at = time.monotonic()
            until(lambda: time.monotonic() > stopped_at + 1.3, every=0.1)
            worker.send(signal.SIGCONT)
        elif what in ("kill", "end"):
            worker.send(signal.SIGKILL if what == "kill" else signal.SIGTERM)
            worker.code()
            workers[n] = start(n)

    began = time.monotonic()
    until(lambda: happen() or time.monotonic() > began + 20, every=0.4)
    until(lambda: not statuses()["queued"] + statuses()["doing"])
    for worker in workers:
        # A worker that has just started may not handle signals yet.
        worker.until_logged("worker.recovered")
        worker.send(signal.SIGTERM)

    assert [worker.code() for worker in workers] == [0] * 3
    assert (
        Errand.objects.filter(pk__in=accepted).exclude(status="cancelled").values_list("pk", "status").first() is None
    )
    assert_all_hold(quiet=True)
