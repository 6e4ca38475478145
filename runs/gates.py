"""Gates keep out of the claim's sight what it could not take anyway.

A hundred thousand queued runs of one busy document, or of a build that is not ready, would be looked at by every
claim. So each carries the reason that it was last seen waiting for, and the claim's index holds none of them. A gate
that is left open too long costs time and nothing else, for the claim asks itself; one that is left shut is found by
`open_forgotten`.
"""

from collections.abc import Iterable

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, Value, Window
from django.db.models.functions import Coalesce, RowNumber

from builds.models import Build
from documents.models import Document, DocumentQuerySet
from runs.models import Run
from work import compiled, wakeups

# So many at once: an update that holds its rows for a moment, not for seconds.
BATCH = 2000


def behind_document(document_ids: list[int]) -> list[str]:
    """The gates of new runs of these documents, in this order: open for the first of a document that has no other."""
    waited_for = set(_busy(document_ids))
    found = []
    for id in document_ids:
        found.append(Run.Gate.DOCUMENT if id in waited_for else Run.Gate.OPEN)
        waited_for.add(id)
    return [gate.value for gate in found]


def open_document(document_id: int) -> bool:
    """Let the next run of a document come forward, now that one has left."""
    oldest = compiled.rows(_oldest_queued, document_id)
    if not oldest or oldest[0][1] != "document" or not _open([oldest[0][0]]):
        return False
    wakeups.ring("run")
    return True


def ended_builds() -> list[tuple[int, str, str]]:
    """The builds that queued runs wait for and need not any more: (build, status, error message)."""
    waited_for = Run.objects.filter(status="queued", gate="build").values("build_id").distinct()
    return list(Build.objects.ended().filter(pk__in=waited_for).values_list("pk", "status", "error_message"))


def behind_build(build_id: int) -> list[int]:
    """The oldest queued runs that wait for this build."""
    waiting = Run.objects.filter(build_id=build_id, status="queued", gate="build").order_by("created_at", "id")
    return list(waiting.values_list("pk", flat=True)[:BATCH])


@transaction.atomic
def leave_build(run_ids: list[int]) -> int:
    """Runs whose build is ready fall in with the other queued runs of their documents, by age."""
    waiting = Run.objects.filter(pk__in=run_ids, status="queued", gate="build")
    documents = set(waiting.values_list("input_document_id", flat=True))
    left = waiting.update(gate="document")
    Run.objects.filter(input_document_id__in=documents, status="queued", gate="").update(gate="document")
    _open(_heads(documents))
    return left


def open_forgotten(_owner: str = "") -> int:
    """Open the gates whose reason has gone, whoever should have done it: a submission may have met the last finish."""
    live = Run.objects.order_by().values_list("input_document_id", flat=True)
    shut = live.filter(status="queued", gate="document")
    # Sets, not joins: a hundred thousand rows that the planner has not heard of yet must not become nested loops.
    forgotten = shut.difference(live.filter(status="running"), live.filter(status="queued", gate=""))
    return _open(_heads(set(forgotten[:BATCH])))


def _busy(document_ids: list[int]) -> set[int]:
    if len(document_ids) == 1:
        return {id for (id,) in compiled.rows(_busy_document, document_ids[0])}
    return set(_busy_documents().filter(pk__in=document_ids).values_list("pk", flat=True))


def _busy_document(document_id: int) -> "QuerySet[Document, tuple[int]]":
    return _busy_documents().filter(pk=document_id).values_list("pk")


def _busy_documents() -> DocumentQuerySet:
    """Those on which a run is at work or has its turn before any new one, also behind a gate that was left shut."""
    same = Run.objects.filter(input_document_id=OuterRef("pk"))
    return Document.objects.filter(
        Exists(same.filter(status="running")) | Exists(same.filter(status="queued", gate__in=["", "document"]))
    )


def _oldest_queued(document_id: int) -> "QuerySet[Run, tuple[int, str]]":
    """(run, gate) of the one whose turn it is, unless another one is running."""
    of_document = Run.objects.filter(input_document_id=document_id)
    queued = of_document.filter(
        ~Exists(of_document.filter(status="running")), status="queued", gate__in=["", "document"]
    )
    return queued.order_by("created_at", "id").values_list("pk", "gate")[:1]


def _heads(document_ids: Iterable[int]) -> list[int]:
    """The oldest shut run of each of these documents, except where one is running."""
    running = Run.objects.filter(status="running", input_document_id__in=document_ids)
    free = set(document_ids).difference(running.values_list("input_document_id", flat=True))
    age = Window(RowNumber(), partition_by="input_document_id", order_by=["created_at", "id"])
    shut = Run.objects.filter(input_document_id__in=free, status="queued", gate="document").annotate(age=age)
    return list(shut.filter(age=1).values_list("pk", flat=True))


def _open(ids: list[int]) -> int:
    # Coalesced, the status fits no index of queued rows, which PostgreSQL would walk in search of the ids.
    queued = Run.objects.annotate(status_now=Coalesce("status", Value(""))).filter(status_now="queued")
    return queued.filter(pk__in=ids, gate="document").update(gate="") if ids else 0
