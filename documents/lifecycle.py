from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, Value
from django.db.models.functions import Concat

from documents import backoff, breakers, followers
from documents.models import Document, DocumentProcessingJob, Stage
from work import clock, failpoints, lifecycle, wakeups
from work.changes import Claimable
from work.claims import Claim
from work.lifecycle import Data
from work.recovery import LostClaim
from work.state_machine import By, StateMachine, Transition
from workspaces.models import Membership, Workspace

DocumentStatus = Document.Status
JobStatus = DocumentProcessingJob.Status
StageStatus = Stage.Status

DOCUMENT_STATES = StateMachine(
    kind="document",
    model=Document,
    initial=DocumentStatus.PROCESSING,
    created="DOCUMENT_ADDED",
    table={
        "process": Transition(
            (DocumentStatus.PROCESSING,), DocumentStatus.PROCESSED, By.ORCHESTRATOR, "DOCUMENT_PROCESSED"
        ),
        "fail": Transition((DocumentStatus.PROCESSING,), DocumentStatus.FAILED, By.ORCHESTRATOR, "DOCUMENT_FAILED"),
        "reopen": Transition(
            (DocumentStatus.PROCESSED, DocumentStatus.FAILED), DocumentStatus.PROCESSING, By.PERSON, "DOCUMENT_REOPENED"
        ),
    },
    events={
        "DOCUMENT_ADDED": "Its file was stored.",
        "DOCUMENT_PROCESSED": "Its processing job completed.",
        "DOCUMENT_FAILED": (
            "Its processing job failed at the last attempt; the message says whether earlier results are kept."
        ),
        "DOCUMENT_REOPENED": "A person had it processed again.",
        "FIELD_CORRECTED": (
            "A person set or confirmed a field; the data have its `name`, the `machine_value`, the correction"
            " `before` and the new `value`."
        ),
        "FIELD_CORRECTION_WITHDRAWN": "The machine value applies again; the same data, and `value` is null.",
        "DOCUMENT_TYPE_CHOSEN": "A person chose its type; the data have the `type` and the one `before`.",
        "PROBLEM_DISMISSED": "A person dismissed a problem; the data have its `code` and its `field`.",
        "CELL_CORRECTED": (
            "A person set or confirmed a cell of a table; the data have `table`, `row`, `column`, the `machine_text`,"
            " the correction `before` and the new `text`."
        ),
        "CELL_CORRECTION_WITHDRAWN": "The machine text applies again; the same data, and `text` is null.",
        "DOCUMENT_PURGED": (
            "It was older than the retention of its workspace, and its content was deleted; the data have the amount"
            " and the number of `days`."
        ),
    },
)

JOB_STATES = StateMachine(
    kind="job",
    model=DocumentProcessingJob,
    initial=JobStatus.PENDING,
    created="JOB_QUEUED",
    table={
        "begin": Transition((JobStatus.PENDING,), JobStatus.PROCESSING, By.ORCHESTRATOR, "JOB_STARTED"),
        "complete": Transition((JobStatus.PROCESSING,), JobStatus.COMPLETED, By.ORCHESTRATOR, "JOB_COMPLETED"),
        "postpone": Transition((JobStatus.PROCESSING,), JobStatus.PENDING, By.ORCHESTRATOR, "JOB_POSTPONED"),
        "fail": Transition((JobStatus.PROCESSING,), JobStatus.FAILED, By.ORCHESTRATOR, "JOB_FAILED"),
        "reset": Transition((JobStatus.PROCESSING,), JobStatus.PENDING, By.RECOVERY, "JOB_RESET"),
        "give_up": Transition((JobStatus.PROCESSING,), JobStatus.FAILED, By.RECOVERY, "JOB_GIVEN_UP"),
    },
    events={
        "JOB_QUEUED": "A document was added or reopened.",
        "JOB_STARTED": "An attempt started.",
        "JOB_COMPLETED": "All its stages are done.",
        "JOB_POSTPONED": "A stage failed; another attempt follows after a pause.",
        "JOB_FAILED": "A stage failed in the last attempt, or another attempt cannot succeed.",
        "JOB_RESET": "No worker had worked on its stages for `ADE_ZOMBIE_SECONDS`; another attempt follows.",
        "JOB_GIVEN_UP": "No worker had worked on its stages for that time in the last attempt.",
    },
)

STAGE_STATES = StateMachine(
    kind="stage",
    model=Stage,
    initial=StageStatus.NEW,
    created="STAGE_PLANNED",
    table={
        "ready": Transition((StageStatus.NEW,), StageStatus.READY, By.ORCHESTRATOR, "STAGE_READY"),
        "start": Transition((StageStatus.READY,), StageStatus.RUNNING, By.WORKER, "STAGE_STARTED"),
        "finish": Transition((StageStatus.RUNNING,), StageStatus.DONE, By.HOLDER, "STAGE_DONE"),
        "fail": Transition((StageStatus.RUNNING,), StageStatus.ERROR, By.HOLDER, "STAGE_FAILED"),
        "postpone": Transition((StageStatus.RUNNING,), StageStatus.READY, By.HOLDER, "STAGE_POSTPONED"),
        "release": Transition((StageStatus.RUNNING,), StageStatus.READY, By.RECOVERY, "STAGE_RELEASED"),
        "abandon": Transition((StageStatus.RUNNING,), StageStatus.ERROR, By.RECOVERY, "STAGE_ABANDONED"),
        "renew": Transition(
            (StageStatus.ERROR, StageStatus.READY, StageStatus.DONE), StageStatus.NEW, By.POLICY, "STAGE_RENEWED"
        ),
    },
    events={
        "STAGE_PLANNED": "The job was divided into stages.",
        "STAGE_READY": "All earlier stages are done.",
        "STAGE_STARTED": "A worker claimed it.",
        "STAGE_DONE": "Its output is stored.",
        "STAGE_FAILED": "It failed.",
        "STAGE_POSTPONED": "The service that it needs is unavailable; it waits, and no attempt is counted.",
        "STAGE_RELEASED": "Its worker was lost or stopped; another worker will do it.",
        "STAGE_ABANDONED": "It has cost too many workers.",
        "STAGE_RENEWED": "A new attempt of the job resets it.",
    },
)

# Each time a stage has lost this many workers, the current attempt of its job ends: the next worker would die too.
STAGE_LOSSES = 3
# After a stage has lost this many workers, its job fails for good, even if attempts are left. Attempts are meant for
# services that fail for a while.
FATAL_LOSSES = 9
# Failure type: the document itself is the cause, so another attempt cannot succeed.
REFUSED = "DOCUMENT_REFUSED"
# Failure type: the output of a finished stage is gone. The next attempt repeats all stages whose output is missing.
OUTPUT_LOST = "OUTPUT_LOST"
# Failure type: the stage kills the workers that run it.
POISON = "PROCESS_TERMINATED"
# Failure type: an external service refuses the request because of the settings, the account or the document.
SERVICE_REFUSED = "SERVICE_REFUSED"
# The order of stages: all stages of one name must be DONE before stages of the next name become READY.
ORDER = (Stage.Name.EXTRACT, Stage.Name.EMBED, Stage.Name.PUBLISH)


def create_workspace(name: str) -> Workspace:
    return Workspace.objects.create(name=name)


def add_member(workspace: Workspace, user_id: int, role: Membership.Role) -> Membership:
    return Membership.objects.create(workspace=workspace, user_id=user_id, role=role)


def add_document(workspace: Workspace, values: Data, *, actor: str = "") -> Document:
    """Create a document and its processing job in one transaction. The file must already be in the storage."""
    with transaction.atomic():
        document: Document = lifecycle.create_one(
            DOCUMENT_STATES, {"workspace_id": workspace.pk, **values}, actor=actor
        )
        lifecycle.create(JOB_STATES, {"document_id": document.pk}, actor=actor)
    return document


def reprocess(document: Document, *, actor: str, in_bulk: bool = False) -> int | None:
    """Create a new job for a document whose last job has ended, and return the job's ID.

    Return None if a job is under way or the document is purged.
    """
    priority = DocumentProcessingJob.Priority.BULK if in_bulk else DocumentProcessingJob.Priority.NORMAL
    with transaction.atomic():
        if not _move_document(document.pk, "reopen", actor=actor, guards={"purged_at__isnull": True}):
            return None
        (job_id,) = lifecycle.create(JOB_STATES, {"document_id": document.pk, "priority": int(priority)}, actor=actor)
    return job_id


def begin_next_job(owner: str) -> Claim | None:
    """Begin the next due job, for the orchestrator. Afterwards no worker holds the job; workers claim its stages."""
    jobs = DocumentProcessingJob.objects
    with transaction.atomic():
        claim = lifecycle.claim_next(JOB_STATES, "begin", owner, jobs.claimable, "document_id")
        claim = claim or lifecycle.claim_next(JOB_STATES, "begin", owner, jobs.claimable_in_bulk, "document_id")
        if claim is None:
            return None
        # Renew the stages that the last attempt left unfinished. If an output was lost, renew the finished stages too.
        stages = Stage.objects.filter(job_id=claim.id)
        statuses = [StageStatus.ERROR, StageStatus.READY]
        if stages.filter(failure_type=OUTPUT_LOST).exists():
            statuses.append(StageStatus.DONE)
        # Keep `losses`, which counts over all attempts.
        cleared: dict[str, Any] = {"failure_type": "", "error_message": "", "retry_after_seconds": None}
        for id in stages.filter(status__in=statuses).values_list("pk", flat=True):
            lifecycle.move(STAGE_STATES, id, "renew", actor=owner, **cleared)
    return claim


def plan(job_id: int, segments: int, *, actor: str) -> bool:
    """Create the missing stages of a job and leave existing stages unchanged. Return False if the job has ended."""
    stages = [(Stage.Name.EXTRACT, n) for n in range(segments)] + [(Stage.Name.EMBED, 0), (Stage.Name.PUBLISH, 0)]
    with transaction.atomic():
        if not _lock_live(job_id):
            return False
        existing = set(Stage.objects.filter(job_id=job_id).values_list("name", "segment"))
        missing = [stage for stage in stages if stage not in existing]
        if missing:
            names, numbers = zip(*missing, strict=True)
            varying = {"name": list(names), "segment": list(numbers)}
            lifecycle.create(STAGE_STATES, {"job_id": job_id}, varying=varying, actor=actor)
    return True


def advance(job_id: int, *, actor: str) -> int:
    """Set the stages of a job that come next in ORDER to READY, and return how many there were."""
    unfinished = Stage.objects.filter(job_id=job_id).unfinished()
    current = next((name for name in ORDER if unfinished.filter(name=name).exists()), None)
    new = unfinished.filter(name=current, status=StageStatus.NEW, job__status=JobStatus.PROCESSING)
    number = sum(lifecycle.move(STAGE_STATES, id, "ready", actor=actor) for id in new.values_list("pk", flat=True))
    if number:
        wakeups.ring(STAGE_STATES.kind)
    return number


def settle(job: DocumentProcessingJob, *, actor: str) -> bool:
    """Complete a job whose stages are all done; fail or postpone a job in which a stage has failed.

    Return False if there is nothing to decide yet.
    """
    stages = Stage.objects.filter(job_id=job.pk)
    failed = list(stages.filter(status=StageStatus.ERROR).order_by("finished_at", "id"))
    if failed:
        # A running stage may still ask for a longer pause, or show that another attempt is useless.
        if stages.filter(status=StageStatus.RUNNING).exists():
            return False
        # The first permanent failure decides, or the first failure if none is permanent. The longest requested pause
        # applies.
        permanent = [stage for stage in failed if stage.failure_type in (REFUSED, SERVICE_REFUSED)]
        first = (permanent or failed)[0]
        pauses = [stage.retry_after_seconds for stage in failed if stage.retry_after_seconds is not None]
        why, pause = f"{first}: {first.error_message}", max(pauses, default=None)
        return _give_back(job, why, actor=actor, retry_after=pause, final=first.failure_type if permanent else "")
    if not stages.exists() or stages.unfinished().exists():
        return False
    with failpoints.inside("job.finish.before_commit"), transaction.atomic():
        # Check again under the lock, because stages may have been planned meanwhile.
        if not _lock_live(job.pk) or stages.unfinished().exists():
            return False
        moved = lifecycle.move(JOB_STATES, job.pk, "complete", actor=actor, completed_at=clock.now())
        moved = moved and _move_document(job.document_id, "process", actor=actor)
    failpoints.hit("job.finish.after_commit")
    return moved


def claim_stage(owner: str) -> Claim | None:
    """Claim a stage. While a service is away, one stage at a time probes it, and the others that need it wait."""
    away = breakers.away()
    for service in away.values():
        candidates = breakers.claimable_with(service.name)
        if not service.is_due() or not candidates(clock.now()).exists():
            continue
        with transaction.atomic():
            claim = _claim_stage(owner, candidates) if breakers.lock_due(service) else None
            if claim is not None:
                breakers.record_probe(service, claim)
                return claim
    return _claim_stage(owner, breakers.claimable_without(frozenset(away)))


def _claim_stage(owner: str, claimable: Claimable) -> Claim | None:
    return lifecycle.claim_next(STAGE_STATES, "start", owner, claimable, "job_id", "name", "segment")


def finish_stage(claim: Claim, *, data: Data | None = None, also: Callable[[], object] | None = None) -> bool:
    """Finish a stage. Whatever `also` writes is committed if and only if the stage becomes DONE."""
    return lifecycle.finish(claim, "finish", data=data, also=also)


def fail_stage(claim: Claim, failure_type: str, message: str, *, retry_after: float | None = None) -> bool:
    values: dict[str, Any] = {"failure_type": failure_type, "error_message": message}
    return lifecycle.finish(claim, "fail", message=message, retry_after_seconds=retry_after, **values)


def postpone_stage(claim: Claim, message: str) -> bool:
    """Make a stage READY again because its service is away. This does not count as an attempt of the job."""
    return lifecycle.finish(claim, "postpone", message=message, postponements=F("postponements") + 1)


def rescue_stage(lost: LostClaim) -> str | None:
    """Return a lost stage to READY, or set it to ERROR if it has cost too many workers."""
    # Only a move of this claim changes `losses`, so it cannot change between this read and the move.
    before = Stage.objects.filter(pk=lost.id).values_list("losses", flat=True).first() or 0
    losses, message = before + lost.losses, lost.rule
    if losses > before and (losses % STAGE_LOSSES == 0 or losses >= FATAL_LOSSES):
        message = f"{message.rstrip('.')}; {losses} workers were lost while processing it"
        return lost.move("abandon", message=message, failure_type=POISON, error_message=message, losses=losses)
    # If a stopping worker gave the stage back, store no error, because the watchdog would count it as an attempt.
    values: dict[str, Any] = {"losses": losses, "error_message": message} if lost.losses else {}
    verb = lost.move("release", message=message, **values)
    if verb:
        wakeups.ring(STAGE_STATES.kind)
    return verb


def reset_zombies(actor: str) -> int:
    """The watchdog: give back jobs whose stages have been idle for too long, or fail them after the last attempt.

    If no worker has claimed a stage since the attempt began, nothing was tried, and no attempt is counted.
    """
    now = clock.now()
    limit = now - timedelta(seconds=settings.ADE_ZOMBIE_SECONDS)
    # A long job pauses between its stages, so the latest start or end of any stage counts.
    held = Q(status=StageStatus.RUNNING, lease_expires_at__gt=now)
    at_work = held | Q(started_at__gt=limit) | Q(finished_at__gt=limit)
    alive = Exists(Stage.objects.filter(at_work, job_id=OuterRef("pk")))
    idle = DocumentProcessingJob.objects.filter(~alive, status=JobStatus.PROCESSING, started_at__lt=limit)
    if away := frozenset(breakers.away()):
        # A job whose stages wait for a service that is away has not been abandoned.
        idle = idle.exclude(pk__in=breakers.waiting(away).order_by().values("job_id"))
    # Matches stages that this attempt has claimed but not finished. An error must come from this attempt, because each
    # attempt clears the errors when it begins.
    tried = Q(status__in=[StageStatus.RUNNING, StageStatus.ERROR])
    tried |= Q(status=StageStatus.READY) & ~Q(error_message="")
    message = f"In processing for longer than {settings.ADE_ZOMBIE_SECONDS} s while no worker was working on it."
    number = 0
    for job in idle.order_by("started_at")[:100]:
        if Stage.objects.filter(tried, job=job).exists():
            number += _give_back(job, message, actor=actor, recovering=~alive)
            continue
        where = Q(~alive, attempts=job.attempts, started_at=job.started_at)
        why = f"{message.rstrip('.')}; no stage was claimed, so no attempt is counted."
        due = clock.now() + timedelta(seconds=backoff.job_seconds(1))
        number += lifecycle.move(
            JOB_STATES, job.pk, "reset", where=where, actor=actor, message=why, next_attempt_at=due
        )
    return number


def _move_document(document_id: int, verb: str, **options: Any) -> bool:
    """Change the document's status, and let its followers act on it. The caller must have opened a transaction."""
    moved = lifecycle.move(DOCUMENT_STATES, document_id, verb, **options)
    if moved:
        followers.notify(document_id, DOCUMENT_STATES[verb].target)
    return moved


def _lock_live(job_id: int) -> bool:
    """Lock a job and return whether it has not ended.

    `plan` and `settle` hold this lock, so that no stage is planned once all stages were found done.
    """
    jobs = DocumentProcessingJob.objects.live().select_for_update().filter(pk=job_id)
    return jobs.values_list("pk", flat=True).first() is not None


def _give_back(
    job: DocumentProcessingJob,
    why: str,
    *,
    actor: str,
    retry_after: float | None = None,
    recovering: Any = None,
    final: str = "",
) -> bool:
    """Make a job PENDING for another attempt, or FAILED if this was the last attempt or another would be useless.

    `final` is the failure type if another attempt would be useless. A job that has lost too many workers always fails.
    """
    if not final and Stage.objects.filter(job=job, losses__gte=FATAL_LOSSES).exists():
        final = POISON
    back, end = ("reset", "give_up") if recovering is not None else ("postpone", "fail")
    now = clock.now()
    line = f"{now:%Y-%m-%d %H:%M:%S} attempt {job.attempts + 1}: {why}\n"
    counted: dict[str, Any] = {
        "attempts": F("attempts") + 1,
        "error_log": Concat("error_log", Value(line)),
        "error_message": why,
    }
    # Move only if the attempt is still the one that was read, so that two workers count the same attempt once.
    where = Q(attempts=job.attempts, started_at=job.started_at)
    if recovering is not None:
        where &= Q(recovering)
    with transaction.atomic():
        if job.attempts + 1 < job.max_attempts and not final:
            due = now + timedelta(seconds=backoff.job_seconds(job.attempts + 1, retry_after))
            return lifecycle.move(
                JOB_STATES, job.pk, back, where=where, actor=actor, message=why, next_attempt_at=due, **counted
            )
        counted["failure_type"] = final or "ATTEMPTS_EXHAUSTED"
        moved = lifecycle.move(JOB_STATES, job.pk, end, where=where, actor=actor, message=why, **counted)
        if DocumentProcessingJob.objects.filter(document=job.document_id, status=JobStatus.COMPLETED).exists():
            why = f"{why.rstrip('.')}; the results of the earlier processing are still available."
        return moved and _move_document(job.document_id, "fail", actor=actor, message=why)
