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
from runs import gates, processing_gates, publishing
from runs.models import Admission, Artifact, Run, RunField
from work import failpoints, lifecycle, wakeups
from work.claims import Claim
from work.lifecycle import Data
from work.recovery import LostClaim
from work.sql import compiled
from work.sql.contention import is_contention, patiently
from work.state_machine import LOG_EVENT, By, StateMachine, Transition

T = TypeVar("T")

RUN_STATES = StateMachine(
    kind="run",
    model=Run,
    initial=Run.Status.QUEUED,
    created="RUN_QUEUED",
    pruned="RUN_PRUNED",
    table={
        "start": Transition((Run.Status.QUEUED,), Run.Status.RUNNING, By.WORKER, "RUN_STARTED"),
        "succeed": Transition((Run.Status.RUNNING,), Run.Status.SUCCEEDED, By.HOLDER, "RUN_SUCCEEDED"),
        "fail": Transition((Run.Status.RUNNING,), Run.Status.FAILED, By.HOLDER, "RUN_FAILED"),
        "cancel": Transition((Run.Status.QUEUED,), Run.Status.CANCELLED, By.PERSON, "RUN_CANCELLED"),
        "request_cancel": Transition((Run.Status.RUNNING,), Run.Status.RUNNING, By.PERSON, "RUN_CANCEL_REQUESTED"),
        "stop": Transition((Run.Status.RUNNING,), Run.Status.CANCELLED, By.HOLDER, "RUN_CANCELLED"),
        "refuse": Transition((Run.Status.QUEUED,), Run.Status.FAILED, By.POLICY, "RUN_FAILED"),
        "orphan": Transition((Run.Status.RUNNING,), Run.Status.FAILED, By.RECOVERY, "RUN_FAILED"),
        "drop": Transition((Run.Status.RUNNING,), Run.Status.CANCELLED, By.RECOVERY, "RUN_CANCELLED"),
    },
    events={
        "RUN_QUEUED": "It was submitted.",
        "RUN_STARTED": "A worker claimed it; the timeout counts from here.",
        "RUN_SUCCEEDED": "The engine succeeded.",
        "RUN_FAILED": (
            "The engine failed, the build failed or was cancelled, the document could not be processed, or the worker"
            " was lost; the message says which."
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
        **LOG_EVENT,
    },
)


# Most runs that one call refuses, because each refusal is its own transaction. While there are more, the task runs
# again at once.
REFUSALS = 200


class QueueFull(Exception):
    """The queue has no room for the submission. None of its runs were created."""

    code = "run_queue_full"

    def __init__(self, limit: int, live: int, asked: int) -> None:
        super().__init__(
            f"The queue is full: it has {live} of {limit} runs and no room for {asked} more. Submit again later."
        )
        self.limit, self.live, self.asked = limit, live, asked


class OtherWorkspace(Exception):
    """The document and the configuration belong to different workspaces."""


class DocumentFailed(Exception):
    """The document could not be processed, so no run that waits for that can be created."""

    code = "document_failed"

    def __init__(self, document_id: int) -> None:
        problem = processing_gates.problem_of(document_id).rstrip(".")
        super().__init__(f"{problem}. Process it again, or submit the run so that it does not wait for that.")
        self.document_id = document_id


def submit(configuration: Configuration, document: Document, *, actor: str, wait_for_processing: bool = True) -> Run:
    """Queue a run. It starts when its document is processed, or without waiting for that.

    Raises QueueFull, OtherWorkspace, Purged or DocumentFailed.
    """

    def create() -> Run:
        shared, (gate,) = _prepare(configuration, [document.pk], actor, wait_for_processing)
        values = {**shared, "input_document_id": document.pk, "gate": gate}
        with _guard_insert([document.pk], shared, [gate]):
            run: Run = lifecycle.create_one(RUN_STATES, values, actor=actor)
        return run

    return _admit(configuration, [document], create)


def submit_many(
    configuration: Configuration, documents: Sequence[Document], *, actor: str, wait_for_processing: bool = True
) -> list[int]:
    """Create one run per document, either all or none. Return the ids of the runs in the order of the documents."""

    def create() -> list[int]:
        ids = [document.pk for document in documents]
        shared, run_gates = _prepare(configuration, ids, actor, wait_for_processing)
        varying: dict[str, Any] = {"input_document_id": ids, "gate": run_gates}
        with _guard_insert(ids, shared, run_gates):
            return lifecycle.create(RUN_STATES, shared, varying=varying, actor=actor)

    return _admit(configuration, documents, create) if documents else []


def run_again(run: Run, *, actor: str) -> Run:
    """Create a new run of the same document with the configuration as it is now. The old run does not change."""
    waits = run.waits_for_processing
    return submit(run.configuration, run.input_document, actor=actor, wait_for_processing=waits)


def claim_next_run(owner: str) -> Claim | None:
    return lifecycle.claim_next(
        RUN_STATES,
        "start",
        owner,
        Run.objects.claimable,
        *("input_document_id", "configuration_id", "build_id", "publishes"),
    )


def succeed(
    claim: Claim,
    *,
    data: Data | None = None,
    fields: Sequence[Data] = (),
    artifacts: Sequence[Data] = (),
    findings: Sequence[Data] | None = None,
) -> bool:
    """End the run as succeeded, store its fields and artifacts, and publish its findings unless they are None.

    Return False and store nothing if the claim is gone, or if a cancel was accepted meanwhile, which then ends the run.
    """

    def keep() -> None:
        RunField.objects.bulk_create(RunField(run_id=claim.id, **values) for values in fields)
        for values in artifacts:
            publish_artifact(claim, values)
        if findings is not None:
            publishing.publish(claim, findings)

    has_results = fields or artifacts or findings is not None
    return _finish(claim, "succeed", also=keep if has_results else None, data=data)


def fail(claim: Claim, failure_type: str, message: str) -> bool:
    return _finish(claim, "fail", message=message, failure_type=failure_type, error_message=message)


def stop(claim: Claim) -> bool:
    """End the run as cancelled after an accepted cancel. Only the holder of the claim can do this."""
    stopped = lifecycle.finish(claim, "stop", guards={"cancel_requested_at__isnull": False})
    gates.open_document(claim.values["input_document_id"])
    return stopped


def cancel(run: Run, *, actor: str, reason: str = "") -> str:
    """Cancel a run and return its status: see `work.lifecycle.cancel`."""
    status = lifecycle.cancel(RUN_STATES, run.pk, actor=actor, reason=reason)
    gates.open_document(run.input_document_id)
    return status


def publish_artifact(claim: Claim, values: Data) -> bool:
    """Record an artifact whose file is already stored. Return False if the claim is gone; then no row refers to the
    file.
    """
    failpoints.hit("artifact.written")
    with transaction.atomic():
        if lifecycle.record(RUN_STATES, claim.id, "ARTIFACT_PUBLISHED", claim=claim, message=str(values["name"])):
            Artifact.objects.create(run_id=claim.id, **values)
            return True
    return False


class PruneResult(NamedTuple):
    events: int
    # Stored files that no row refers to any more.
    files: list[str]


def prune(ids: Sequence[int], where: Q, *, actor: str) -> PruneResult:
    """Delete the events, log and artifacts of the runs with these ids, if they match `where`. Their fields stay."""
    files: list[str] = []

    def delete_artifacts(ids: Sequence[int]) -> Mapping[int, Data]:
        artifacts = Artifact.objects.filter(run__in=ids)
        files.extend(artifacts.values_list("file", flat=True))
        sums = artifacts.order_by().values("run").annotate(number=Count("pk"), size=Sum("size_bytes"))
        data = {each["run"]: {"artifacts": each["number"], "size_bytes": each["size"]} for each in sums}
        artifacts.delete()
        return data

    with failpoints.inside("retention.runs.before_commit"):
        data = lifecycle.prune(RUN_STATES, ids, where=where, actor=actor, also=delete_artifacts)
    return PruneResult(sum(each["events"] for each in data.values()), files)


def apply_build_results(owner: str) -> int:
    """Advance queued runs whose build has ended. If the build is ready, they take their turn; otherwise they fail."""
    advanced = refusals = 0
    for build_id, status, error in gates.ended_builds():
        run_ids = gates.runs_waiting_for(build_id)
        if status == Build.Status.READY:
            advanced += patiently(lambda ids=run_ids: gates.leave_build(ids))  # type: ignore[misc]  # bound at once
        else:
            end = "failed" if status == Build.Status.FAILED else f"was {status}"
            message = f"Build {build_id} {end}{f': {error}' if error else '.'}"
            # Check the build's status again, because the build may have been queued again since it was read.
            still = Q(Exists(Build.objects.filter(pk=build_id, status=status)))
            failure = {"failure_type": Run.Failure.BUILD_FAILED, "error_message": message}
            for run_id in run_ids[: REFUSALS - refusals]:
                refusals += _refuse(run_id, message, owner, where=still, data={"build": build_id}, **failure)
    gates.stop_awaiting()
    if advanced or refusals:
        wakeups.ring(RUN_STATES.kind)
    return advanced + refusals


def apply_processing_failures(owner: str) -> int:
    """Fail queued runs whose document could not be processed, even if it is processed again meanwhile."""
    messages: dict[int, str] = {}
    refusals = 0
    for run_id, document_id in processing_gates.failed(REFUSALS):
        message = messages.get(document_id) or processing_gates.problem_of(document_id)
        messages[document_id] = message
        failure = {"failure_type": Run.Failure.DOCUMENT_FAILED, "error_message": message}
        guards = {"gate": Run.Gate.FAILED.value}
        refusals += _refuse(run_id, message, owner, guards=guards, data={"document": document_id}, **failure)
        failpoints.hit("run.refused")
    return refusals


def rescue(lost: LostClaim) -> str | None:
    """End a run whose worker is gone: as cancelled if a cancel was accepted, otherwise as failed, because a run is
    claimed only once.
    """
    verb = lost.move("drop", guards={"cancel_requested_at__isnull": False}) or lost.move(
        "orphan",
        message=lost.rule,
        guards={"cancel_requested_at__isnull": True},
        failure_type=lost.failure_type,
        error_message=lost.rule,
    )
    if verb:
        # Open the next run's gate now instead of waiting for `open_forgotten`. If that run's row is locked, leave it to
        # that task.
        with suppress(OperationalError), transaction.atomic():
            gates.open_document(Run.objects.values_list("input_document_id", flat=True).get(pk=lost.id))
    return verb


def _admit(configuration: Configuration, documents: Sequence[Document], create: Callable[[], T]) -> T:
    if any(document.workspace_id != configuration.workspace_id for document in documents):
        raise OtherWorkspace(
            f"Configuration {configuration.pk} can only process documents of workspace {configuration.workspace_id}."
        )
    if purged := next((document for document in documents if document.purged_at), None):
        raise Purged(purged)
    result = patiently(lambda: _create_within_limit(len(documents), create))
    failpoints.hit("run.created")
    return result


def _create_within_limit(number: int, create: Callable[[], T]) -> T:
    limit = settings.ADE_QUEUE_SIZE
    # On SQLite the transaction holds the write lock, so what it has checked stays true, and runs are created in order.
    in_transaction = limit is not None or connection.vendor == "sqlite"
    with transaction.atomic() if in_transaction else nullcontext():
        if limit is not None:
            # All submissions lock this row, so that the check and the insert are atomic.
            Admission.objects.select_for_update().get_or_create(pk=1)
            live = sum(count for (count,) in compiled.rows(_live))
            failpoints.hit("run.create.counted")
            if live + number > limit:
                raise QueueFull(limit, live, number)
        return create()


@contextmanager
def _guard_insert(document_ids: list[int], shared: Data, run_gates: list[str]) -> Iterator[None]:
    """Insert runs inside this context, so that no purge and no claim misses them.

    Until the runs are visible, a purge skips their documents. A claim that sees the runs also sees that their build is
    marked as awaited.
    """
    # Inside an outer transaction no savepoint is needed, because a refused submission has written nothing to undo.
    with nullcontext() if connection.in_atomic_block else transaction.atomic():
        retention.lock_against_purge(document_ids)
        if Run.Gate.BUILD in run_gates:
            gates.await_build(shared["build_id"])
        yield


def _prepare(
    configuration: Configuration, document_ids: list[int], actor: str, wait_for_processing: bool
) -> tuple[dict[str, Any], list[str]]:
    """Return the values that all new runs share, and the gate of each."""
    # Look at the documents first, so that a refused submission leaves no build behind.
    run_gates = gates.for_new_runs(document_ids, waiting=wait_for_processing)
    if Run.Gate.FAILED in run_gates:
        raise DocumentFailed(document_ids[run_gates.index(Run.Gate.FAILED)])
    build = get_or_create_build(configuration, actor=actor)
    shared = {
        "workspace_id": configuration.workspace_id,
        "configuration_id": configuration.pk,
        "build_id": build.id,
        "waits_for_processing": wait_for_processing,
        "publishes": configuration.publish,
    }
    if build.status != Build.Status.READY:
        return shared, [Run.Gate.BUILD.value] * len(document_ids)
    return shared, run_gates


def _finish(claim: Claim, verb: str, **options: Any) -> bool:
    moved = lifecycle.finish(claim, verb, guards={"cancel_requested_at__isnull": True}, **options)
    if not moved and not claim.lost.is_set():
        return stop(claim) and False
    gates.open_document(claim.values["input_document_id"])
    return moved


def _live() -> "QuerySet[Any, Any]":
    # Query each status separately, so that a partial index applies, but in a single statement: between two statements,
    # a run could be claimed and then be counted twice.
    queued, running = (
        Run.objects.filter(status=status).order_by().values("status").annotate(n=Count("pk")).values_list("n")
        for status in (Run.Status.QUEUED, Run.Status.RUNNING)
    )
    return queued.union(running, all=True)


def _refuse(run_id: int, message: str, owner: str, **options: Any) -> bool:
    try:
        return lifecycle.move(RUN_STATES, run_id, "refuse", actor=owner, message=message, **options)
    except OperationalError as error:
        # Another transaction has locked this run. Skip it, so that the other runs do not wait.
        if not is_contention(error):
            raise
        return False
