from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandParser

from documents import retention
from documents.commands import find_workspace, row_of
from documents.models import Workspace
from documents.retention import Rehearsal
from work.commands import Answer, OperatorCommand, actor_of, add_actor, table

COLUMNS = ("workspace", "days", "documents", "size_bytes", "oldest", "kept")


class Command(OperatorCommand):
    help = "Purge now what documents hold that are older than their workspace keeps them; workers do so all the time."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--workspace", metavar="WORKSPACE", help="of this one only: name or id")
        parser.add_argument("--rehearse", action="store_true", help="only say what would go")
        add_actor(parser)

    def answer(self, **options: Any) -> Answer:
        rehearse, actor = options["rehearse"], actor_of(options["actor"])
        rows = [_rehearse(each) if rehearse else _purge(each, actor) for each in _named(options["workspace"])]
        documents, size_bytes = (sum(row[name] for row in rows) for name in ("documents", "size_bytes"))
        would = "would be" if rehearse else "are"
        parts = [table(rows, *COLUMNS)]
        if samples := [sample for row in rows for sample in row["sample"]]:
            parts.append(table(samples, "id", "name", "size_bytes", "created_at"))
        parts.append(f"The contents of {documents} documents {would} purged: {size_bytes:,} bytes.")
        return Answer({"rehearsed": rehearse, "workspaces": rows}, "\n\n".join(parts))


def _named(workspace: str | None) -> Iterable[Workspace]:
    return [find_workspace(workspace)] if workspace else Workspace.objects.order_by("id")


def _rehearse(workspace: Workspace) -> dict[str, Any]:
    return _row(workspace, retention.rehearse(workspace, workspace.document_retention_days))


def _purge(workspace: Workspace, actor: str) -> dict[str, Any]:
    gone = [there for there in retention.purge(workspace, actor=actor) if there is not None]
    left = retention.rehearse(workspace, workspace.document_retention_days)
    done = {"documents": len(gone), "size_bytes": sum(there["size_bytes"] for there in gone)}
    # Also what somebody was at just now.
    return _row(workspace, left) | done | {"kept": left.kept + left.documents, "sample": []}


def _row(workspace: Workspace, found: Rehearsal) -> dict[str, Any]:
    return row_of(workspace, workspace.document_retention_days, found)
