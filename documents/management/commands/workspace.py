import argparse
import re
from typing import Any

from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.db.models import Count

from documents import lifecycle, retention
from documents.commands import preview_row
from documents.models import MOST_DAYS
from work.operations.commands import (
    AddVerb,
    Answer,
    Exit,
    Failure,
    NounCommand,
    actor_of,
    add_actor,
    add_limit,
    fields,
    not_found,
    table,
)
from workspaces.commands import find_workspace
from workspaces.models import Membership, Workspace

OFF = "off"


class Command(NounCommand):
    help = "Workspaces and their members."

    def add_verbs(self, add: AddVerb) -> None:
        add("create", self.create, "Create a workspace.").add_argument("name", metavar="NAME")
        add_limit(add("list", self.list_workspaces, "List workspaces, newest first."))
        show = add("show", self.show, "Show a workspace and its members.")
        show.add_argument("workspace", metavar="WORKSPACE", help="name or id")
        member = add("member", self.member, "Add a person to a workspace, change their role, or remove them.")
        member.add_argument("workspace", metavar="WORKSPACE", help="name or id")
        member.add_argument("user", metavar="USER", help="user name")
        change = member.add_mutually_exclusive_group(required=True)
        change.add_argument("--role", choices=Membership.Role.values, help="the new role")
        change.add_argument("--remove", action="store_true", help="remove from the workspace")
        keep = add("retention", self.retention, "Set the retention of documents in days.")
        keep.add_argument("workspace", metavar="WORKSPACE", help="name or id")
        keep.add_argument("days", metavar="DAYS", type=policy, help=f"1 to {MOST_DAYS}, or {OFF} to keep them for ever")
        keep.add_argument("--rehearse", action="store_true", help="only show what would be purged")
        keep.add_argument("--yes", action="store_true", help="confirm if documents are due at once")
        add_actor(keep)

    def create(self, *, name: str, **_: Any) -> Answer:
        longest = Workspace._meta.get_field("name").max_length
        assert longest is not None
        if not 0 < len(name.strip()) <= longest or not name.isprintable():
            message = f"A name must have 1 to {longest} printable characters, unlike {name!r}."
            raise Failure(message, Exit.USAGE, "usage", name=name)
        try:
            with transaction.atomic():
                workspace = lifecycle.create_workspace(name.strip())
        except IntegrityError:
            message = f"The workspace {name!r} already exists. Choose another name."
            raise Failure(message, Exit.REFUSED, "workspace_exists", name=name) from None
        return Answer(_row(workspace), f"Created workspace {workspace.pk} {workspace.name}.")

    def list_workspaces(self, *, limit: int, before: int | None, **_: Any) -> Answer:
        workspaces = Workspace.objects.annotate(members=Count("memberships")).order_by("-id")
        workspaces = workspaces.filter(pk__lt=before) if before else workspaces
        rows = list(workspaces.values("id", "name", "created_at", "members", "document_retention_days")[:limit])
        return Answer(
            {"workspaces": rows}, table(rows, "id", "name", "members", "document_retention_days", "created_at")
        )

    def show(self, *, workspace: str, **_: Any) -> Answer:
        row = find_workspace(workspace)
        members = list(row.memberships.order_by("user__username").values("user__username", "role"))
        rows = [{"user": member["user__username"], "role": member["role"]} for member in members]
        text = f"{fields(_row(row))}\n\n{table(rows, 'user', 'role')}"
        return Answer(_row(row) | {"members": rows}, text)

    def member(self, *, workspace: str, user: str, role: str | None, **_: Any) -> Answer:
        row = find_workspace(workspace)
        person = get_user_model().objects.filter(username=user).first()
        if person is None:
            raise not_found("user", user, "create one with `manage.py createsuperuser` or in the admin")
        data = {"workspace": row.name, "user": user, "role": role}
        if role:
            Membership.objects.update_or_create(workspace=row, user=person, defaults={"role": role})
            return Answer(data, f"{user} is now {role} of {row.name}.")
        removed, _by_model = row.memberships.filter(user=person).delete()
        if not removed:
            raise not_found("member", user, f"`manage.py workspace show {row.pk}` shows the members")
        return Answer(data, f"{user} is no longer a member of {row.name}.")

    def retention(
        self, *, workspace: str, days: int | str, rehearse: bool, yes: bool, actor: str | None, **_: Any
    ) -> Answer:
        row, new_days = find_workspace(workspace), None if days == OFF else int(days)
        due = retention.preview(row, new_days)
        data = {"rehearsed": rehearse} | preview_row(row, new_days, due)
        if not rehearse:
            if due.documents and not yes and retention.is_shorter(new_days, row.document_retention_days):
                message = (
                    f"{due.documents} documents ({due.size_bytes:,} bytes) of {row.name} are older than {new_days}"
                    " days, so their contents would be purged at once and for good. Preview it with --rehearse, or"
                    " confirm with --yes."
                )
                sizes = {"documents": due.documents, "size_bytes": due.size_bytes}
                raise Failure(message, Exit.REFUSED, "documents_due", **sizes)
            retention.set_policy(row, new_days, actor=actor_of(actor))
        shown = fields({name: value for name, value in data.items() if name != "sample"})
        return Answer(data, f"{shown}\n\n{table(data['sample'], 'id', 'name', 'size_bytes', 'created_at')}")


def policy(text: str) -> int | str:
    if text == OFF:
        return OFF
    if re.fullmatch(r"[0-9]{1,6}", text) is None or not 1 <= int(text) <= MOST_DAYS:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number from 1 to {MOST_DAYS} nor {OFF}")
    return int(text)


def _row(workspace: Workspace) -> dict[str, Any]:
    return {
        "id": workspace.pk,
        "name": workspace.name,
        "created_at": workspace.created_at,
        "document_retention_days": workspace.document_retention_days,
    }
