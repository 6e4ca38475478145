from pathlib import Path
from typing import Any

from builds.commands import find_configuration
from documents.models import Document
from runs import lifecycle, why
from runs.artifacts import Damaged, copy_out
from runs.lifecycle import RUN_STATES, DocumentFailed, OtherWorkspace, Purged, QueueFull
from runs.models import Artifact, Run
from runs.operations import RUN_AGAIN
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
    identifier,
    not_found,
    of_each,
    table,
)
from work.operations.outcomes import Outcome, of_cancel
from work.operations.watching import WatchedCommand
from work.why import Explanation
from workspaces.commands import find_workspace

COLUMNS = (
    "id",
    "workspace__name",
    "configuration_id",
    "configuration__name",
    "input_document_id",
    "input_document__name",
    "build_id",
    "status",
    "failure_type",
    "error_message",
    "gate",
    "waits_for_processing",
    "created_at",
    "started_at",
    "finished_at",
    "lease_owner",
    "lease_expires_at",
    "cancel_requested_at",
    "cancel_requested_by",
    "pruned_at",
)
SHOWN = ("id", "outcome", "workspace", "configuration", "input_document", "created_at", "error_message")
FIELD_COLUMNS = ("position", "name", "value", "confidence", "page", "step", "box")
ARTIFACT_COLUMNS = ("name", "size_bytes", "sha256", "content_type")
EVENTS = 100


class Command(WatchedCommand):
    help = "Runs: one execution of the engine for one document with one build."
    states = RUN_STATES
    terminal = Run.TERMINAL

    def add_verbs(self, add: AddVerb) -> None:
        submit = add("submit", self.submit, "Queue one run for each document: all of them or none.")
        submit.add_argument("configuration", metavar="CONFIGURATION", help="id, WORKSPACE/NAME or name")
        submit.add_argument("documents", metavar="DOCUMENT", type=identifier, nargs="+", help="id")
        submit.add_argument(
            "--no-wait-for-processing",
            action="store_true",
            help="do not wait until the documents are processed (default: wait, and refuse documents that failed)",
        )
        add_actor(submit)
        listing = add("list", self.list_runs, "List runs, newest first.")
        listing.add_argument("--status", choices=Run.Status.values)
        listing.add_argument(
            "--outcome",
            choices=Run.OUTCOMES,
            help="like the status, but with timed_out instead of failed for runs that timed out",
        )
        listing.add_argument("--configuration", metavar="CONFIGURATION", help="id, WORKSPACE/NAME or name")
        listing.add_argument("--workspace", metavar="WORKSPACE", help="name or id")
        add_limit(listing)
        add_ids(add("show", self.show, "Show a run with its fields, artifacts and events."))
        files = add("artifacts", self.artifacts, "List the artifacts of a run; with --to, also copy them.")
        add_ids(files)
        files.add_argument(
            "--to",
            metavar="DIRECTORY",
            type=Path,
            help="copy them to this directory and verify checksums; existing files are not overwritten",
        )
        self.add_watching(add)
        cancel = add("cancel", self.cancel, "Cancel runs: queued ones at once, running ones are asked to stop.")
        again = add(
            "again", self.again, "Run again: queue a new run with the same configuration and document for each."
        )
        for verb in (cancel, again):
            add_ids(verb, many=True)
            add_actor(verb)

    def explain(self, id: int) -> Explanation:
        return why.explain(Run(pk=id))

    def submit(
        self,
        *,
        configuration: str,
        documents: list[int],
        no_wait_for_processing: bool,
        actor: str | None,
        **_: Any,
    ) -> Answer:
        match = find_configuration(configuration)
        by_id = Document.objects.defer("text").in_bulk(documents)
        if missing := [id for id in documents if id not in by_id]:
            raise not_found("document", missing[0], "`manage.py document list` shows them")
        try:
            chosen, waits = [by_id[id] for id in documents], not no_wait_for_processing
            ids = lifecycle.submit_many(match, chosen, actor=actor_of(actor), wait_for_processing=waits)
        except QueueFull as full:
            numbers = {"limit": full.limit, "live": full.live, "asked": full.asked}
            raise Failure(str(full), Exit.QUEUE_FULL, full.code, **numbers) from full
        except OtherWorkspace as error:
            raise Failure(str(error), Exit.REFUSED, "other_workspace", configuration=match.pk) from error
        except Purged as purged:
            raise Failure(str(purged), Exit.REFUSED, purged.code, document=purged.document.pk) from purged
        except DocumentFailed as failed:
            raise Failure(str(failed), Exit.REFUSED, failed.code, document=failed.document_id) from failed
        rows = [_row(values) for values in Run.objects.filter(pk__in=ids).order_by("id").values(*COLUMNS)]
        return Answer({"runs": rows}, table(rows, *SHOWN[:-1]))

    def list_runs(
        self,
        *,
        status: str | None,
        outcome: str | None,
        configuration: str | None,
        workspace: str | None,
        limit: int,
        before: int | None,
        **_: Any,
    ) -> Answer:
        runs = Run.objects.order_by("-id")
        runs = runs.filter(status=status) if status else runs
        runs = runs.with_outcome(outcome) if outcome else runs
        runs = runs.filter(configuration=find_configuration(configuration)) if configuration else runs
        runs = runs.filter(workspace=find_workspace(workspace)) if workspace else runs
        runs = runs.filter(pk__lt=before) if before else runs
        rows = [_row(values) for values in runs.values(*COLUMNS)[:limit]]
        return Answer({"runs": rows}, table(rows, *SHOWN))

    def show(self, *, id: int, **_: Any) -> Answer:
        values = Run.objects.filter(pk=id).values(*COLUMNS).first()
        if values is None:
            raise not_found("run", id, "`manage.py run list` shows them")
        row, events, run = _row(values), events_about("run", id, EVENTS), Run(pk=id)
        run_fields = list(run.fields.order_by("position").values(*FIELD_COLUMNS))
        artifacts = list(run.artifacts.order_by("name").values(*ARTIFACT_COLUMNS))
        parts = [
            fields(row),
            table(run_fields, *FIELD_COLUMNS[:-1]) if run_fields else "",
            table(artifacts, "name", "size_bytes", "content_type") if artifacts else "",
            history(events),
        ]
        data = row | {"fields": run_fields, "artifacts": artifacts, "events": events}
        return Answer(data, "\n\n".join(filter(None, parts)))

    def artifacts(self, *, id: int, to: Path | None, **_: Any) -> Answer:
        if not Run.objects.filter(pk=id).exists():
            raise not_found("run", id, "`manage.py run list` shows them")
        artifacts = Artifact.objects.filter(run=id).order_by("name")
        rows: list[dict[str, Any]] = list(artifacts.values(*ARTIFACT_COLUMNS))
        if to is not None:
            for row, artifact in zip(rows, artifacts, strict=True):
                details = {"artifact": artifact.name, "path": str(to)}
                try:
                    row["path"] = str(copy_out(artifact, to))
                except Damaged as error:
                    raise Failure(str(error), Exit.REFUSED, "not_written", **details) from error
                except OSError as error:
                    message = f"Could not copy {artifact.name} to {to}: {error.strerror}."
                    raise Failure(message, Exit.REFUSED, "not_written", **details) from error
        columns = ("name", "size_bytes", "content_type", *(["path"] if to else []))
        return Answer({"artifacts": rows}, table(rows, *columns))

    def cancel(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        def cancel(run: Run) -> tuple[Outcome, Row]:
            status = lifecycle.cancel(run, actor=actor_of(actor))
            return of_cancel(RUN_STATES, run.status, status), {"status": status}

        return of_each("run", ids, Run.objects.only("status", "input_document_id").in_bulk(ids), cancel, "status")

    def again(self, *, ids: list[int], actor: str | None, **_: Any) -> Answer:
        def again(run: Run) -> tuple[Outcome, Row]:
            outcome, new = RUN_AGAIN.apply_to(run, actor=actor_of(actor))
            return outcome, {"new_run": new.pk} if new else {}

        return of_each("run", ids, Run.objects.listed().in_bulk(ids), again, "new_run")


def _row(values: Row) -> dict[str, Any]:
    row = {name.removesuffix("__name"): value for name, value in values.items()}
    return {"id": row.pop("id"), "outcome": Run(status=row["status"], failure_type=row["failure_type"]).outcome, **row}
