import argparse
import re
from datetime import datetime
from typing import Any

from api.models import AuditEntry
from work.operations.commands import AddVerb, Answer, NounCommand, add_limit, moment, table
from workspaces.commands import find_workspace

COLUMNS = ("id", "at", "actor", "address", "operation", "subject", "workspace", "answered")


class Command(NounCommand):
    help = "Show the audit log: requested changes, and how they were answered."

    def add_verbs(self, add: AddVerb) -> None:
        listing = add("list", self.list_entries, "List entries, newest first.")
        listing.add_argument("--actor", metavar="NAME", help="actor, as shown in the entries")
        listing.add_argument("--workspace", metavar="WORKSPACE", help="only this workspace (name or ID)")
        listing.add_argument(
            "--operation", metavar="NAME", help="operation, for example runs.submit_run or sign_in_failed"
        )
        listing.add_argument(
            "--about", metavar="KIND/ID", type=subject, help="kind and ID of the subject, for example run/17"
        )
        listing.add_argument("--request", metavar="ID", help="request ID, as in responses and logs")
        listing.add_argument("--address", metavar="ADDRESS", help="address of the client")
        listing.add_argument("--refused", action="store_true", help="only refused requests (status 400 or higher)")
        listing.add_argument("--since", metavar="TIME", type=moment, help="only entries from this time on")
        listing.add_argument("--until", metavar="TIME", type=moment, help="only entries before this time")
        add_limit(listing)

    def list_entries(
        self,
        *,
        actor: str | None,
        workspace: str | None,
        operation: str | None,
        about: tuple[str, int] | None,
        request: str | None,
        address: str | None,
        refused: bool,
        since: datetime | None,
        until: datetime | None,
        limit: int,
        before: int | None,
        **_: Any,
    ) -> Answer:
        filters = {
            "actor": actor,
            "workspace": find_workspace(workspace).pk if workspace else None,
            "operation": operation,
            "subject_kind": about and about[0],
            "subject_id": about and about[1],
            "request_id": request,
            "address": address,
            "answered__gte": 400 if refused else None,
            "at__gte": since,
            "at__lt": until,
            "pk__lt": before,
        }
        rows = AuditEntry.objects.filter(**{name: value for name, value in filters.items() if value is not None})
        names = (
            *("id", "at", "actor", "token_id", "address", "request_id", "method", "path", "operation"),
            *("subject_kind", "subject_id", "answered"),
        )
        entries = [
            {name: getattr(entry, name) for name in names}
            | {"workspace": entry.workspace.name if entry.workspace else None}
            for entry in rows.listed().order_by("-id")[:limit]
        ]
        lines = [row | {"subject": f"{row['subject_kind']} {row['subject_id'] or ''}".strip()} for row in entries]
        return Answer({"entries": entries}, table(lines, *COLUMNS))


def subject(text: str) -> tuple[str, int]:
    match = re.fullmatch(r"([a-z_]{1,40})/([0-9]{1,18})", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a kind and an ID, for example run/17")
    return match[1], int(match[2])
