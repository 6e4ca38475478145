"""Gates hide from the claim those queued runs that it could not take.

Without gates, every claim might look at a hundred thousand queued runs of one busy document, or of a build that is not
ready. So each waiting run stores why it was last seen waiting, and the claim's index leaves it out. A gate that is open
by mistake only costs time, because the claim checks the conditions itself. A gate that is shut by mistake is opened by
`open_forgotten`.
"""

from collections.abc import Iterable
from typing import Any

from django.db import connection, transaction
from django.db.models import Case, Exists, OuterRef, QuerySet, Value, When, Window
from django.db.models.functions import Coalesce, RowNumber

from builds.models import Build
from documents.models import Document
from runs.models import IN_TURN, Run, in_the_way
from work import wakeups
from work.sql import compiled, statements

# Most rows per update, so that an update holds its locks for a moment and not for seconds.
BATCH = 2000
# The gates of runs that wait until their document is processed, by the document's status.
_UNREADY: dict[str, Run.Gate] = {
    Document.Status.PROCESSING: Run.Gate.PROCESSING,
    Document.Status.FAILED: Run.Gate.FAILED,
}


def for_new_runs(document_ids: list[int], *, waiting: bool = True) -> list[str]:
    """Return the gates of new runs for these documents, in the same order. Only the first new run of a free document
    gets an open gate. With `waiting`, the runs wait until their document is processed; if it has failed, the gate says
    so, and no run can be made.
    """
    if len(document_ids) == 1:
        rows = compiled.rows(_state_of_document, document_ids[0])
    else:
        rows = list(_states().filter(pk__in=document_ids).values_list("pk", "status", "is_busy"))
    statuses = {id: status for id, status, _ in rows}
    busy = {id for id, _, is_busy in rows if is_busy}
    gates = []
    for id in document_ids:
        shut = _UNREADY.get(statuses.get(id, "")) if waiting else None
        gates.append((shut or (Run.Gate.DOCUMENT if id in busy else Run.Gate.OPEN)).value)
        if not shut:
            busy.add(id)
    return gates


def await_build(build_id: int) -> None:
    """Mark the build as awaited. Call this in the transaction that submits runs for it, so that a claim that sees the
    runs also sees the mark.
    """
    # The same lock as in `retention.lock_against_purge`. It only affects `stop_awaiting`, which skips the build
    # meanwhile.
    lock = {"postgresql": " FOR KEY SHARE", "sqlite": ""}.get(connection.vendor)
    if lock is None:
        ((awaited,),) = Build.objects.select_for_update().filter(pk=build_id).values_list("awaited")
    else:
        sql, params = compiled.sql_and_params(_awaited, build_id)
        ((awaited,),) = statements.rows(f"{sql}{lock}", params)
    if not awaited:
        Build.objects.filter(pk=build_id).update(awaited=True)


@transaction.atomic
def stop_awaiting() -> int:
    """Clear the mark `awaited` of ended builds that no queued run waits for, so that claims need not look at them."""
    ended = Build.objects.unheeded().order_by("pk").values_list("pk", flat=True)
    skip_locked = connection.features.has_select_for_update_skip_locked
    # Lock before looking: a submission in progress is then either visible here, or waits for this transaction.
    locked = set(ended.select_for_update(skip_locked=skip_locked)[:BATCH])
    waiting = Run.objects.filter(build__in=locked, status=Run.Status.QUEUED, gate=Run.Gate.BUILD)
    idle = locked.difference(waiting.values_list("build_id", flat=True).distinct()) if locked else set()
    return Build.objects.filter(pk__in=idle).update(awaited=False) if idle else 0


def open_document(document_id: int) -> bool:
    """Open the gate of the document's next run. Call this when a run of the document has ended."""
    oldest = compiled.rows(_oldest_queued, document_id)
    if not oldest or oldest[0][1] != Run.Gate.DOCUMENT or not _open([oldest[0][0]]):
        return False
    wakeups.ring("run")
    return True


def ended_builds() -> list[tuple[int, str, str]]:
    """Return the ended builds that queued runs still wait for, as (id, status, error message)."""
    waited_for = Run.objects.filter(status=Run.Status.QUEUED, gate=Run.Gate.BUILD).values("build_id").distinct()
    return list(Build.objects.ended().filter(pk__in=waited_for).values_list("pk", "status", "error_message"))


def runs_waiting_for(build_id: int) -> list[int]:
    """Return the oldest queued runs that wait for this build."""
    waiting = Run.objects.filter(build_id=build_id, status=Run.Status.QUEUED, gate=Run.Gate.BUILD).order_by(
        "created_at", "id"
    )
    return list(waiting.values_list("pk", flat=True)[:BATCH])


@transaction.atomic
def leave_build(run_ids: list[int]) -> int:
    """Let these runs, whose build is ready, take turns by age with the other queued runs of their documents, or wait
    until their document is processed.
    """
    waiting = _queued(run_ids, Run.Gate.BUILD)
    unready = waiting.filter(waits_for_processing=True, input_document__status__in=list(_UNREADY))
    # If the document has failed, `processing_gates.mend` finds it.
    held = _queued(list(unready.values_list("pk", flat=True)), Run.Gate.BUILD)
    number = held.update(gate=Run.Gate.PROCESSING)
    return number + take_turns(run_ids, Run.Gate.BUILD)


@transaction.atomic
def take_turns(run_ids: list[int], gate: Run.Gate) -> int:
    """Let these queued runs leave this gate and take turns by age with the other queued runs of their documents."""
    waiting = _queued(run_ids, gate)
    documents = set(waiting.values_list("input_document_id", flat=True))
    if not documents:
        return 0
    number = waiting.update(gate=Run.Gate.DOCUMENT)
    in_turn = Run.objects.filter(input_document_id__in=documents, status=Run.Status.QUEUED, gate__in=IN_TURN)
    in_turn.filter(gate=Run.Gate.OPEN).update(gate=Run.Gate.DOCUMENT)
    _open(_heads(documents))
    return number


def open_forgotten(_owner: str = "") -> int:
    """Open gates whose reason is gone, for example because a submission raced with the end of a run."""
    documents = Run.objects.order_by().values_list("input_document_id", flat=True)
    queued = Run.objects.filter(status=Run.Status.QUEUED)
    # Use set operations instead of joins: with outdated statistics, the planner would choose nested loops over a
    # hundred thousand rows.
    forgotten = documents.filter(status=Run.Status.QUEUED, gate=Run.Gate.DOCUMENT).difference(
        documents.filter(status=Run.Status.RUNNING), documents.filter(status=Run.Status.QUEUED, gate=Run.Gate.OPEN)
    )
    # Find documents whose open run is blocked by an older run with a shut gate. Check only the runs that claims meet
    # first; the other runs follow once these are gone.
    first = queued.filter(gate=Run.Gate.OPEN).order_by("created_at", "id").values_list("pk", flat=True)
    older = (in_the_way()[name].filter(gate=Run.Gate.DOCUMENT) for name in ("older", "older_of_same_moment"))
    earlier, same_moment = map(Exists, older)
    blocked = Run.objects.filter(earlier | same_moment, pk__in=list(first[:BATCH]))
    return _open(_heads({*forgotten[:BATCH], *blocked.values_list("input_document_id", flat=True)}))


def _awaited(build_id: int) -> "QuerySet[Build, tuple[bool]]":
    return Build.objects.filter(pk=build_id).values_list("awaited")


def _state_of_document(document_id: int) -> Any:
    return _states().filter(pk=document_id).values_list("pk", "status", "is_busy")


def _states() -> Any:
    """Annotate whether a document has a running run, or a queued run that precedes any new one, even if its gate is
    shut.
    """
    same = Run.objects.filter(input_document_id=OuterRef("pk"))
    running, in_turn = same.filter(status=Run.Status.RUNNING), same.filter(status=Run.Status.QUEUED, gate__in=IN_TURN)
    return Document.objects.annotate(is_busy=Case(When(Exists(running) | Exists(in_turn), then=1), default=0))


def _oldest_queued(document_id: int) -> "QuerySet[Run, tuple[int, str]]":
    """Select the id and gate of the document's next run, or nothing while a run of the document is running."""
    of_document = Run.objects.filter(input_document_id=document_id)
    queued = of_document.filter(
        ~Exists(of_document.filter(status=Run.Status.RUNNING)), status=Run.Status.QUEUED, gate__in=IN_TURN
    )
    return queued.order_by("created_at", "id").values_list("pk", "gate")[:1]


def _heads(document_ids: Iterable[int]) -> list[int]:
    """Return, for each of these documents that has no running run, its oldest run with a shut gate."""
    running = Run.objects.filter(status=Run.Status.RUNNING, input_document_id__in=document_ids)
    free = set(document_ids).difference(running.values_list("input_document_id", flat=True))
    age = Window(RowNumber(), partition_by="input_document_id", order_by=["created_at", "id"])
    queued = Run.objects.filter(input_document_id__in=free, status=Run.Status.QUEUED, gate__in=IN_TURN)
    return list(queued.filter(gate=Run.Gate.DOCUMENT).annotate(age=age).filter(age=1).values_list("pk", flat=True))


def _open(ids: list[int]) -> int:
    return _queued(ids, Run.Gate.DOCUMENT).update(gate=Run.Gate.OPEN) if ids else 0


def _queued(ids: list[int], gate: Run.Gate) -> "QuerySet[Run]":
    # Because of the Coalesce, PostgreSQL looks up the ids instead of walking an index of queued runs.
    queued = Run.objects.annotate(status_now=Coalesce("status", Value(""))).filter(status_now=Run.Status.QUEUED)
    return queued.filter(pk__in=ids, gate=gate)
