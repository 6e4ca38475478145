"""The run queue as a whole: its length, and whether it is paused.

During a pause no queued run is claimed, but running runs continue and submissions are accepted. The claim itself checks
for a pause: see `OF_THE_QUEUE` in `runs/models.py`.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count

from runs.lifecycle import RUN_STATES
from runs.models import Queue, Run
from work import clock, lifecycle, wakeups
from work.state_machine import StateMachine
from work.why import LiveWorkers
from workspaces.models import User, Workspace

QUEUE_STATES = StateMachine(
    kind="queue",
    model=Queue,
    initial="",
    created="QUEUE_OPENED",
    table={},
    events={
        "QUEUE_OPENED": "The queue was paused for the first time; its history starts.",
        "QUEUE_PAUSED": "A person paused it, and no queued run is claimed; the message is the reason.",
        "QUEUE_RESUMED": "A person resumed it.",
    },
)


@dataclass(frozen=True)
class Depth:
    queued: int
    running: int


@dataclass(frozen=True)
class State:
    # The depth over all workspaces, and of each of the user's workspaces by id.
    total: Depth
    own: dict[int, Depth]
    # None means no limit.
    limit: int | None
    # The number of live workers' threads for runs.
    slots: int
    # None if it has never been paused.
    row: Queue | None

    @property
    def free(self) -> int | None:
        return None if self.limit is None else max(0, self.limit - self.total.queued - self.total.running)


def state(user: User) -> State:
    queued, running = _by_workspace(Run.Status.QUEUED), _by_workspace(Run.Status.RUNNING)
    mine = Workspace.objects.for_user(user).filter(pk__in={*queued, *running}).order_by("pk")
    return State(
        total=Depth(queued.total(), running.total()),
        own={id: Depth(queued[id], running[id]) for id in mine.values_list("pk", flat=True)},
        limit=settings.ADE_QUEUE_SIZE,
        slots=LiveWorkers.now().slots(RUN_STATES.kind).total(),
        row=current_row(),
    )


def current_row() -> Queue | None:
    return Queue.objects.filter(pk=Queue.ONLY).first()


def pause(*, actor: str, reason: str = "") -> bool:
    """Pause the queue, so that no later claim takes a run. Return False if it is paused already."""
    actor = actor[: lifecycle.ACTOR_CHARACTERS]
    paused_at = clock.now()
    if current_row() is None:
        # Another process may be creating the row at the same time.
        with suppress(IntegrityError), transaction.atomic():
            lifecycle.create(QUEUE_STATES, {"id": Queue.ONLY}, actor=actor)
    return lifecycle.record(
        QUEUE_STATES,
        Queue.ONLY,
        "QUEUE_PAUSED",
        actor=actor,
        message=reason,
        guards={"paused_at__isnull": True},
        paused_at=paused_at,
        paused_by=actor,
        pause_reason=reason,
    )


def resume(*, actor: str) -> bool:
    """Resume the queue. Return False if it is not paused."""
    has_resumed = lifecycle.record(
        QUEUE_STATES,
        Queue.ONLY,
        "QUEUE_RESUMED",
        actor=actor,
        guards={"paused_at__isnull": False},
        paused_at=None,
        paused_by="",
        pause_reason="",
    )
    if has_resumed:
        wakeups.ring(RUN_STATES.kind)
    return has_resumed


def _by_workspace(status: str) -> "Counter[int]":
    # Use one status per query, so that a partial index applies.
    return Counter(dict(Run.objects.filter(status=status).order_by().values_list("workspace").annotate(n=Count("pk"))))
