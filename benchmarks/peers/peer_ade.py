"""ADE as one of the peers: see the README of the peers' benchmark, into which `python -m benchmarks.peers` copies this
file.
"""

import os
import sys

import django
from django.core.management import execute_from_command_line

os.environ["DATABASE_URL"] = (
    f"postgresql://{os.environ['PGUSER']}:@/{os.environ['PGDATABASE']}?host={os.environ['PGHOST']}"
)
os.environ["ADE_BENCHMARK_PIPE"] = os.environ["BENCH_STAMPS"]
django.setup()

from benchmarks import rows  # noqa: E402  # imports models, so Django must be set up
from builds.models import Configuration  # noqa: E402
from documents.models import Document  # noqa: E402
from runs import lifecycle  # noqa: E402
from runs.models import Run  # noqa: E402

BULK = True
# Must be more than a round queues at once, because each job is a run of a different document.
DOCUMENTS = 6000
documents: list[Document] = []
configurations: list[Configuration] = []


def setup() -> None:
    rows.seed(DOCUMENTS)


def open_client() -> None:
    documents[:] = rows.documents(DOCUMENTS)
    configurations[:] = [rows.configuration("ready")]


def clear() -> None:
    rows.execute("TRUNCATE runs, artifacts, events")


def enqueue(kind: str, i: int) -> None:
    enqueue_many(kind, [i])


def enqueue_many(kind: str, ids: list[int]) -> None:
    lifecycle.submit_many(configurations[0], [documents[i % DOCUMENTS] for i in ids], actor="peer")


def unfinished(_n: int) -> int:
    return Run.objects.live().count()


def history(n: int) -> None:
    rows.history(n)


def workers(c: int) -> list[list[str]]:
    """Return the commands that start one process per slot or, in the variant "slots", one process with all slots."""
    slots = c if os.environ["BENCH_VARIANT"] == "slots" else 1
    return [["peer_ade.py", "worker", "--slots", f"run={slots}", "--name", f"w{n}"] for n in range(c // slots)]


if __name__ == "__main__":
    execute_from_command_line(sys.argv)
