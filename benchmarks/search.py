"""The search part: searches in a hundred thousand chunks, by words and meaning together, as people search."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import report
from benchmarks.actors import Actor, environment
from benchmarks.databases import Postgres, Sqlite
from benchmarks.engines import AS_DEPLOYED

PART = "search"


@dataclass(frozen=True)
class Sizes:
    rounds: int
    chunks: int
    # How many searches are made in a round, and for how many the recall is measured.
    searches: int
    recalls: int
    # Chunks of the long document that is written in each round.
    published: int


FULL = Sizes(rounds=5, chunks=100_000, searches=100, recalls=40, published=4000)
QUICK = Sizes(rounds=3, chunks=20_000, searches=60, recalls=30, published=2000)
TINY = Sizes(rounds=1, chunks=300, searches=10, recalls=5, published=20)


class Bench:
    def __init__(self, sizes: Sizes, samples: report.Samples, say: Callable[[str], None]) -> None:
        self.sizes, self.samples, self.say = sizes, samples, say

    def run(self, servers: list[Postgres | Sqlite], directory: Path) -> None:
        for server in servers:
            server.create(PART)
            variables = environment(server.url(PART), directory / "var", **AS_DEPLOYED)
            actor = Actor(variables, directory / f"{server.name}-{PART}.log")
            try:
                self._measure(server.name, actor)
            finally:
                actor.stop()

    def _measure(self, on: str, actor: Actor) -> None:
        took = actor.call("lookups.seed", chunks=self.sizes.chunks)
        self.say(f"{on}: {self.sizes.chunks} chunks written in {took['written']:.0f} s, index {took['indexed']:.0f} s")
        # Measure the first search of a process separately: it loads the model and, without pgvector, all vectors.
        (first,) = actor.call("lookups.ask", number=1, seed=0)["each"]
        self.samples.add(f"{on}.search.first", first)
        for number in range(self.sizes.rounds):
            for by in ("both", "words", "meaning"):
                found = actor.call("lookups.ask", number=self.sizes.searches, seed=number + 1, by=by)
                taken = found["each"]
                self.samples.add(f"{on}.search.{by}.busy", found["busy"] / len(taken))
                self.samples.add_moments(f"{on}.search.{by}", taken)
                self.samples.add(f"{on}.search.{by}.p95", sorted(taken)[int(len(taken) * 0.95)])
            if on == "postgres":
                shares = actor.call("lookups.recall", number=self.sizes.recalls, seed=number + 1)
                self.samples.add(f"{on}.search.recall", sum(shares) / len(shares))
            seconds = actor.call("lookups.publish", number=self.sizes.published, seed=number + 1)
            self.samples.add(f"{on}.search.publish", seconds)
            self.say(f"{on}: search round {number + 1} of {self.sizes.rounds}")
