import argparse
import re
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from builds import environments, lifecycle, operations, why
from builds.commands import find_configuration
from builds.environments import StoredEnvironment
from builds.lifecycle import BUILD_STATES
from builds.models import Build
from work.operations.commands import (
    AddVerb,
    Answer,
    Exit,
    Failure,
    Row,
    actor_of,
    add_actor,
    add_ids,
    add_limit,
    events_about,
    fields,
    history,
    not_found,
    of_each,
    table,
)
from work.operations.outcomes import Outcome, of_cancel
from work.operations.watching import WatchedCommand
from work.why import Explanation
from workspaces.commands import find_workspace

COLUMNS = (
    *("id", "configuration__workspace__name", "configuration_id", "configuration__name", "fingerprint", "status"),
    *("failure_type", "error_message", "losses", "size_bytes", "created_at", "started_at", "finished_at"),
    *("lease_owner", "lease_expires_at", "cancel_requested_at", "cancel_requested_by"),
)
EVENTS = 100
DAY_SECONDS = 24 * 3600


class Command(WatchedCommand):
    help = "Builds: the prepared environments of configurations."
    states = BUILD_STATES
    terminal = Build.TERMINAL

    def add_verbs(self, add: AddVerb) -> None:
        listing = add("list", self.list_builds, "List builds, newest first.")
        listing.add_argument("--status", choices=Build.Status.values)
        listing.add_argument("--configuration", metavar="CONFIGURATION", help="id, WORKSPACE/NAME or name")
        listing.add_argument("--workspace", metavar="WORKSPACE", help="name or id")
        add_limit(listing)
        add_ids(add("show", self.show, "Show a build and its events."))
        self.add_watching(add)
        again = add("again", self.again, "Build again: queue failed or cancelled builds.")
        cancel = add("cancel", self.cancel, "Cancel builds: queued ones at once, running ones are asked to stop.")
        for verb in (again, cancel):
            add_ids(verb, many=True)
            add_actor(verb)
        pruning = add("prune", self.prune, "Remove environments of this machine that no run has used for a while.")
        pruning.add_argument(
            "--unused-days",
            metavar="N",
            type=number,
            help="remove those unused for this many days (default: the setting)",
        )
        pruning.add_argument(
            "--most-bytes",
            metavar="N",
            type=number,
            help="also remove the least recently used until the total is below this size (default: the setting)",
        )
        pruning.add_argument("--rehearse", action="store_true", help="preview: list what would be removed")

    def explain(self, id: int) -> Explanation:
        return why.explain(Build(pk=id))

    def list_builds(
        self,
        *,
        status: str | None,
        configuration: str | None,
        workspace: str | None,
        limit: int,
        before: int | None,
        **_: Any,
    ) -> Answer:
        builds = Build.objects.order_by("-id")
        builds = builds.filter(status=status) if status else builds
        builds = builds.filter(configuration=find_configuration(configuration)) if configuration else builds
        builds = builds.filter(configuration__workspace=find_workspace(workspace)) if workspace else builds
        builds = builds.filter(pk__lt=before) if before else builds
        rows = [_row(values) for values in builds.values(*COLUMNS)[:limit]]
        shown = ("id", "status", "workspace", "configuration", "fingerprint", "created_at", "error_message")
        return Answer({"builds": rows}, table([row | {"fingerprint": row["fingerprint"][:12]} for row in rows], *shown))

    def show(self, *, id: int, **_: Any) -> Answer:
        values = Build.objects.filter(pk=id).values(*COLUMNS).first()
        if values is None:
            raise not_found("build", id, "`manage.py build list` shows them")
        row, events = _row(values), events_about("build", id, EVENTS)
        return Answer(row | {"events": events}, f"{fields(row)}\n\n{history(events)}")

    def again(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        def again(build: Build) -> tuple[Outcome, Row]:
            return operations.build_again(build, actor=actor_of(actor)), {}

        return of_each("build", ids, _builds(ids), again)

    def cancel(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        def cancel(build: Build) -> tuple[Outcome, Row]:
            status = lifecycle.cancel(build, actor=actor_of(actor))
            return of_cancel(BUILD_STATES, build.status, status), {"status": status}

        return of_each("build", ids, _builds(ids), cancel, "status")

    def prune(self, *, unused_days: int | None, most_bytes: int | None, rehearse: bool, **_: Any) -> Answer:
        unused_seconds = settings.ADE_ENVIRONMENT_UNUSED_SECONDS if unused_days is None else unused_days * DAY_SECONDS
        most_bytes = settings.ADE_ENVIRONMENTS_BYTES if most_bytes is None else most_bytes
        try:
            pruned = environments.prune(unused_seconds=unused_seconds, most_bytes=most_bytes, rehearse=rehearse)
        except OSError as error:
            message = f"Could not remove unused environments: {error}. Run this command as the user of the workers."
            raise Failure(message, Exit.REFUSED, "not_removed") from error
        removed, in_use = _rows_of(pruned.removed), _rows_of(pruned.in_use)
        freed = sum(each.size_bytes for each in pruned.removed)
        # A preview removes nothing, but reports the size that would be left.
        left = sum(each.size_bytes for each in environments.all_environments()) - (freed if rehearse else 0)
        data = {"rehearsed": rehearse, "removed": removed, "in_use": in_use, "freed_bytes": freed, "left_bytes": left}
        rows = [row | {"result": "would be removed" if rehearse else "removed"} for row in removed]
        rows += [row | {"result": "kept: in use"} for row in in_use]
        shown = ("fingerprint", "configurations", "size_bytes", "used_at", "result")
        text = table([row | {"fingerprint": row["fingerprint"][:12]} for row in rows], *shown)
        verb = "would be freed" if rehearse else "freed"
        return Answer(data, f"{text}\n\n{freed / 2**20:.1f} MB {verb}, {left / 2**20:.1f} MB kept.")


def number(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,15}", text) is None:
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}")
    return int(text)


def _rows_of(stored: list[StoredEnvironment]) -> list[dict[str, Any]]:
    builds = Build.objects.filter(fingerprint__in={each.fingerprint for each in stored})
    rows = builds.values_list("fingerprint", "configuration__workspace__name", "configuration__name")
    names: dict[str, list[str]] = {}
    for fingerprint, workspace, name in rows.order_by("id"):
        names.setdefault(fingerprint, []).append(f"{workspace}/{name}")
    return [
        {
            "fingerprint": each.fingerprint,
            "configurations": names.get(each.fingerprint, []),
            "size_bytes": each.size_bytes,
            "used_at": datetime.fromtimestamp(each.used_at, UTC),
        }
        for each in stored
    ]


def _builds(ids: list[int]) -> dict[int, Build]:
    return Build.objects.only("status").in_bulk(ids)


def _row(values: Row) -> dict[str, Any]:
    return {name.removesuffix("__name").removeprefix("configuration__"): value for name, value in values.items()}
