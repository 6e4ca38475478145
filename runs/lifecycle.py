from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.models import Count, Exists, Q, QuerySet, Sum

from builds.lifecycle import get_or_create_build
from builds.models import Build, Configuration
from documents import retention
from documents.models import Document
from documents.retention import Purged as Purged
from runs import gates
from runs.models import Admission, Artifact, Run, RunField
from work import failpoints, lifecycle, wakeups
from work.claims import Claim
from work.lifecycle import Data
from work.recovery import LostClaim
from work.sql import compiled
from work.sql.contention import is_contention, patiently
from work.state_machine import LOG_LINE, By, StateMachine, Transition

T = TypeVar("T")

RUN_STATES = StateMachine(
    kind="run",
    model=Run,
    initial="queued",
    created="RUN_QUEUED",
    pruned="RUN_PRUNED",
    table={
        "start": Transition(("queued",), "running", By.WORKER, "RUN_STARTED"),
        "succeed": Transition(("running",), "succeeded", By.HOLDER, "RUN_SUCCEEDED"),
        "fail": Transition(("running",), "failed", By.HOLDER, "RUN_FAILED"),
        "cancel": Transition(("queued",), "cancelled", By.PERSON, "RUN_CANCELLED"),
        "request_cancel": Transition(("running",), "running", By.PERSON, "RUN_CANCEL_REQUESTED"),
        "stop": Transition(("running",), "cancelled", By.HOLDER, "RUN_CANCELLED"),
        "refuse": Transition(("queued",), "failed", By.POLICY, "RUN_FAILED"),
        "orphan": Transition(("running",), "failed", By.RECOVERY, "RUN_FAILED"),
        "drop": Transition(("running",), "cancelled", By.RECOVERY, "RUN_CANCELLED"),
    },
    events={
        "RUN_QUEUED": "It was submitted.",
        "RUN_STARTED": "A worker claimed it; the timeout counts from here.",
        "RUN_SUCCEEDED": "The engine succeeded.",
        "RUN_FAILED": (
            "The engine failed, the build failed or was cancelled, or the worker was lost; the message says which."
        ),
        "RUN_CANCEL_REQUESTED": "A person cancelled it while a worker held it; it can now only end cancelled.",
        "RUN_CANCELLED": "It was cancelled.",
        "ARTIFACT_PUBLISHED": "An artifact can be downloaded; the message is its name.",
        "STEP_STARTED": "A step of the configuration started.",
        "STEP_SUCCEEDED": "The step returned; the data have its seconds.",
        "STEP_RETRIED": "The step raised an exception and is tried again.",
        "STEP_FAILED": "The step raised an exception in its last attempt, or rejected the document.",
        "PROGRESS": "Progress of a step; at most once a second, and at its end.",
        "ENVIRONMENT_MATERIALIZED": (
            "The environment was missing on this host, or changed, and is made again from the lock; the message has"
            " the reason."
        ),
        "PROCESSES_LEFT_BEHIND": "Processes of its engine could not be killed; the data have their `pids`.",
        "RUN_PRUNED": (
            "It is older than `ADE_KEEP_RUNS`: earlier events and its artifacts were deleted; the data count"
            " `events`, `artifacts` and bytes."
        ),
        **LOG_LINE,
    },
)


# The limit per call, because each refusal is its own transaction. The task runs again at once while there are more.
REFUSALS = 200


class QueueFull(Exception):
    """The queue has no place for the submission. Nothing of it was accepted."""

    code = "run_queue_full"

    def __init__(self, limit: int, live: int, asked: int) -> None:
        super().__init__(
            f"The queue is full: it has {live} of {limit} runs and no room for {asked} more. Submit again later."
        )
        self.limit, self.live, self.asked = limit, live, asked


class OtherWorkspace(Exception):
    """The document and the configuration belong to different workspaces."""


def submit(configuration: Configuration, document: Document, *, actor: str) -> Run:
    def create() -> Run:
        constant, gates_of = _prepare(configuration, [document.pk], actor)
        values = {**constant, "input_document_id": document.pk, "gate": gates_of[0]}
        with _held([document.pk], constant, gates_of):
            run: Run = lifecycle.create_one(RUN_STATES, values, actor=actor)
        return run

    return _admitted(configuration, [document], create)


def submit_many(configuration: Configuration, documents: Sequence[Document], *, actor: str) -> list[int]:
    """Create one run per document, all or none. Return their ids in that order."""

    def create() -> list[int]:
        ids = [document.pk for document in documents]
        constant, gates_of = _prepare(configuration, ids, actor)
        varying: dict[str, Any] = {"input_document_id": ids, "gate": gates_of}
        with _held(ids, constant, gates_of):
            return lifecycle.create(RUN_STATES, constant, varying=varying, actor=actor)

    return _admitted(configuration, documents, create) if documents else []


def run_again(run: Run, *, actor: str) -> Run:
    """Create a new run with the current configuration. The old run does not change."""
    return submit(run.configuration, run.input_document, actor=actor)


def claim_next_run(owner: str) -> Claim | None:
    return lifecycle.claim_next(
        RUN_STATES, "start", owner, Run.objects.claimable, "input_document_id", "configuration_id", "build_id"
    )


def succeed(
    claim: Claim, *, data: Data | None = None, fields: Sequence[Data] = (), artifacts: Sequence[Data] = ()
) -> bool:
    """End the run as succeeded, with its fields and artifacts.

    Return False and keep nothing if the claim is gone, or if a cancel was accepted meanwhile. The run is then
    cancelled.
    """

    def keep() -> None:
        RunField.objects.bulk_create(RunField(run_id=claim.id, **values) for values in fields)
        for values in artifacts:
            publish_artifact(claim, values)

    return _finish(claim, "succeed", also=keep if fields or artifacts else None, data=data)


def fail(claim: Claim, failure_type: str, message: str) -> bool:
    return _finish(claim, "fail", message=message, failure_type=failure_type, error_message=message)


def stop(claim: Claim) -> bool:
    """Obey an accepted cancel, as the holder."""
    stopped = lifecycle.finish(claim, "stop", guards={"cancel_requested_at__isnull": False})
    gates.open_document(claim.values["input_document_id"])
    return stopped


def cancel(run: Run, *, actor: str, reason: str = "") -> str:
    """Cancel a run. Return its status, see work.lifecycle.cancel."""
    status = lifecycle.cancel(RUN_STATES, run.pk, actor=actor, reason=reason)
    gates.open_document(run.input_document_id)
    return status


def publish_artifact(claim: Claim, values: Data) -> bool:
    """Record an artifact whose file is already stored. Return False if the claim is gone; nothing refers to the file
    then.
    """
    failpoints.hit("artifact.written")
    with transaction.atomic():
        if lifecycle.record(RUN_STATES, claim.id, "ARTIFACT_PUBLISHED", claim=claim, message=str(values["name"])):
            Artifact.objects.create(run_id=claim.id, **values)
            return True
    return False


class Pruned(NamedTuple):
    events: int
    # Files that no row refers to any more.
    files: list[str]


def prune(ids: Sequence[int], where: Q, *, actor: str) -> Pruned:
    """Delete events, log and artifacts of the given runs that match `where`. Their fields stay."""
    files: list[str] = []

    def delete_artifacts(ids: Sequence[int]) -> Mapping[int, Data]:
        artifacts = Artifact.objects.filter(run__in=ids)
        files.extend(artifacts.values_list("file", flat=True))
        sums = artifacts.order_by().values("run").annotate(number=Count("pk"), size=Sum("size_bytes"))
        gone = {each["run"]: {"artifacts": each["number"], "size_bytes": each["size"]} for each in sums}
        artifacts.delete()
        return gone

    with failpoints.inside("retention.runs.before_commit"):
        gone = lifecycle.prune(RUN_STATES, ids, where=where, actor=actor, also=delete_artifacts)
    return Pruned(sum(each["events"] for each in gone.values()), files)


def apply_build_results(owner: str) -> int:
    """Advance queued runs whose build has ended: into their turn, or to their end."""
    heeded = refused = 0
    for build_id, status, error in gates.ended_builds():
        waiting = gates.behind_build(build_id)
        if status == "ready":
            heeded += patiently(lambda runs=waiting: gates.leave_build(runs))  # type: ignore[misc]  # bound at once
        else:
            ended = "failed" if status == "failed" else f"was {status}"
            why = f"Build {build_id} {ended}{f': {error}' if error else '.'}"
            refused += sum(_refuse(run_id, build_id, status, why, owner) for run_id in waiting[: REFUSALS - refused])
    heeded += refused
    gates.stop_awaiting()
    if heeded:
        wakeups.ring(RUN_STATES.kind)
    return heeded


def rescue(found: LostClaim) -> str | None:
    """Recover a run: cancelled if a cancel was accepted, otherwise failed, because a run is claimed only once."""
    asked = {"cancel_requested_at__isnull": False}
    failure = {"failure_type": found.failure_type, "error_message": found.rule}
    verb = found.move("drop", guards=asked) or found.move(
        "orphan", message=found.rule, guards={"cancel_requested_at__isnull": True}, **failure
    )
    if verb:
        # Open the next run's gate now instead of waiting for `open_forgotten`. If its row is locked, do not wait for
        # it.
        with suppress(OperationalError), transaction.atomic():
            gates.open_document(Run.objects.values_list("input_document_id", flat=True).get(pk=found.id))
    return verb


def _admitted(configuration: Configuration, documents: Sequence[Document], create: Callable[[], T]) -> T:
    if any(document.workspace_id != configuration.workspace_id for document in documents):
        raise OtherWorkspace(
            f"Configuration {configuration.pk} can only process documents of workspace {configuration.workspace_id}."
        )
    if purged := next((document for document in documents if document.purged_at), None):
        raise Purged(purged)
    limit = settings.ADE_QUEUE_SIZE
    made = patiently(lambda: _alone(create) if limit is None else _within(limit, len(documents), create))
    failpoints.hit("run.created")
    return made


def _alone(create: Callable[[], T]) -> T:
    # On SQLite a transaction holds the write lock, so what was checked stays true, and runs are created in order.
    with transaction.atomic() if connection.vendor == "sqlite" else nullcontext():
        return create()


@transaction.atomic
def _within(limit: int, asked: int, create: Callable[[], T]) -> T:
    # All submissions lock this row, so that the check and the insert are atomic.
    Admission.objects.select_for_update().get_or_create(pk=1)
    live = sum(count for (count,) in compiled.rows(_live))
    failpoints.hit("run.create.counted")
    if live + asked > limit:
        raise QueueFull(limit, live, asked)
    return create()


@contextmanager
def _held(document_ids: list[int], constant: Data, gates_of: list[str]) -> Iterator[None]:
    """Protect the insert of the runs.

    A purge skips these documents until the runs are visible, and a claim that sees the runs sees the mark on their
    build.
    """
    # An outer transaction suffices: a refused submission has written nothing that a savepoint would have to undo.
    with nullcontext() if connection.in_atomic_block else transaction.atomic():
        retention.hold(document_ids)
        if Run.Gate.BUILD in gates_of:
            gates.await_build(constant["build_id"])
        yield


def _prepare(configuration: Configuration, document_ids: list[int], actor: str) -> tuple[dict[str, Any], list[str]]:
    """Return the values that all new runs share, and the gate of each."""
    build = get_or_create_build(configuration, actor=actor)
    constant = {
        "workspace_id": configuration.workspace_id,
        "configuration_id": configuration.pk,
        "build_id": build.id,
    }
    if build.status != "ready":
        return constant, [Run.Gate.BUILD.value] * len(document_ids)
    return constant, gates.behind_document(document_ids)


def _finish(claim: Claim, verb: str, **options: Any) -> bool:
    moved = lifecycle.finish(claim, verb, guards={"cancel_requested_at__isnull": True}, **options)
    if not moved and not claim.lost.is_set():
        return stop(claim) and False
    gates.open_document(claim.values["input_document_id"])
    return moved


def _live() -> "QuerySet[Any, Any]":
    # One statement sees one snapshot. With two, a run that is claimed in between would be counted twice.
    return _count_of("queued").union(_count_of("running"), all=True)


def _count_of(status: str) -> "QuerySet[Any, Any]":
    # Use one status per query, as a literal, so that a partial index applies.
    return Run.objects.filter(status=status).order_by().values("status").annotate(n=Count("pk")).values_list("n")


def _refuse(run_id: int, build_id: int, status: str, message: str, owner: str) -> bool:
    failure: dict[str, Any] = {"failure_type": Run.Failure.BUILD_FAILED, "error_message": message}
    # Repeat the condition: the build may have been queued again since it was read.
    still = Q(Exists(Build.objects.filter(pk=build_id, status=status)))
    told: dict[str, Any] = {"actor": owner, "message": message, "data": {"build": build_id}}
    try:
        return lifecycle.move(RUN_STATES, run_id, "refuse", where=still, **told, **failure)
    except OperationalError as error:
        # Another transaction has locked this run. The others must not wait for it.
        if not is_contention(error):
            raise
        return False
