from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet

from builds import fingerprint
from builds.models import Build, Configuration
from work import clock, lifecycle, wakeups
from work.claims import Claim
from work.recovery import OVER_BUDGET, LostClaim
from work.sql import compiled
from work.state_machine import LOG_EVENT, By, StateMachine, Transition

BUILD_STATES = StateMachine(
    kind="build",
    model=Build,
    initial=Build.Status.QUEUED,
    created="BUILD_QUEUED",
    table={
        "start": Transition((Build.Status.QUEUED,), Build.Status.BUILDING, By.WORKER, "BUILD_STARTED"),
        "succeed": Transition((Build.Status.BUILDING,), Build.Status.READY, By.HOLDER, "BUILD_READY"),
        "fail": Transition((Build.Status.BUILDING,), Build.Status.FAILED, By.HOLDER, "BUILD_FAILED"),
        "cancel": Transition((Build.Status.QUEUED,), Build.Status.CANCELLED, By.PERSON, "BUILD_CANCELLED"),
        "request_cancel": Transition(
            (Build.Status.BUILDING,), Build.Status.BUILDING, By.PERSON, "BUILD_CANCEL_REQUESTED"
        ),
        "stop": Transition((Build.Status.BUILDING,), Build.Status.CANCELLED, By.HOLDER, "BUILD_CANCELLED"),
        "again": Transition(
            (Build.Status.FAILED, Build.Status.CANCELLED), Build.Status.QUEUED, By.PERSON, "BUILD_QUEUED_AGAIN"
        ),
        "release": Transition((Build.Status.BUILDING,), Build.Status.QUEUED, By.RECOVERY, "BUILD_RELEASED"),
        "give_up": Transition((Build.Status.BUILDING,), Build.Status.FAILED, By.RECOVERY, "BUILD_FAILED"),
        "drop": Transition((Build.Status.BUILDING,), Build.Status.CANCELLED, By.RECOVERY, "BUILD_CANCELLED"),
    },
    events={
        "BUILD_QUEUED": "A submission needed a fingerprint that had no build.",
        "BUILD_STARTED": "A worker claimed it.",
        "BUILD_READY": "The environment was made and verified.",
        "BUILD_FAILED": "It failed, timed out, or cost too many workers.",
        "BUILD_CANCEL_REQUESTED": "A person cancelled it while a worker held it.",
        "BUILD_CANCELLED": "It was cancelled.",
        "BUILD_QUEUED_AGAIN": "A person queued it again, or a submission did when the failure was older than a minute.",
        "BUILD_RELEASED": "Its worker was lost or stopped; another worker will make it.",
        **LOG_EVENT,
    },
)

# A build that has killed this many workers will probably kill the next one too.
LOSSES = 3
# For how long a failed build is not tried again when a new run is submitted.
NEGATIVE_CACHE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class BuildChoice:
    """The build that a run will use, and its status."""

    id: int
    status: str


def get_or_create_build(configuration: Configuration, *, actor: str) -> BuildChoice:
    """Return the build of this configuration's current contents. Create it if it is missing. Queue it again if it
    failed or was cancelled more than NEGATIVE_CACHE_SECONDS ago.
    """
    build_fingerprint = fingerprint.of_build(configuration.contents_sha256)
    build = _find(configuration.pk, build_fingerprint) or _create(configuration.pk, actor)
    if build.status in (Build.Status.FAILED, Build.Status.CANCELLED):
        limit = clock.now() - timedelta(seconds=NEGATIVE_CACHE_SECONDS)
        is_old = Build.objects.filter(pk=build.id, finished_at__lt=limit).exists()
        if is_old and again(build.id, actor=actor):
            return BuildChoice(build.id, Build.Status.QUEUED)
    return build


def claim_next_build(owner: str) -> Claim | None:
    return lifecycle.claim_next(
        BUILD_STATES, "start", owner, Build.objects.claimable, "configuration_id", "fingerprint"
    )


def succeed(claim: Claim, *, lock: str = "", size_bytes: int | None = None) -> bool:
    """Record that the environment is ready. Return False if the claim is gone, or if a cancel request was accepted
    meanwhile; such a request cancels the build.
    """
    return _finish(claim, "succeed", lock=lock, size_bytes=size_bytes)


def fail(claim: Claim, failure_type: str, message: str) -> bool:
    return _finish(claim, "fail", message=message, failure_type=failure_type, error_message=message)


def stop(claim: Claim) -> bool:
    """Cancel the build, as its holder, because a cancel request was accepted."""
    return lifecycle.finish(claim, "stop", guards={"cancel_requested_at__isnull": False})


def cancel(build: Build, *, actor: str, reason: str = "") -> str:
    """Cancel a build. Return its status as `work.lifecycle.cancel` does."""
    status = lifecycle.cancel(BUILD_STATES, build.pk, actor=actor, reason=reason)
    wakeups.ring(BUILD_STATES.kind)
    return status


def again(build_id: int, *, actor: str) -> bool:
    """Queue the build again. Return False if it has neither failed nor been cancelled."""
    values: dict[str, Any] = {"failure_type": "", "error_message": "", "losses": 0, "queued_at": clock.now()}
    values |= {"cancel_requested_at": None, "cancel_requested_by": "", "awaited": True}
    if not lifecycle.move(BUILD_STATES, build_id, "again", actor=actor, **values):
        return False
    wakeups.ring(BUILD_STATES.kind)
    return True


def rescue(lost: LostClaim) -> str | None:
    """Recover a build whose worker is gone. Cancel it if a cancel request was accepted, otherwise queue it again. Fail
    it if it is over its time limit or has lost too many workers.
    """
    if lost.move("drop", guards={"cancel_requested_at__isnull": False}):
        return "drop"
    message = lost.rule
    if lost.rule != OVER_BUDGET:
        guards = {"cancel_requested_at__isnull": True, "losses__lt": LOSSES - lost.losses}
        if lost.move("release", message=message, guards=guards, losses=F("losses") + lost.losses):
            wakeups.ring(BUILD_STATES.kind)
            return "release"
        message = f"{message}; {LOSSES} workers were lost while building it"
    failure = {"failure_type": lost.failure_type, "error_message": message}
    return lost.move("give_up", message=message, guards={"cancel_requested_at__isnull": True}, **failure)


def _finish(claim: Claim, verb: str, **options: Any) -> bool:
    moved = lifecycle.finish(claim, verb, guards={"cancel_requested_at__isnull": True}, **options)
    if not moved and not claim.lost.is_set():
        stop(claim)
    wakeups.ring(BUILD_STATES.kind)
    return moved


def _find(configuration_id: int, build_fingerprint: str) -> BuildChoice | None:
    rows = compiled.rows(_with_fingerprint, configuration_id, build_fingerprint)
    return BuildChoice(*rows[0]) if rows else None


# A module function, because the function is the key of the compiled SQL.
def _with_fingerprint(configuration_id: int, build_fingerprint: str) -> "QuerySet[Build, tuple[int, str]]":
    builds = Build.objects.filter(configuration_id=configuration_id, fingerprint=build_fingerprint)
    return builds.values_list("pk", "status")


def _create(configuration_id: int, actor: str) -> BuildChoice:
    # Read and hash the contents again, so that the fingerprint matches what is stored and the snapshot is complete.
    snapshot = Configuration.objects.get(pk=configuration_id).snapshot()
    build_fingerprint = fingerprint.of_build(fingerprint.of_contents(snapshot))
    values = {"configuration_id": configuration_id, "fingerprint": build_fingerprint, "snapshot": snapshot}
    try:
        # In a savepoint, so that a caller that loses this race can go on in its own transaction.
        with transaction.atomic():
            (id,) = lifecycle.create(BUILD_STATES, values, actor=actor)
    except IntegrityError:
        if build := _find(configuration_id, build_fingerprint):
            return build
        raise
    return BuildChoice(id, Build.Status.QUEUED)
