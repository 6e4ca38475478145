from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet

from builds import fingerprint
from builds.models import Build, Configuration
from work import clock, compiled, lifecycle, wakeups
from work.claims import Claim
from work.moves import By, Move, Moves
from work.recovery import OVER_BUDGET, Found

BUILD = Moves(
    kind="build",
    model=Build,
    initial="queued",
    created="BUILD_QUEUED",
    table={
        "start": Move(("queued",), "building", By.WORKER, "BUILD_STARTED"),
        "succeed": Move(("building",), "ready", By.HOLDER, "BUILD_READY"),
        "fail": Move(("building",), "failed", By.HOLDER, "BUILD_FAILED"),
        "cancel": Move(("queued",), "cancelled", By.PERSON, "BUILD_CANCELLED"),
        "request_cancel": Move(("building",), "building", By.PERSON, "BUILD_CANCEL_REQUESTED"),
        "stop": Move(("building",), "cancelled", By.HOLDER, "BUILD_CANCELLED"),
        "again": Move(("failed", "cancelled"), "queued", By.PERSON, "BUILD_QUEUED_AGAIN"),
        "release": Move(("building",), "queued", By.RECOVERY, "BUILD_RELEASED"),
        "give_up": Move(("building",), "failed", By.RECOVERY, "BUILD_FAILED"),
        "drop": Move(("building",), "cancelled", By.RECOVERY, "BUILD_CANCELLED"),
    },
)

# A build that has cost this many workers will cost the next one too.
LOSSES = 3
# How long a failed build answers for its fingerprint before a new submission tries it again.
NEGATIVE_CACHE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Chosen:
    """The build that a run will use, and whether it has to be waited for."""

    id: int
    status: str


def get_or_create_build(configuration: Configuration, *, actor: str) -> Chosen:
    """The one build of this configuration as it is now; made, or queued again, when there is none to use."""
    wanted = fingerprint.of_build(configuration.contents_sha256)
    build = _find(configuration.pk, wanted) or _create(configuration.pk, actor)
    if build.status in ("failed", "cancelled") and _is_forgotten(build.id) and again(build.id, actor=actor):
        return Chosen(build.id, "queued")
    return build


def claim_next_build(owner: str) -> Claim | None:
    return lifecycle.claim_next(BUILD, "start", owner, Build.objects.claimable, "configuration_id", "fingerprint")


def succeed(claim: Claim, *, lock: str = "", size_bytes: int | None = None) -> bool:
    """False when a cancel was accepted meanwhile, which is then obeyed, or when the claim is gone."""
    return _finish(claim, "succeed", lock=lock, size_bytes=size_bytes)


def fail(claim: Claim, failure_type: str, message: str) -> bool:
    return _finish(claim, "fail", message=message, failure_type=failure_type, error_message=message)


def stop(claim: Claim) -> bool:
    """The holder obeys an accepted cancel."""
    return lifecycle.finish(claim, "stop", guards={"cancel_requested_at__isnull": False})


def cancel(build: Build, *, actor: str, reason: str = "") -> str:
    """See work.lifecycle.cancel for the answer."""
    status = lifecycle.cancel(BUILD, build.pk, actor=actor, reason=reason)
    wakeups.ring(BUILD.kind)
    return status


def again(build_id: int, *, actor: str) -> bool:
    """Build again: False when the build has neither failed nor been cancelled."""
    clean: dict[str, Any] = {"failure_type": "", "error_message": "", "losses": 0, "queued_at": clock.now()}
    clean |= {"cancel_requested_at": None, "cancel_requested_by": ""}
    if not lifecycle.move(BUILD, build_id, "again", actor=actor, **clean):
        return False
    wakeups.ring(BUILD.kind)
    return True


def rescue(found: Found) -> str | None:
    """Cancelled if that was accepted; else queued, or failed when it took too long or cost too many workers."""
    if found.move("drop", guards={"cancel_requested_at__isnull": False}):
        return "drop"
    message = found.rule
    if found.rule != OVER_BUDGET:
        guards = {"cancel_requested_at__isnull": True, "losses__lt": LOSSES - found.losses}
        if found.move("release", message=message, guards=guards, losses=F("losses") + found.losses):
            wakeups.ring(BUILD.kind)
            return "release"
        message = f"{message}; {LOSSES} workers were lost over it"
    failure = {"failure_type": found.failure_type, "error_message": message}
    return found.move("give_up", message=message, guards={"cancel_requested_at__isnull": True}, **failure)


def _finish(claim: Claim, verb: str, **options: Any) -> bool:
    moved = lifecycle.finish(claim, verb, guards={"cancel_requested_at__isnull": True}, **options)
    if not moved and not claim.lost.is_set():
        stop(claim)
    wakeups.ring(BUILD.kind)
    return moved


def _find(configuration_id: int, wanted: str) -> Chosen | None:
    found = compiled.rows(_of_fingerprint, configuration_id, wanted)
    return Chosen(*found[0]) if found else None


def _of_fingerprint(configuration_id: int, wanted: str) -> "QuerySet[Build, tuple[int, str]]":
    return Build.objects.filter(configuration_id=configuration_id, fingerprint=wanted).values_list("pk", "status")


def _create(configuration_id: int, actor: str) -> Chosen:
    # Read and hashed once more, so that it is the stored package, and the whole of it, that the fingerprint names.
    snapshot = Configuration.objects.get(pk=configuration_id).snapshot()
    wanted = fingerprint.of_build(fingerprint.of_contents(snapshot))
    values = {"configuration_id": configuration_id, "fingerprint": wanted, "snapshot": snapshot}
    try:
        # A savepoint: the loser of this race goes on in its own transaction.
        with transaction.atomic():
            (id,) = lifecycle.create(BUILD, values, actor=actor)
    except IntegrityError:
        if build := _find(configuration_id, wanted):
            return build
        raise
    return Chosen(id, "queued")


def _is_forgotten(build_id: int) -> bool:
    limit = clock.now() - timedelta(seconds=NEGATIVE_CACHE_SECONDS)
    return Build.objects.filter(pk=build_id, finished_at__lt=limit).exists()
