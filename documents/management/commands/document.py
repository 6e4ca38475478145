from collections import Counter
from pathlib import Path
from typing import Any

from documents import field_commands, intake, reprocessing, search_commands, why
from documents.intake import AlreadyThere, Refused
from documents.models import Document, DocumentProcessingJob, Stage
from work.operations.commands import (
    AddVerb,
    Answer,
    Exit,
    Failure,
    NounCommand,
    Row,
    actor_of,
    add_actor,
    add_ids,
    add_limit,
    clean,
    events_about,
    fields,
    history,
    identifier,
    limit,
    not_found,
    of_each,
    table,
)
from work.operations.outcomes import Outcome, sentence
from work.operations.watching import in_words
from workspaces.commands import find_workspace
from workspaces.models import Workspace

COLUMNS = (
    "id",
    "workspace__name",
    "name",
    "status",
    "content_type",
    "size_bytes",
    "sha256",
    "pages",
    "created_at",
    "purged_at",
)
JOB_COLUMNS = (
    "id",
    "status",
    "priority",
    "attempts",
    "max_attempts",
    "next_attempt_at",
    "started_at",
    "finished_at",
    "error_log",
)
STAGE_COLUMNS = ("id", "job_id", "name", "segment", "status", "losses", "lease_owner", "error_message")
# The fields that `reprocessing.foreseen` reads.
SEEN = ("status", "purged_at")
EVENTS = 100
ADDED = "added"


class Command(NounCommand):
    help = "Documents and their processing."

    def add_verbs(self, add: AddVerb) -> None:
        adding = add("add", self.add, "Store local files as documents. Exit code 1: not all were added.")
        adding.add_argument("paths", metavar="PATH", type=Path, nargs="+")
        adding.add_argument("--workspace", metavar="WORKSPACE", required=True, help="name or id")
        adding.add_argument("--again", action="store_true", help="upload even if an identical file exists")
        add_actor(adding)
        listing = add("list", self.list_documents, "List documents, newest first.")
        listing.add_argument("--status", choices=Document.Status.values)
        listing.add_argument("--workspace", metavar="WORKSPACE", help="name or id")
        add_limit(listing)
        add_ids(add("show", self.show, "Show a document with its processing jobs, stages and events."))
        add_ids(add("why", self.why, "Explain why a document is not processed yet."))
        field_commands.add_verbs(add)
        search_commands.add_verbs(add)
        again = add("reprocess", self.reprocess, "Process documents again: the given ones, or all of a workspace.")
        again.add_argument("ids", metavar="ID", type=identifier, nargs="*")
        again.add_argument(
            "--workspace", metavar="WORKSPACE", help="all processed documents of this workspace (name or id)"
        )
        again.add_argument(
            "--status",
            choices=[Document.Status.PROCESSED, Document.Status.FAILED],
            help="only documents of the workspace with this status",
        )
        again.add_argument(
            "--model-other-than-current",
            action="store_true",
            help="only documents of the workspace without vectors of the current model",
        )
        again.add_argument("--limit", type=limit, help="at most this many documents of the workspace, oldest first")
        again.add_argument("--rehearse", action="store_true", help="only show what would be processed again")
        add_actor(again)

    def add(self, *, paths: list[Path], workspace: str, again: bool, actor: str | None, **_: Any) -> Answer:
        into = find_workspace(workspace)
        for path in paths:
            if not path.is_file():
                raise not_found("file", str(path), "name files that this user can read")
        rows = [self._add(into, path, actor_of(actor), again) for path in paths]
        is_done = all(row["result"] == ADDED for row in rows)
        shown = [table(rows, "id", "result", "path", "content_type", "size_bytes")]
        shown += [clean(f"{row['path']}: {row['message']}") for row in rows if row["message"]]
        return Answer({"documents": rows}, "\n".join(shown), Exit.DONE if is_done else Exit.REFUSED)

    def _add(self, workspace: Workspace, path: Path, actor: str, again: bool) -> dict[str, Any]:
        """Add a file and return its document, or the existing one with the same bytes, or the reason for a refusal."""
        try:
            id, result, message = intake.add_file(workspace, path, actor=actor, again=again).pk, ADDED, None
        except AlreadyThere as refused:
            id, result, message = refused.document.pk, refused.code, str(refused)
        except Refused as refused:
            id, result, message = None, refused.code, str(refused)
        except OSError as error:
            id, result, message = None, "not_readable", f"The file cannot be read: {error.strerror}."
        found = Document.objects.filter(pk=id).values(*COLUMNS).first() if id else dict.fromkeys(COLUMNS)
        return {"path": str(path), "result": result, "message": message} | _row(found or {})

    def list_documents(
        self, *, status: str | None, workspace: str | None, limit: int, before: int | None, **_: Any
    ) -> Answer:
        found = Document.objects.order_by("-id")
        found = found.filter(status=status) if status else found
        found = found.filter(workspace=find_workspace(workspace)) if workspace else found
        found = found.filter(pk__lt=before) if before else found
        rows = [_row(row) for row in found.values(*COLUMNS)[:limit]]
        return Answer({"documents": rows}, table(rows, "id", "status", "workspace", "name", "pages", "created_at"))

    def show(self, *, id: int, **_: Any) -> Answer:
        found = Document.objects.filter(pk=id).values(*COLUMNS).first()
        if found is None:
            raise not_found("document", id, "`manage.py document list` shows them")
        jobs = list(DocumentProcessingJob.objects.filter(document=id).order_by("-id").values(*JOB_COLUMNS))
        stages = list(Stage.objects.filter(job__document=id).order_by("-job", "id").values(*STAGE_COLUMNS))
        events = events_about("document", id, EVENTS)
        parts = [
            fields(_row(found)),
            table(jobs, "id", "status", "attempts", "next_attempt_at", "finished_at", "error_log"),
            table(stages, "job_id", "name", "segment", "status", "losses", "lease_owner", "error_message"),
            history(events),
        ]
        return Answer(_row(found) | {"jobs": jobs, "stages": stages, "events": events}, "\n\n".join(parts))

    def why(self, *, id: int, **_: Any) -> Answer:
        try:
            found = why.explain(Document(pk=id))
        except Document.DoesNotExist as error:
            raise not_found("document", id, "`manage.py document list` shows them") from error
        return Answer(found.to_json(), in_words(found))

    def reprocess(
        self, *, ids: list[int], workspace: str | None, rehearse: bool, actor: str | None, **options: Any
    ) -> Answer:
        if bool(ids) == bool(workspace):
            raise Failure("Give either ids or --workspace, not both.", Exit.USAGE, "usage")
        found = _chosen(workspace, **options) if workspace else Document.objects.only(*SEEN).in_bulk(ids)
        in_bulk = len(found) > 1

        def again(document: Document) -> tuple[Outcome, Row]:
            if rehearse:
                return reprocessing.foreseen(document), {}
            return reprocessing.again(document, actor=actor_of(actor), in_bulk=in_bulk), {}

        done = of_each("document", ids or found, found, again)
        outcomes = Counter(row["result"] for row in done.data["documents"])
        said = f"{'Preview, nothing was changed: ' if rehearse else ''}{sentence(Document, outcomes)}"
        # If a workspace was named instead of IDs, the totals are enough.
        text = said if workspace else f"{done.text}\n\n{said}"
        return Answer({"rehearsed": rehearse, **done.data}, text, done.exit)


def _chosen(
    workspace: str, *, status: str | None, model_other_than_current: bool, limit: int | None, **_: Any
) -> dict[int, Document]:
    of = find_workspace(workspace)
    found = reprocessing.chosen(of, status, is_of_another_model=model_other_than_current)
    return {document.pk: document for document in found.only(*SEEN)[:limit]}


def _row(found: Row) -> dict[str, Any]:
    return {name.removesuffix("__name"): value for name, value in found.items()}
