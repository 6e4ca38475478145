"""The databases of the benchmark: one for each state, so that all states can be measured in turn."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Protocol

import psycopg

from benchmarks.actors import ROOT, Actor, environment
from tools.with_postgres import DURABLE, postgres

# Name of the migrated database without rows, from which the others are copied.
EMPTY = "empty"


class Server(Protocol):
    name: str

    def url(self, world: str) -> str: ...

    def create(self, world: str) -> None:
        """Create the database of an empty installation as a copy of EMPTY, which is quicker than migrating each
        database.
        """

    def copy(self, source: str, world: str) -> None:
        """Copy a database. No process may be connected to the source."""


class Postgres:
    name = "postgres"

    def __init__(self, url: str, directory: Path) -> None:
        self._url, self._directory = url, directory
        self._has_empty = False

    def url(self, world: str) -> str:
        scheme, _, rest = self._url.partition("://")
        credentials, _, query = rest.partition("/")
        return f"{scheme}://{credentials}/bench_{world}?{query.partition('?')[2]}"

    def create(self, world: str) -> None:
        if not self._has_empty:
            self._run(f"CREATE DATABASE bench_{EMPTY}")
            _migrate(self.url(EMPTY), self._directory)
            self._has_empty = True
        self.copy(EMPTY, world)

    def copy(self, source: str, world: str) -> None:
        self._run(f"CREATE DATABASE bench_{world} TEMPLATE bench_{source}")

    def version(self) -> str:
        with psycopg.connect(self._url) as connection:
            row = connection.execute("SHOW server_version").fetchone()
        return f"PostgreSQL {row[0] if row else '?'}"

    def _run(self, sql: str) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(sql.encode())


class Sqlite:
    name = "sqlite"

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def url(self, world: str) -> str:
        return f"sqlite:///{self._path(world)}"

    def create(self, world: str) -> None:
        if not self._path(EMPTY).exists():
            _migrate(self.url(EMPTY), self.directory)
        self.copy(EMPTY, world)

    def copy(self, source: str, world: str) -> None:
        shutil.copy(self._path(source), self._path(world))

    def _path(self, world: str) -> Path:
        return self.directory / f"bench-{world}.sqlite3"


class World:
    """One database in one state, with two actors that connect to it when they are first used."""

    def __init__(self, server: "Postgres | Sqlite", name: str, directory: Path) -> None:
        self.server, self.name, self.directory = server, name, directory
        self.log = directory / f"{server.name}-{name}.log"
        self.pipe = directory / f"{server.name}-{name}.pipe"
        if not self.pipe.exists():
            os.mkfifo(self.pipe)
        # Keep the pipe open even while no process has opened either side.
        self._held = os.open(self.pipe, os.O_RDWR)
        self._started: list[Actor] = []
        self.behind = 0

    @cached_property
    def first(self) -> Actor:
        return self._start()

    @cached_property
    def second(self) -> Actor:
        return self._start()

    @property
    def actors(self) -> list[Actor]:
        return [self.first, self.second]

    def environment(self, **more: str) -> dict[str, str]:
        return environment(
            self.server.url(self.name), self.directory / "var", ADE_BENCHMARK_PIPE=str(self.pipe), **more
        )

    def remember(self) -> None:
        """Protect the runs that exist now from `clear`."""
        self.behind = self.first.call("rows.last_run")
        self.first.call("rows.settle")

    def clear(self) -> None:
        self.first.call("rows.clear", behind=self.behind)

    def stop(self) -> None:
        for actor in self._started:
            actor.stop()
        os.close(self._held)

    def _start(self) -> Actor:
        actor = Actor(self.environment(), self.log)
        self._started.append(actor)
        # Wait until the actor is ready, so that no loop is measured together with the start of its actor.
        actor.call("rows.last_run")
        return actor


def _migrate(url: str, directory: Path) -> None:
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    variables = environment(url, directory / "var")
    subprocess.run(command, cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, check=True)


@contextlib.contextmanager
def servers(wanted: list[str], directory: Path) -> Iterator[list["Postgres | Sqlite"]]:
    with contextlib.ExitStack() as stack:
        found: list[Postgres | Sqlite] = []
        if "postgres" in wanted:
            found.append(Postgres(stack.enter_context(postgres(DURABLE)), directory))
        if "sqlite" in wanted:
            found.append(Sqlite(directory))
        yield found


def worlds(
    server: "Postgres | Sqlite", directory: Path, documents: int, states: dict[str, Callable[[Actor], None]]
) -> dict[str, World]:
    """Create the plain database, and for each state a copy that is then brought into that state."""
    server.create("plain")
    plain = World(server, "plain", directory)
    plain.first.call("rows.seed", documents=documents)
    plain.first.call("rows.close")
    for name in states:
        server.copy("plain", name)
    made = {"plain": plain}
    for name, bring_about in states.items():
        made[name] = World(server, name, directory)
        bring_about(made[name].first)
    for world in made.values():
        world.remember()
    return made
