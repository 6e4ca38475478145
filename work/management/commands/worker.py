import argparse
import sys
from typing import Any

from django.conf import settings
from django.core.checks import Tags
from django.core.management.base import CommandParser
from django.db.backends.base.base import BaseDatabaseWrapper

from work import clock, draining, failpoints, schema
from work.models import Worker
from work.operations.commands import (
    AddVerb,
    Answer,
    Exit,
    Failure,
    NounCommand,
    actor_of,
    add_actor,
    add_limit,
    clean,
    identifier,
    not_found,
    table,
)
from work.operations.outcomes import DONE
from work.processes import hardening
from work.work_types import all_work_types
from work.worker import Worker as Process

DRAIN = ("drain_requested_at", "drain_requested_by", "drain_reason")
COLUMNS = (
    *("name", "host", "pid", "version", "lanes", "weaknesses"),
    *("started_at", "heartbeat_at", "stopped_at", "doing"),
)
SHOWN = ("id", "state", *DRAIN[:2], "owner", "version", "started_at", "heartbeat_at", "doing")


class Command(NounCommand):
    help = (
        "Claim and do work until stopped. SIGTERM: finish the current work, then exit; a second SIGTERM: give it back"
        " at once. With a verb: list or drain workers."
    )
    # All checks except the URL checks, which load the API that a worker does not need.
    requires_system_checks = tuple(tag for name, tag in vars(Tags).items() if name.islower() and tag != Tags.urls)
    verb_is_required = False

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--name",
            default=settings.WORKER_NAME,
            help="a worker recovers the work of its name's earlier boots at once (default: WORKER_NAME)",
        )
        parser.add_argument(
            "--slots",
            action="append",
            type=_slot,
            default=[],
            metavar="KIND=NUMBER",
            help="threads for a kind of work (default: the setting)",
        )

    def add_verbs(self, add: AddVerb) -> None:
        listing = add("list", self.list_workers, "List workers, newest first.")
        listing.add_argument("--alive", action="store_true", help="only workers with a recent heartbeat")
        add_limit(listing)
        drain = add("drain", self.drain, "Ask a worker to claim nothing more, finish its work, and stop.")
        which = "id of one boot, or name of a worker with one live boot"
        drain.add_argument("worker", metavar="ID|NAME", type=_id_or_name, help=which)
        drain.add_argument("--reason", default="", help="reason, recorded in the history")
        add_actor(drain)

    def list_workers(self, *, alive: bool, limit: int, before: int | None, **_: Any) -> Answer:
        clock.keep_measured()
        workers = Worker.objects.alive() if alive else Worker.objects.all()
        workers = workers.filter(pk__lt=before) if before else workers
        rows = [_row(worker) for worker in workers.order_by("-id")[:limit]]
        return Answer({"workers": rows}, table(rows, *SHOWN))

    def drain(self, *, worker: int | str, reason: str, actor: str | None, **_: Any) -> Answer:
        """Drain the boot with this id. For a name, drain its live boot, or try its latest boot if none is alive."""
        boots = Worker.objects.filter(**{"pk" if isinstance(worker, int) else "name": worker}).order_by("-pk")
        alive = list(boots.alive())
        if len(alive) > 1:
            ids = [boot.pk for boot in alive]
            message = f"{len(ids)} live workers are named {worker!r}. Choose one by id: {', '.join(map(str, ids))}."
            raise Failure(message, Exit.USAGE, "ambiguous", ids=ids)
        boot = alive[0] if alive else boots.first()
        if boot is None:
            raise not_found("worker", worker, "`manage.py worker list` shows them")
        outcome = draining.drain(boot, actor=actor_of(actor), reason=reason)
        answer = {"result": outcome, **_row(boot)}
        return Answer(
            answer, clean(draining.describe_outcome(boot, outcome)), Exit.DONE if outcome in DONE else Exit.REFUSED
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["verb"]:
            super().handle(*args, **options)
            return
        hardening.require_sandbox()
        schema.await_schema()
        failpoints.arm_from_settings()
        # With DEBUG on, Django keeps thousands of statements and their data in memory, and a worker runs for weeks.
        BaseDatabaseWrapper.queries_logged = False  # type: ignore[assignment, method-assign]  # a property
        sys.exit(Process(options["name"], dict(options["slots"])).run())


def _row(worker: Worker) -> dict[str, Any]:
    columns = {name: getattr(worker, name) for name in COLUMNS}
    request = {name: getattr(worker, name) or None for name in DRAIN}
    return {"id": worker.pk, "state": worker.state, "owner": worker.owner, **columns, **request}


def _id_or_name(text: str) -> int | str:
    return identifier(text) if text.isascii() and text.isdecimal() else text


def _slot(text: str) -> tuple[str, int]:
    lanes = sorted(kind.name for kind in all_work_types() if kind.handler)
    if not lanes:
        raise argparse.ArgumentTypeError(f"cannot be {text!r}: no kind of work has threads")
    kind, _, number = text.partition("=")
    if kind not in lanes or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"must be KIND=NUMBER, with a kind of {', '.join(lanes)}, not {text!r}")
    return kind, int(number)
