"""Explains why a run is waiting: see `work/why.py`.

It evaluates the conditions of the claim one by one for this run, so the explanation always matches the claim.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Case, Q, QuerySet, When

from builds import why as builds
from builds.models import Build
from runs.lifecycle import RUN_STATES
from runs.models import IN_TURN, MUST_HOLD, Queue, Run, first_of, in_the_way
from work import why
from work.sql import compiled
from work.why import Crew, Explanation, Gate, Names
from workspaces.models import User

# A queued run as a claim sees it: its `gate`, each of MUST_HOLD, and the runs or builds in its way.
Found = Mapping[str, Any]
# What happens to waiting runs once their build has ended.
_THEN = {
    "ready": "; a worker will let this run continue shortly",
    "failed": "; a worker will end this run as failed shortly",
    "cancelled": "; a worker will end this run as failed shortly",
}


def explain(run: Run, *, user: User | None = None) -> Explanation:
    """Explain the run as it is in the database now. Without a user, the answer may name all other runs.

    Raises Run.DoesNotExist if there is none.
    """
    return _explain(run.pk, Crew.now(), user, is_followed=True)


def _explain(id: int, crew: Crew, user: User | None, *, is_followed: bool) -> Explanation:
    rows = compiled.rows(_asked, id)
    run = Run.objects.select_related("build").defer("build__snapshot", "build__lock").get(pk=id)
    if not rows:
        return why.of_others(RUN_STATES, run, run.status, run.outcome)
    found = dict(zip(("gate", *MUST_HOLD, *in_the_way()), rows[0], strict=True))
    ahead = why.count(_ahead, run.created_at, id)
    gates = [
        _of_queue(found),
        why.of_worker(crew, RUN_STATES),
        why.of_capacity(crew, RUN_STATES, ahead, _names(user)),
        _of_build(run, found, crew, user),
        _of_document(run, found, crew, user, is_followed=is_followed),
    ]
    return why.of_queued(RUN_STATES, id, gates)


def _names(user: User | None) -> Names | None:
    if user is None:
        return None
    seen = Run.objects.for_user(user)
    return lambda ids: set(seen.filter(pk__in=ids).values_list("pk", flat=True))


def _asked(id: int) -> "QuerySet[Run, Any]":
    """Evaluate the parts of `claimable` for one run in one statement, and so in one snapshot."""
    parts: dict[str, Any] = {name: Case(When(condition, then=1), default=0) for name, condition in MUST_HOLD.items()}
    parts |= {name: first_of(rows) for name, rows in in_the_way().items()}
    return Run.objects.queued().filter(pk=id).annotate(**parts).values_list("gate", *parts)


def _ahead(created_at: datetime, id: int) -> "QuerySet[Any, Any]":
    return why.counted(_before(Run.objects.in_line(), created_at, id))


def _older(document_id: int, created_at: datetime, id: int) -> "QuerySet[Any, Any]":
    return why.counted(_before(_waiting(document_id), created_at, id))


def _waiting(document_id: int) -> "QuerySet[Run]":
    """Return the document's runs that take turns. A run that waits for its build delays no other."""
    return _in_order(Run.objects.queued().filter(input_document_id=document_id, gate__in=IN_TURN))


def _before(runs: "QuerySet[Run]", created_at: datetime, id: int) -> "QuerySet[Run]":
    # With the first condition the index excludes all later runs.
    return runs.filter(created_at__lte=created_at).filter(Q(created_at__lt=created_at) | Q(pk__lt=id))


def _in_order(runs: "QuerySet[Run]") -> "QuerySet[Run]":
    return runs.order_by("created_at", "id")


def _is_shut(found: Found, gate: str) -> bool:
    return not found["is_open"] and found["gate"] == gate


def _of_queue(found: Found) -> Gate:
    """Return the gate for a pause of the queue."""
    row = None if found["queue_goes_on"] else Queue.objects.filter(paused_at__isnull=False).first()
    if row is None:
        return Gate("paused", False, "The run queue is not paused.")
    data = {"by": row.paused_by, "reason": row.pause_reason or None}
    said = f"The run queue was paused {why.by(row.paused_by, row.paused_at)}"
    said += f": {row.pause_reason}" if row.pause_reason else "."
    return Gate("paused", True, said, row.paused_by, row.paused_at, data)


def _of_build(run: Run, found: Found, crew: Crew, user: User | None) -> Gate:
    """Return the gate for the run's build."""
    build, is_shut = run.build, _is_shut(found, "build")
    data = {"id": build.pk, "status": build.status, "by": build.lease_owner}
    if found["build_is_ready"] and not is_shut:
        return Gate("build", False, f"Its build {build.pk} is ready.", data=data)
    since, said = _state_of(build, crew, user)
    then = _THEN.get(build.status, "") if is_shut else ""
    return Gate("build", True, f"Its build {build.pk} {said}{then}.", f"build {build.pk}", since, data)


def _state_of(build: Build, crew: Crew, user: User | None) -> tuple[datetime | None, str]:
    """Return since when the build has its status, and a description."""
    if build.status == "queued":
        reason = builds.explain(build, crew, user=user).reason().rstrip(".")
        return build.queued_at, f"has been queued since {build.queued_at:%Y-%m-%d %H:%M:%S}. {reason}"
    if build.status == "building":
        return build.started_at, f"is in progress, claimed {why.by(build.lease_owner, build.started_at)}"
    said = {"ready": "is ready", "failed": "failed", "cancelled": "was cancelled"}
    return build.finished_at, said[build.status]


def _of_document(run: Run, found: Found, crew: Crew, user: User | None, *, is_followed: bool) -> Gate:
    """Return the gate for other runs of the document."""
    if found["running"]:
        return _behind_running(run, found["running"])
    if older := found["older_of_ended_build"] or found["older"] or found["older_of_same_moment"]:
        # The other run is first in line for its document, so following one step is enough.
        reason = _explain(older, crew, user, is_followed=False).reason() if is_followed else ""
        return _behind_queued(run, older, f"It is waiting too: {reason}" if reason else "")
    if _is_shut(found, "document"):
        # Only its own gate blocks it: it was not opened in time, and `open_forgotten` will open it.
        said = "It is the next run of its document; a worker will let it start shortly."
        return Gate("document", True, said, data={"id": None, "status": None, "by": None, "ahead": 0})
    return Gate("document", False, "No other run of its document is ahead of it.")


def _behind_running(run: Run, id: int) -> Gate:
    other = Run.objects.only("lease_owner", "started_at").get(pk=id)
    older = _count_older(run)
    said = f"Run {id} of the same document is running, claimed {why.by(other.lease_owner, other.started_at)}"
    said += f"; {why.are_ahead(RUN_STATES, older)} for this document" if older else ""
    data = {"id": id, "status": "running", "by": other.lease_owner, "ahead": older}
    return Gate("document", True, f"{said}.", f"run {id}", other.started_at, data)


def _behind_queued(run: Run, id: int, reason: str) -> Gate:
    since = Run.objects.only("created_at").get(pk=id).created_at
    data = {"id": id, "status": "queued", "by": None, "ahead": _count_older(run)}
    said = f"Run {id} of the same document goes first. It has been queued since {since:%Y-%m-%d %H:%M:%S}. {reason}"
    return Gate("document", True, said.rstrip(), f"run {id}", since, data)


def _count_older(run: Run) -> int:
    return why.count(_older, run.input_document_id, run.created_at, run.pk)
