"""Registers each boot of a worker, so that recovery can distinguish claims of a dead boot from a live worker's claims.

A boot is identified by the worker's name, its host, its process and a random id.
"""

import socket
from collections.abc import Mapping

import structlog
from django.conf import settings
from django.db import Error, transaction
from django.db.models import QuerySet

from work import clock, lifecycle, pruning, recovery
from work.changes import WARNING
from work.models import Event, Worker
from work.processes import hardening
from work.processes.identity import ProcessId
from work.sql import guards
from work.state_machine import StateMachine
from work.work_types import WorkType, all_work_types

WORKER_STATES = StateMachine(
    kind="worker",
    model=Worker,
    initial="",
    created="WORKER_STARTED",
    table={},
    events={
        "WORKER_STARTED": "A worker process registered.",
        "WORKER_DRAIN_REQUESTED": (
            "A person asked it to drain: it takes no new work, finishes what it has and stops; the message is the"
            " reason."
        ),
        "WORKER_STOPPED": "It stopped, after finishing or giving back its work.",
        "SCHEDULER_CONTENTION": "A claim met another one or a busy database, and is tried again at the next tick.",
    },
)
CONTENTION = "SCHEDULER_CONTENTION"

log = structlog.get_logger(__name__)


def register(name: str, boot_id: str, lanes: dict[str, int]) -> Worker:
    clock.measure()
    me = ProcessId.current()
    now = clock.now()
    values = {
        "name": name,
        "host": socket.gethostname(),
        "machine": me.machine,
        "pid": me.pid,
        "pid_started": me.start_ticks,
        "boot_id": boot_id,
        "version": settings.ADE_VERSION,
        "lanes": lanes,
        "weaknesses": hardening.weaknesses(),
        "started_at": now,
        "heartbeat_at": now,
    }
    row: Worker = lifecycle.create_one(WORKER_STATES, values, actor=name)
    return row


def recover_earlier(row: Worker, kinds: list[WorkType]) -> int:
    """Recover at once the rows held by dead boots of this name on this host, and then all rows with expired leases.

    Claims of other boots are left until their leases expire: an equal name proves nothing, because two live workers may
    share it.
    """
    earlier = Worker.objects.filter(name=row.name, host=row.host, stopped_at__isnull=True).exclude(pk=row.pk)
    dead = []
    for boot in earlier:
        if ProcessId(boot.host, boot.machine, boot.pid, boot.pid_started).alive() is False:
            dead.append(boot)
    owners = [boot.owner for boot in dead]
    moved = recovery.rescue_owned_by(kinds, owners, recovery.EARLIER_BOOT, row.owner)
    moved += recovery.rescue_expired(kinds, row.owner)
    Worker.objects.filter(pk__in=[boot.pk for boot in dead]).update(stopped_at=clock.now())
    log.info("worker.recovered", owner=row.owner, dead_boots=owners, moved=moved)
    return moved


def record_contention(row: Worker, message: str) -> None:
    lifecycle.record(WORKER_STATES, row.pk, CONTENTION, actor=row.owner, message=message, level=WARNING)


def sign_off(row: Worker) -> None:
    try:
        lifecycle.record(WORKER_STATES, row.pk, "WORKER_STOPPED", actor=row.owner, stopped_at=clock.now(), doing=[])
    except Error as error:
        # Nothing is lost: later boots find out by its pid that this boot has ended.
        log.warning("worker.cannot_sign_off", error=str(error).strip())


def forget(old: "QuerySet[Worker]") -> Mapping[str, int]:
    """Delete long-gone workers and their events in one transaction. Return table -> number of deleted rows.

    The query that locks the rows checks their age again, because a worker that has resumed has updated its row.
    """
    with transaction.atomic():
        rows = list(pruning.lock(old))
        owners = [row.owner for row in rows]
        # Keep workers that still hold claims: recovery will read their last heartbeat.
        holders: set[str] = set()
        for kind in all_work_types():
            if kind.states.claimed:
                held = kind.states.rows.filter(lease_owner__in=owners)
                holders |= set(held.values_list("lease_owner", flat=True))
        ids = [row.pk for row in rows if row.owner not in holders]
        with guards.retention():
            events, _ = Event.objects.filter(subject_kind=WORKER_STATES.kind, subject_id__in=ids).delete()
        return {"workers": pruning.delete(Worker, ids), "events": events}
