from typing import Any

from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.db.models import Count

from documents import lifecycle
from documents.commands import find_workspace
from documents.models import Membership, Workspace
from work.commands import AddVerb, Answer, Exit, Failure, NounCommand, add_limit, fields, not_found, table


class Command(NounCommand):
    help = "Workspaces and who belongs to them."

    def add_verbs(self, add: AddVerb) -> None:
        add("create", self.create, "Make a workspace.").add_argument("name", metavar="NAME")
        add_limit(add("list", self.list_workspaces, "List workspaces, the newest first."))
        show = add("show", self.show, "Show a workspace and its members.")
        show.add_argument("workspace", metavar="WORKSPACE", help="name or id")
        member = add("member", self.member, "Add a person to a workspace, change their role, or remove them.")
        member.add_argument("workspace", metavar="WORKSPACE", help="name or id")
        member.add_argument("user", metavar="USER", help="user name")
        wish = member.add_mutually_exclusive_group(required=True)
        wish.add_argument("--role", choices=Membership.Role.values, help="from now on")
        wish.add_argument("--remove", action="store_true", help="no member any more")

    def create(self, *, name: str, **_: Any) -> Answer:
        longest = Workspace._meta.get_field("name").max_length
        assert longest is not None
        if not 0 < len(name.strip()) <= longest or not name.isprintable():
            message = f"expected a name of 1 to {longest} printable characters, found {name!r}"
            raise Failure(message, Exit.USAGE, "usage", name=name)
        try:
            with transaction.atomic():
                made = lifecycle.create_workspace(name.strip())
        except IntegrityError:
            message = f"expected a new name, found {name!r}, which is a workspace already; choose another one"
            raise Failure(message, Exit.REFUSED, "workspace_exists", name=name) from None
        return Answer(_row(made), f"Made workspace {made.pk} {made.name}.")

    def list_workspaces(self, *, limit: int, before: int | None, **_: Any) -> Answer:
        found = Workspace.objects.annotate(members=Count("memberships")).order_by("-id")
        found = found.filter(pk__lt=before) if before else found
        rows = list(found.values("id", "name", "created_at", "members")[:limit])
        return Answer({"workspaces": rows}, table(rows, "id", "name", "members", "created_at"))

    def show(self, *, workspace: str, **_: Any) -> Answer:
        found = find_workspace(workspace)
        members = list(found.memberships.order_by("user__username").values("user__username", "role"))
        rows = [{"user": member["user__username"], "role": member["role"]} for member in members]
        text = f"{fields(_row(found))}\n\n{table(rows, 'user', 'role')}"
        return Answer(_row(found) | {"members": rows}, text)

    def member(self, *, workspace: str, user: str, role: str | None, **_: Any) -> Answer:
        found = find_workspace(workspace)
        person = get_user_model().objects.filter(username=user).first()
        if person is None:
            raise not_found("user", user, "`manage.py createsuperuser` or the admin makes one")
        told = {"workspace": found.name, "user": user, "role": role}
        if role:
            Membership.objects.update_or_create(workspace=found, user=person, defaults={"role": role})
            return Answer(told, f"{user} is now {role} of {found.name}.")
        removed, _by_model = found.memberships.filter(user=person).delete()
        if not removed:
            raise not_found("member", user, f"`manage.py workspace show {found.pk}` shows who is one")
        return Answer(told, f"{user} is no member of {found.name} any more.")


def _row(workspace: Workspace) -> dict[str, Any]:
    return {"id": workspace.pk, "name": workspace.name, "created_at": workspace.created_at}
