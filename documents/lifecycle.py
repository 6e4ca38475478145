from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, Value
from django.db.models.functions import Concat, Length

from documents import backoff
from documents.models import Document, DocumentProcessingJob, Membership, Stage, Workspace
from work import clock, failpoints, lifecycle, wakeups
from work.claims import Claim
from work.lifecycle import Data
from work.moves import By, Move, Moves
from work.recovery import Found

DOCUMENT = Moves(
    kind="document",
    model=Document,
    initial="processing",
    created="DOCUMENT_ADDED",
    table={
        "process": Move(("processing",), "processed", By.ORCHESTRATOR, "DOCUMENT_PROCESSED"),
        "fail": Move(("processing",), "failed", By.ORCHESTRATOR, "DOCUMENT_FAILED"),
        "reopen": Move(("processed", "failed"), "processing", By.PERSON, "DOCUMENT_REOPENED"),
    },
)

JOB = Moves(
    kind="job",
    model=DocumentProcessingJob,
    initial="PENDING",
    created="JOB_QUEUED",
    table={
        "begin": Move(("PENDING",), "PROCESSING", By.ORCHESTRATOR, "JOB_STARTED"),
        "complete": Move(("PROCESSING",), "COMPLETED", By.ORCHESTRATOR, "JOB_COMPLETED"),
        "postpone": Move(("PROCESSING",), "PENDING", By.ORCHESTRATOR, "JOB_POSTPONED"),
        "fail": Move(("PROCESSING",), "FAILED", By.ORCHESTRATOR, "JOB_FAILED"),
        "reset": Move(("PROCESSING",), "PENDING", By.RECOVERY, "JOB_RESET"),
        "give_up": Move(("PROCESSING",), "FAILED", By.RECOVERY, "JOB_GIVEN_UP"),
    },
)

STAGE = Moves(
    kind="stage",
    model=Stage,
    initial="NEW",
    created="STAGE_PLANNED",
    table={
        "ready": Move(("NEW",), "READY", By.ORCHESTRATOR, "STAGE_READY"),
        "start": Move(("READY",), "RUNNING", By.WORKER, "STAGE_STARTED"),
        "finish": Move(("RUNNING",), "DONE", By.HOLDER, "STAGE_DONE"),
        "fail": Move(("RUNNING",), "ERROR", By.HOLDER, "STAGE_FAILED"),
        "release": Move(("RUNNING",), "READY", By.RECOVERY, "STAGE_RELEASED"),
        "abandon": Move(("RUNNING",), "ERROR", By.RECOVERY, "STAGE_ABANDONED"),
        "renew": Move(("ERROR", "READY", "DONE"), "NEW", By.POLICY, "STAGE_RENEWED"),
    },
)

# A stage that has killed this many workers in one attempt of its job will kill the next one too.
STAGE_LOSSES = 3
# The document itself is the trouble: no other attempt will cure it.
REFUSED = "DOCUMENT_REFUSED"
# What a stage that is done has left is gone: the next attempt does all of them again, as far as they left nothing.
OUTPUT_LOST = "OUTPUT_LOST"
# A service outside does not take it from us: the settings, the contract with it, or what it says of the document.
SERVICE_REFUSED = "SERVICE_REFUSED"
# What a document holds beside its own columns, and these when it holds nothing any more.
CONTENTS = ("chunks", "fields", "corrections")
EMPTY: dict[str, Any] = {"file": "", "text": "", "embedding": None, "embedding_model": ""}
KEPT = {"purged_at__isnull": True}
# What must be DONE before a stage of that name may be claimed.
ORDER = ("extract", "embed", "publish")


def create_workspace(name: str) -> Workspace:
    return Workspace.objects.create(name=name)


def add_member(workspace: Workspace, user_id: int, role: Membership.Role) -> Membership:
    return Membership.objects.create(workspace=workspace, user_id=user_id, role=role)


def add_document(workspace: Workspace, values: Data, *, actor: str = "") -> Document:
    """A stored file becomes a document with its job, in one transaction. The file must be in the storage before."""
    with transaction.atomic():
        document: Document = lifecycle.create_one(DOCUMENT, {"workspace_id": workspace.pk, **values}, actor=actor)
        lifecycle.create(JOB, {"document_id": document.pk}, actor=actor)
    return document


def reprocess(document: Document, *, actor: str, in_bulk: bool = False) -> int | None:
    """A new job for a document whose last one has ended; None when one is under way, or when nothing is left of it."""
    priority = DocumentProcessingJob.Priority.BULK if in_bulk else DocumentProcessingJob.Priority.NORMAL
    with transaction.atomic():
        if not lifecycle.move(DOCUMENT, document.pk, "reopen", actor=actor, guards=KEPT):
            return None
        (job_id,) = lifecycle.create(JOB, {"document_id": document.pk, "priority": int(priority)}, actor=actor)
    return job_id


def tell_correction(document_id: int, message: str, data: Data, *, actor: str) -> bool:
    """What a person says a field is; False when there is no such document."""
    return lifecycle.record(DOCUMENT, document_id, "FIELD_CORRECTED", actor=actor, message=message, data=data)


def tell_withdrawal(document_id: int, message: str, data: Data, *, actor: str) -> bool:
    return lifecycle.record(
        DOCUMENT, document_id, "FIELD_CORRECTION_WITHDRAWN", actor=actor, message=message, data=data
    )


def purge(document_id: int, *, days: int, actor: str) -> dict[str, Any] | None:
    """What it holds goes, and the row says from now on what there was, which is the answer. Its file is still there.

    None when work needs it, when somebody is at the row, or when the policy is not that of so many days any more.
    """
    with transaction.atomic():
        found = _lock_due(document_id, days)
        if found is None:
            return None
        failpoints.hit("retention.selected")
        rows = {name: getattr(Document(pk=document_id), name).all().delete()[0] for name in CONTENTS}
        data = {**rows, **found, "days": days}
        message = f"older than {days} days, for which its workspace keeps documents"
        told: dict[str, Any] = {"actor": actor, "message": message, "data": data}
        status = {"status": data.pop("status")}
        if not lifecycle.record(
            DOCUMENT, document_id, "DOCUMENT_PURGED", guards=KEPT | status, purged_at=clock.now(), **told, **EMPTY
        ):
            transaction.set_rollback(True)
            return None
    return data


def begin_next_job(owner: str) -> Claim | None:
    """The orchestrator takes up the next job that is due; nobody holds it from then on."""
    jobs = DocumentProcessingJob.objects
    with transaction.atomic():
        claim = lifecycle.claim_next(JOB, "begin", owner, jobs.claimable, "document_id")
        claim = claim or lifecycle.claim_next(JOB, "begin", owner, jobs.claimable_in_bulk, "document_id")
        if claim is not None:
            _renew_stages(claim.id, owner)
    return claim


def plan(job_id: int, segments: int, *, actor: str) -> bool:
    """Lay out the stages of a job; those that exist stay as they are. False when the job has ended."""
    wanted = [("extract", n) for n in range(segments)] + [("embed", 0), ("publish", 0)]
    with transaction.atomic():
        if not _lock_live(job_id):
            return False
        existing = set(Stage.objects.filter(job_id=job_id).values_list("name", "segment"))
        missing = [stage for stage in wanted if stage not in existing]
        if missing:
            names, numbers = zip(*missing, strict=True)
            varying = {"name": list(names), "segment": list(numbers)}
            lifecycle.create(STAGE, {"job_id": job_id}, varying=varying, actor=actor)
    return True


def advance(job_id: int, *, actor: str) -> int:
    """Make READY what no unfinished stage stands before; answers how many were."""
    unfinished = Stage.objects.filter(job_id=job_id).unfinished()
    current = next((name for name in ORDER if unfinished.filter(name=name).exists()), None)
    ids = unfinished.filter(name=current, status="NEW", job__status="PROCESSING").values_list("pk", flat=True)
    made = sum(lifecycle.move(STAGE, id, "ready", actor=actor) for id in ids)
    if made:
        wakeups.ring(STAGE.kind)
    return made


def settle(job: DocumentProcessingJob, *, actor: str) -> bool:
    """Bring a job under way to its end when its stages have come to theirs; False when there is nothing to decide."""
    stages = Stage.objects.filter(job_id=job.pk)
    failed = list(stages.filter(status="ERROR").order_by("finished_at", "id"))
    if failed:
        # Whoever is at another one may be told to wait for longer, or that it is of no use.
        return not stages.filter(status="RUNNING").exists() and _settle_failed(job, failed, actor)
    if not stages.exists() or stages.unfinished().exists():
        return False
    with failpoints.inside("job.finish.before_commit"), transaction.atomic():
        # Asked again under the lock: stages may have been laid out meanwhile.
        if not _lock_live(job.pk) or stages.unfinished().exists():
            return False
        moved = lifecycle.move(JOB, job.pk, "complete", actor=actor, completed_at=clock.now())
        moved = moved and lifecycle.move(DOCUMENT, job.document_id, "process", actor=actor)
    failpoints.hit("job.finish.after_commit")
    return moved


def _settle_failed(job: DocumentProcessingJob, failed: list[Stage], actor: str) -> bool:
    """The first that no attempt will cure decides, else the first; and the longest pause that was asked for."""
    final = [stage for stage in failed if stage.failure_type in (REFUSED, SERVICE_REFUSED)]
    first = (final or failed)[0]
    pauses = [stage.retry_after_seconds for stage in failed if stage.retry_after_seconds is not None]
    why = f"{first}: {first.error_message}"
    return _give_back(
        job, why, actor=actor, retry_after=max(pauses, default=None), final=first.failure_type if final else ""
    )


def claim_stage(owner: str) -> Claim | None:
    return lifecycle.claim_next(STAGE, "start", owner, Stage.objects.claimable, "job_id", "name", "segment")


def finish_stage(claim: Claim, *, data: Data | None = None, also: Callable[[], object] | None = None) -> bool:
    """What `also` writes is there exactly if the stage is done."""
    return lifecycle.finish(claim, "finish", data=data, also=also)


def fail_stage(claim: Claim, failure_type: str, message: str, *, retry_after: float | None = None) -> bool:
    said: dict[str, Any] = {
        "failure_type": failure_type,
        "error_message": message,
        "retry_after_seconds": retry_after,
    }
    return lifecycle.finish(claim, "fail", message=message, **said)


def rescue_stage(found: Found) -> str | None:
    """Back to READY; to ERROR when it has cost too many workers."""
    message = found.rule
    lost: dict[str, Any] = {"losses": F("losses") + found.losses, "error_message": message}
    if found.move("release", message=message, guards={"losses__lt": STAGE_LOSSES - found.losses}, **lost):
        wakeups.ring(STAGE.kind)
        return "release"
    lost["error_message"] = message = f"{message}; {STAGE_LOSSES} workers were lost over it"
    return found.move("abandon", message=message, failure_type="PROCESS_TERMINATED", **lost)


def reset_zombies(actor: str) -> int:
    """The watchdog: jobs whose stages nobody has worked at for too long go back, or fail at their last attempt."""
    now = clock.now()
    limit = now - timedelta(seconds=settings.ADE_ZOMBIE_SECONDS)
    # A long job rests between two of its stages; it is the last of them that counts, not the first.
    at_work = Q(status="RUNNING", lease_expires_at__gt=now) | Q(started_at__gt=limit) | Q(finished_at__gt=limit)
    alive = Exists(Stage.objects.filter(at_work, job_id=OuterRef("pk")))
    over = DocumentProcessingJob.objects.filter(~alive, status="PROCESSING", started_at__lt=limit)
    message = f"processing for longer than {settings.ADE_ZOMBIE_SECONDS} s with nobody at work"
    return sum(_give_back(job, message, actor=actor, recovering=~alive) for job in over.order_by("started_at")[:100])


def _lock_due(document_id: int, days: int) -> dict[str, Any] | None:
    """What a document is and holds that a policy of so many days has no place for, if nobody needs it."""
    skip = connection.features.has_select_for_update_skip_locked
    documents = Document.objects.filter(pk=document_id)
    # The full lock, which `retention.hold` keeps away, and a statement of its own: the next sees what was committed.
    if not documents.select_for_update(skip_locked=skip).values_list("pk", flat=True).first():
        return None
    due = documents.older_than(days).idle().filter(workspace__document_retention_days=days)
    found = due.annotate(characters=Length("text")).values("status", "file", "size_bytes", "characters").first()
    return dict(found) if found else None


def _lock_live(job_id: int) -> bool:
    """The row of a job that has not ended is the lock under which its stages are laid out, and found done."""
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
    """PENDING for another attempt, or FAILED when this was the last, or another one would bring nothing: `final` says
    of what type the failure then is.
    """
    back, end = ("reset", "give_up") if recovering is not None else ("postpone", "fail")
    now = clock.now()
    line = f"{now:%Y-%m-%d %H:%M:%S} attempt {job.attempts + 1}: {why}\n"
    counted: dict[str, Any] = {
        "attempts": F("attempts") + 1,
        "error_log": Concat("error_log", Value(line)),
        "error_message": why,
    }
    # The attempt that was seen: two who see the same one count it once.
    seen = Q(attempts=job.attempts, started_at=job.started_at)
    where = seen if recovering is None else seen & Q(recovering)
    with transaction.atomic():
        if job.attempts + 1 < job.max_attempts and not final:
            due = now + timedelta(seconds=backoff.seconds(job.attempts + 1, retry_after))
            return lifecycle.move(
                JOB, job.pk, back, where=where, actor=actor, message=why, next_attempt_at=due, **counted
            )
        counted["failure_type"] = final or "ATTEMPTS_EXHAUSTED"
        moved = lifecycle.move(JOB, job.pk, end, where=where, actor=actor, message=why, **counted)
        if DocumentProcessingJob.objects.filter(document=job.document_id, status="COMPLETED").exists():
            why = f"{why}; what was read of it before is still there"
        return moved and lifecycle.move(DOCUMENT, job.document_id, "fail", actor=actor, message=why)


def _renew_stages(job_id: int, actor: str) -> None:
    """A new attempt of a job starts with what the last one left undone."""
    stages = Stage.objects.filter(job_id=job_id)
    lost = stages.filter(failure_type=OUTPUT_LOST).exists()
    for id in stages.filter(status__in=["ERROR", "READY", *(["DONE"] if lost else [])]).values_list("pk", flat=True):
        lifecycle.move(
            STAGE, id, "renew", actor=actor, losses=0, failure_type="", error_message="", retry_after_seconds=None
        )
