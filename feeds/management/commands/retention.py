from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.core.management.base import CommandParser

from documents import retention
from documents.commands import row_of
from documents.retention import Rehearsal
from feeds.retention.cleanup import all_policies
from work.operations.commands import Answer, OperatorCommand, Row, actor_of, add_actor, table
from work.pruning import Due, Policy
from workspaces.commands import find_workspace
from workspaces.models import Workspace

COLUMNS = ("workspace", "days", "documents", "size_bytes", "oldest", "kept")
KEPT_COLUMNS = ("name", "keeps", "rows", "oldest", "kept")


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
        # With --workspace, policies that belong to no workspace are skipped.
        policies = () if options["workspace"] else all_policies()
        rows = [_rehearse(each) if rehearse else _purge(each, actor) for each in _named(options["workspace"])]
        kept = [_rehearse_policy(each) if rehearse else _follow(each, actor) for each in policies]
        told = {"rehearsed": rehearse, "workspaces": rows, "policies": kept}
        return Answer(told, "\n\n".join([*_of_documents(rows, rehearse=rehearse), *_of_policies(kept)]))


def _named(workspace: str | None) -> Iterable[Workspace]:
    return [find_workspace(workspace)] if workspace else Workspace.objects.order_by("id")


def _rehearse(workspace: Workspace) -> dict[str, Any]:
    return _row(workspace, retention.rehearse(workspace, workspace.document_retention_days))


def _purge(workspace: Workspace, actor: str) -> dict[str, Any]:
    gone = [there for there in retention.purge(workspace, actor=actor) if there is not None]
    left = retention.rehearse(workspace, workspace.document_retention_days)
    done = {"documents": len(gone), "size_bytes": sum(there["size_bytes"] for there in gone)}
    # `kept` includes documents that were in use just now.
    return _row(workspace, left) | done | {"kept": left.kept + left.documents, "sample": []}


def _row(workspace: Workspace, found: Rehearsal) -> dict[str, Any]:
    return row_of(workspace, workspace.document_retention_days, found)


def _rehearse_policy(policy: Policy) -> dict[str, Any]:
    return _row_of(policy, policy.due(), {})


def _follow(policy: Policy, actor: str) -> dict[str, Any]:
    before, gone = policy.due(), Counter[str]()
    for batch in policy.purge(actor):
        gone.update(batch.gone)
    left = policy.due()
    # `kept` includes rows that were in use just now.
    return _row_of(policy, Due(max(0, before.rows - left.rows), left.oldest, left.kept + left.rows), gone)


def _row_of(policy: Policy, found: Due, gone: Mapping[str, int]) -> dict[str, Any]:
    row = {"name": policy.name, "keeps": policy.keeps(), "rows": found.rows, "oldest": found.oldest}
    return row | {"kept": found.kept, "gone": dict(gone)}


def _of_documents(rows: list[dict[str, Any]], *, rehearse: bool) -> Iterable[str]:
    yield table(rows, *COLUMNS)
    if samples := [sample for row in rows for sample in row["sample"]]:
        yield table(samples, "id", "name", "size_bytes", "created_at")
    documents, size_bytes = (sum(row[name] for row in rows) for name in ("documents", "size_bytes"))
    done = "Preview: would purge" if rehearse else "Purged"
    yield f"{done} the contents of {documents} documents: {size_bytes:,} bytes."


def _of_policies(kept: Sequence[Row]) -> Iterable[str]:
    if kept:
        yield table(kept, *KEPT_COLUMNS)
