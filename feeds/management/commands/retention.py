from collections import Counter
from typing import Any

from django.core.management.base import CommandParser

from documents import retention
from documents.commands import preview_row
from feeds.retention.cleanup import all_policies
from work.operations.commands import Answer, OperatorCommand, actor_of, add_actor, table
from work.pruning import Due, Policy
from workspaces.commands import find_workspace
from workspaces.models import Workspace

COLUMNS = ("workspace", "days", "documents", "size_bytes", "oldest", "kept")
POLICY_COLUMNS = ("name", "keeps", "rows", "oldest", "kept")


class Command(OperatorCommand):
    help = "Delete expired data now: articles, contents of documents, histories of runs, and so on."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--workspace", metavar="WORKSPACE", help="only the documents of this workspace (name or ID)"
        )
        parser.add_argument("--rehearse", action="store_true", help="only show what would be deleted")
        add_actor(parser)

    def answer(self, **options: Any) -> Answer:
        rehearse, actor = options["rehearse"], actor_of(options["actor"])
        name = options["workspace"]
        workspaces = [find_workspace(name)] if name else Workspace.objects.order_by("id")
        # With --workspace, policies that belong to no workspace are skipped.
        policies = () if name else all_policies()
        rows = [_documents_row(each, rehearse=rehearse, actor=actor) for each in workspaces]
        policy_rows = [_policy_row(each, rehearse=rehearse, actor=actor) for each in policies]
        documents, size_bytes = (sum(row[column] for row in rows) for column in ("documents", "size_bytes"))
        parts = [table(rows, *COLUMNS)]
        if samples := [sample for row in rows for sample in row["sample"]]:
            parts.append(table(samples, "id", "name", "size_bytes", "created_at"))
        verb = "Preview: would purge" if rehearse else "Purged"
        parts.append(f"{verb} the contents of {documents} documents: {size_bytes:,} bytes.")
        if policy_rows:
            parts.append(table(policy_rows, *POLICY_COLUMNS))
        return Answer({"rehearsed": rehearse, "workspaces": rows, "policies": policy_rows}, "\n\n".join(parts))


def _documents_row(workspace: Workspace, *, rehearse: bool, actor: str) -> dict[str, Any]:
    days = workspace.document_retention_days
    if rehearse:
        return preview_row(workspace, days, retention.preview(workspace, days))
    purged = [document for document in retention.purge(workspace, actor=actor) if document is not None]
    left = retention.preview(workspace, days)
    size_bytes = sum(document["size_bytes"] for document in purged)
    # `kept` includes documents that were in use just now.
    done = {"documents": len(purged), "size_bytes": size_bytes, "kept": left.kept + left.documents, "sample": []}
    return preview_row(workspace, days, left) | done


def _policy_row(policy: Policy, *, rehearse: bool, actor: str) -> dict[str, Any]:
    due, gone = policy.due(), Counter[str]()
    if not rehearse:
        before = due
        for batch in policy.purge(actor):
            gone.update(batch.gone)
        left = policy.due()
        # `kept` includes rows that were in use just now.
        due = Due(max(0, before.rows - left.rows), left.oldest, left.kept + left.rows)
    row = {"name": policy.name, "keeps": policy.keeps(), "rows": due.rows, "oldest": due.oldest}
    return row | {"kept": due.kept, "gone": dict(gone)}
