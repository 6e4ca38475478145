from collections import Counter
from pathlib import Path
from typing import Any

from documents import field_commands, intake, reprocessing, search_commands, table_commands, type_commands, why
from documents.intake import DuplicateFile, Refused
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

COLUMNS = (
    "id",
    "workspace__name",
    "name",
    "status",
    "content_type",
    "size_bytes",
    "sha256",
    "pages",
    "type",
    "type_confidence",
    "type_reason",
    "type_chosen_by",
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
# The fields that `reprocessing.preview` reads.
PREVIEW_FIELDS = ("status", "purged_at")
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
        table_commands.add_verbs(add)
        search_commands.add_verbs(add)
        type_commands.add_verbs(add)
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
        rows = []
        for path in paths:
            id, result, message = None, ADDED, None
            try:
                id = intake.add_file(into, path, actor=actor_of(actor), again=again).pk
            except DuplicateFile as refused:
                # Show the existing document with the same bytes.
                id, result, message = refused.document.pk, refused.code, str(refused)
            except Refused as refused:
                result, message = refused.code, str(refused)
            except OSError as error:
                result, message = "not_readable", f"The file cannot be read: {error.strerror}."
            document = Document.objects.filter(pk=id).values(*COLUMNS).first() if id else dict.fromkeys(COLUMNS)
            rows.append({"path": str(path), "result": result, "message": message, **_row(document or {})})
        is_done = all(row["result"] == ADDED for row in rows)
        shown = [table(rows, "id", "result", "path", "content_type", "size_bytes")]
        shown += [clean(f"{row['path']}: {row['message']}") for row in rows if row["message"]]
        return Answer({"documents": rows}, "\n".join(shown), Exit.DONE if is_done else Exit.REFUSED)

    def list_documents(
        self, *, status: str | None, workspace: str | None, limit: int, before: int | None, **_: Any
    ) -> Answer:
        documents = Document.objects.order_by("-id")
        documents = documents.filter(status=status) if status else documents
        documents = documents.filter(workspace=find_workspace(workspace)) if workspace else documents
        documents = documents.filter(pk__lt=before) if before else documents
        rows = [_row(row) for row in documents.values(*COLUMNS)[:limit]]
        return Answer(
            {"documents": rows}, table(rows, "id", "status", "workspace", "name", "type", "pages", "created_at")
        )

    def show(self, *, id: int, **_: Any) -> Answer:
        document = Document.objects.filter(pk=id).values(*COLUMNS).first()
        if document is None:
            raise not_found("document", id, "`manage.py document list` shows them")
        jobs = list(DocumentProcessingJob.objects.filter(document=id).order_by("-id").values(*JOB_COLUMNS))
        stages = list(Stage.objects.filter(job__document=id).order_by("-job", "id").values(*STAGE_COLUMNS))
        events = events_about("document", id, EVENTS)
        parts = [
            fields(_row(document)),
            table(jobs, "id", "status", "attempts", "next_attempt_at", "finished_at", "error_log"),
            table(stages, "job_id", "name", "segment", "status", "losses", "lease_owner", "error_message"),
            history(events),
        ]
        return Answer(_row(document) | {"jobs": jobs, "stages": stages, "events": events}, "\n\n".join(parts))

    def why(self, *, id: int, **_: Any) -> Answer:
        try:
            explanation = why.explain(Document(pk=id))
        except Document.DoesNotExist as error:
            raise not_found("document", id, "`manage.py document list` shows them") from error
        return Answer(explanation.to_json(), in_words(explanation))

    def reprocess(
        self,
        *,
        ids: list[int],
        workspace: str | None,
        status: str | None,
        model_other_than_current: bool,
        limit: int | None,
        rehearse: bool,
        actor: str | None,
        **_: Any,
    ) -> Answer:
        if bool(ids) == bool(workspace):
            raise Failure("Give either ids or --workspace, not both.", Exit.USAGE, "usage")
        if workspace:
            into = find_workspace(workspace)
            chosen = reprocessing.select(into, status, is_of_another_model=model_other_than_current)
            documents = {document.pk: document for document in chosen.only(*PREVIEW_FIELDS)[:limit]}
        else:
            documents = Document.objects.only(*PREVIEW_FIELDS).in_bulk(ids)
        in_bulk = len(documents) > 1

        def again(document: Document) -> tuple[Outcome, Row]:
            if rehearse:
                return reprocessing.preview(document), {}
            return reprocessing.reprocess(document, actor=actor_of(actor), in_bulk=in_bulk), {}

        result = of_each("document", ids or documents, documents, again)
        outcomes = Counter(row["result"] for row in result.data["documents"])
        summary = f"{'Preview, nothing was changed: ' if rehearse else ''}{sentence(Document, outcomes)}"
        # For a whole workspace, print only the totals.
        text = summary if workspace else f"{result.text}\n\n{summary}"
        return Answer({"rehearsed": rehearse, **result.data}, text, result.exit)


def _row(values: Row) -> dict[str, Any]:
    return {name.removesuffix("__name"): value for name, value in values.items()}
