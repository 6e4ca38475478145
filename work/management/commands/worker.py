import argparse
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

from work import clock, failpoints
from work.commands import AddVerb, Answer, NounCommand, add_limit, table
from work.kinds import all_kinds
from work.models import Worker
from work.worker import Worker as Process


class Command(NounCommand):
    help = (
        "Claim and do work until told to stop. SIGTERM: finish what is under way; a second one: give it back at once."
        " With a verb: look at the workers there are."
    )
    requires_system_checks = "__all__"
    verb_is_required = False

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--name", default=settings.WORKER_NAME, help="what earlier boots of it left, it recovers at once"
        )
        parser.add_argument(
            "--slots",
            action="append",
            type=_slot,
            default=[],
            metavar="KIND=NUMBER",
            help="instead of the setting's number",
        )

    def add_verbs(self, add: AddVerb) -> None:
        listing = add("list", self.list_workers, "List workers, the latest first.")
        listing.add_argument("--alive", action="store_true", help="only those that have been heard from lately")
        add_limit(listing)

    def list_workers(self, *, alive: bool, limit: int, before: int | None, **_: Any) -> Answer:
        clock.keep_measured()
        found = Worker.objects.alive() if alive else Worker.objects.all()
        found = found.filter(pk__lt=before) if before else found
        rows = [_row(worker) for worker in found.order_by("-id")[:limit]]
        shown = ("id", "state", "owner", "version", "started_at", "heartbeat_at", "doing")
        return Answer({"workers": rows}, table(rows, *shown))

    def handle(self, *args: Any, **options: Any) -> None:
        if options["verb"]:
            super().handle(*args, **options)
            return
        _refuse_unapplied_migrations()
        failpoints.arm_from_settings()
        # With DEBUG Django keeps the last thousands of statements, and all that they carry: a worker lives for weeks.
        BaseDatabaseWrapper.queries_logged = False  # type: ignore[assignment, method-assign]  # a property
        sys.exit(Process(options["name"], dict(options["slots"])).run())


def _row(worker: Worker) -> dict[str, Any]:
    columns = ("name", "host", "pid", "version", "lanes", "started_at", "heartbeat_at", "stopped_at", "doing")
    row = {name: getattr(worker, name) for name in columns}
    return {"id": worker.pk, "state": worker.state, "owner": worker.owner, **row}


def _slot(text: str) -> tuple[str, int]:
    lanes = sorted(kind.name for kind in all_kinds() if kind.lane)
    if not lanes:
        raise argparse.ArgumentTypeError(f"found {text!r}, but no kind of work has slots yet")
    kind, _, number = text.partition("=")
    if kind not in lanes or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"expected KIND=NUMBER with a kind of {', '.join(lanes)}, found {text!r}")
    return kind, int(number)


def _refuse_unapplied_migrations() -> None:
    executor = MigrationExecutor(connections["default"])
    if plan := executor.migration_plan(executor.loader.graph.leaf_nodes()):
        first = plan[0][0]
        raise CommandError(
            f"{len(plan)} migrations are not applied, {first} the first; run manage.py migrate, then start again"
        )
