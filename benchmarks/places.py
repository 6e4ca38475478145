"""The surroundings of a part that measures the web: a database, a folder, settings as deployed, and an actor."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.actors import Actor, environment
from benchmarks.databases import Postgres, Sqlite
from benchmarks.engines import AS_DEPLOYED

# Turn off the rate limits, which the single client of the benchmark would exceed.
UNLIMITED = {"ADE_RATE_READS": "0", "ADE_RATE_WRITES": "0"}
# Variables for parts whose clients connect without a proxy.
WITHOUT_PROXY = {
    "DJANGO_SETTINGS_MODULE": "benchmarks.web",
    "ADE_LOG_LEVEL": "ERROR",
    "ALLOWED_HOSTS": "127.0.0.1",
}


@dataclass(frozen=True)
class Place:
    # Environment variables for the web processes.
    variables: dict[str, str]
    actor: Actor
    log: Path


@contextmanager
def place(server: Postgres | Sqlite, part: str, directory: Path, **more: str) -> Iterator[Place]:
    server.create(part)
    folder = directory / f"{server.name}-{part}"
    folder.mkdir()
    variables = environment(server.url(part), folder / "var", **AS_DEPLOYED | UNLIMITED | more)
    actor = Actor(variables, folder / "actor.log")
    try:
        yield Place(variables, actor, folder / "web.log")
    finally:
        actor.stop()
