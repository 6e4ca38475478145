"""Explains why a run is waiting: see `work/why.py`.

The conditions of the claim are evaluated one by one for this run, so the explanation always matches the claim.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Case, Q, QuerySet, When

from builds import why as builds
from builds.models import Build
from documents import why as documents
from documents.models import Document, DocumentProcessingJob
from runs import processing_gates
from runs.lifecycle import RUN_STATES
from runs.models import IN_TURN, MUST_HOLD, Queue, Run, first_of, in_the_way
from work import why
from work.sql import compiled
from work.why import Explanation, Gate, LiveWorkers, Names
from workspaces.models import User

# A queued run as a claim sees it: its `gate`, whether each condition in MUST_HOLD holds, and the run that blocks it, if
# any, for each name of `in_the_way`.
Conditions = Mapping[str, Any]
# What happens to waiting runs once their build has ended.
_THEN: dict[str, str] = {
    Build.Status.READY: "; a worker will let this run continue shortly",
    Build.Status.FAILED: "; a worker will end this run as failed shortly",
    Build.Status.CANCELLED: "; a worker will end this run as failed shortly",
}

# The older runs of a document that go first, by the name of the condition.
_OLDER = ("older_of_ended_build", "older_of_processed_document", "older", "older_of_same_moment")


def explain(run: Run, *, user: User | None = None) -> Explanation:
    """Explain why the run waits, from what is in the database now. The answer names only runs that the user may see, or
    any run if there is no user.

    Raises Run.DoesNotExist if the run does not exist.
    """
    return _explain(run.pk, LiveWorkers.now(), user, is_followed=True)


def _explain(id: int, crew: LiveWorkers, user: User | None, *, is_followed: bool) -> Explanation:
    rows = compiled.rows(_conditions, id)
    large = ("build__snapshot", "build__lock", "input_document__text", "input_document__embedding")
    run = Run.objects.select_related("build", "input_document").defer(*large).get(pk=id)
    if not rows:
        return why.of_others(RUN_STATES, run, run.status, run.outcome)
    conditions = dict(zip(("gate", *MUST_HOLD, *in_the_way()), rows[0], strict=True))
    ahead = why.count(_ahead, run.created_at, id)
    gates = [
        _of_queue(conditions),
        why.of_worker(crew, RUN_STATES),
        why.of_capacity(crew, RUN_STATES, ahead, _names(user)),
        _of_build(run, conditions, crew, user),
        _of_processing(run, conditions),
        _of_document(run, conditions, crew, user, is_followed=is_followed),
    ]
    return why.of_queued(RUN_STATES, id, gates)


def _names(user: User | None) -> Names | None:
    if user is None:
        return None
    seen = Run.objects.for_user(user)
    return lambda ids: set(seen.filter(pk__in=ids).values_list("pk", flat=True))


def _conditions(id: int) -> "QuerySet[Run, Any]":
    """Evaluate the conditions of `claimable` for one run. A single statement sees a single snapshot."""
    parts: dict[str, Any] = {name: Case(When(condition, then=1), default=0) for name, condition in MUST_HOLD.items()}
    parts |= {name: first_of(rows) for name, rows in in_the_way().items()}
    return Run.objects.queued().filter(pk=id).annotate(**parts).values_list("gate", *parts)


def _ahead(created_at: datetime, id: int) -> "QuerySet[Any, Any]":
    return why.counted(_before(Run.objects.in_line(), created_at, id))


def _older(document_id: int, created_at: datetime, id: int) -> "QuerySet[Any, Any]":
    """Return the document's older runs that delay this one. Runs that wait for build or document do not."""
    in_turn = Run.objects.queued().filter(input_document_id=document_id, gate__in=IN_TURN)
    return why.counted(_before(in_turn.order_by("created_at", "id"), created_at, id))


def _before(runs: "QuerySet[Run]", created_at: datetime, id: int) -> "QuerySet[Run]":
    # The first condition is redundant, but lets the index exclude all later runs.
    return runs.filter(created_at__lte=created_at).filter(Q(created_at__lt=created_at) | Q(pk__lt=id))


def _is_shut(conditions: Conditions, gate: Run.Gate) -> bool:
    return not conditions["is_open"] and conditions["gate"] == gate


def _of_queue(conditions: Conditions) -> Gate:
    """Return the gate for a pause of the queue."""
    row = None if conditions["queue_goes_on"] else Queue.objects.filter(paused_at__isnull=False).first()
    if row is None:
        return Gate("paused", False, "The run queue is not paused.")
    data = {"by": row.paused_by, "reason": row.pause_reason or None}
    message = f"The run queue was paused {why.by(row.paused_by, row.paused_at)}"
    message += f": {row.pause_reason}" if row.pause_reason else "."
    return Gate("paused", True, message, row.paused_by, row.paused_at, data)


def _of_build(run: Run, conditions: Conditions, crew: LiveWorkers, user: User | None) -> Gate:
    """Return the gate for the run's build."""
    build, is_shut = run.build, _is_shut(conditions, Run.Gate.BUILD)
    data = {"id": build.pk, "status": build.status, "by": build.lease_owner}
    if conditions["build_is_ready"] and not is_shut:
        return Gate("build", False, f"Its build {build.pk} is ready.", data=data)
    since: datetime | None
    if build.status == Build.Status.QUEUED:
        since, reason = build.queued_at, builds.explain(build, crew, user=user).reason().rstrip(".")
        state = f"has been queued since {build.queued_at:%Y-%m-%d %H:%M:%S}. {reason}"
    elif build.status == Build.Status.BUILDING:
        since, state = build.started_at, f"is in progress, claimed {why.by(build.lease_owner, build.started_at)}"
    else:
        words = {"ready": "is ready", "failed": "failed", "cancelled": "was cancelled"}
        since, state = build.finished_at, words[build.status]
    then = _THEN.get(build.status, "") if is_shut else ""
    return Gate("build", True, f"Its build {build.pk} {state}{then}.", f"build {build.pk}", since, data)


def _of_processing(run: Run, conditions: Conditions) -> Gate:
    """Return the gate for the processing of the document."""
    id, is_failed = run.input_document_id, _is_shut(conditions, Run.Gate.FAILED)
    # The conditions and the status are read one after the other, so that they may differ for a moment.
    status = run.input_document.status
    data: dict[str, Any] = {"id": id, "status": status}
    if conditions["document_is_processed"] and not is_failed and not _is_shut(conditions, Run.Gate.PROCESSING):
        does = f"Its document {id} is" if run.waits_for_processing else f"It does not wait until document {id} is"
        return Gate("processing", False, f"{does} processed.", data=data)
    since: datetime | None = None
    if is_failed or status == Document.Status.FAILED:
        message = f"{processing_gates.problem_of(id).rstrip('.')}; a worker will end this run as failed shortly."
    elif status == Document.Status.PROCESSED:
        message = f"Its document {id} is processed; a worker will let this run continue shortly."
    else:
        jobs = DocumentProcessingJob.objects.live().filter(document=id)
        since = jobs.values_list("created_at", flat=True).first()
        explanation = documents.explain(run.input_document)
        data["held_by"] = [gate.name for gate in explanation.holding]
        message = f"Its document {id} is being processed: {explanation.reason()} To run it at once, cancel it and"
        message += " submit it again so that it does not wait for that."
    return Gate("processing", True, message, f"document {id}", since, data)


def _of_document(run: Run, conditions: Conditions, crew: LiveWorkers, user: User | None, *, is_followed: bool) -> Gate:
    """Return the gate for other runs of the document."""
    if running := conditions["running"]:
        other = Run.objects.only("lease_owner", "started_at").get(pk=running)
        ahead = _count_older(run)
        data = {"id": running, "status": Run.Status.RUNNING.value, "by": other.lease_owner, "ahead": ahead}
        message = (
            f"Run {running} of the same document is running, claimed {why.by(other.lease_owner, other.started_at)}"
        )
        message += f"; {why.are_ahead(RUN_STATES, ahead)} for this document." if ahead else "."
        return Gate("document", True, message, f"run {running}", other.started_at, data)
    if older := next((id for name in _OLDER if (id := conditions[name])), None):
        # The other run is first in line for its document, so following one step is enough.
        reason = _explain(older, crew, user, is_followed=False).reason() if is_followed else ""
        since = Run.objects.only("created_at").get(pk=older).created_at
        data = {"id": older, "status": Run.Status.QUEUED.value, "by": None, "ahead": _count_older(run)}
        message = f"Run {older} of the same document goes first. It has been queued since {since:%Y-%m-%d %H:%M:%S}."
        message += f" It is waiting too: {reason}" if reason else ""
        return Gate("document", True, message.rstrip(), f"run {older}", since, data)
    if _is_shut(conditions, Run.Gate.DOCUMENT):
        # Only its own gate blocks the run: the gate was not opened in time, and `open_forgotten` will open it.
        message = "It is the next run of its document; a worker will let it start shortly."
        return Gate("document", True, message, data={"id": None, "status": None, "by": None, "ahead": 0})
    return Gate("document", False, "No other run of its document is ahead of it.")


def _count_older(run: Run) -> int:
    return why.count(_older, run.input_document_id, run.created_at, run.pk)
