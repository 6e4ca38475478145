"""What `manage.py up` finds or makes at its first start, so that there is something to look at."""

import secrets

from django.contrib.auth.models import User

from builds.models import Configuration
from documents import lifecycle
from documents.models import Membership, Workspace

USERNAME = "demo"
WORKSPACE = "demo"
MAIN = '''\
"""Answers what the text of a document begins with."""


def main(document):
    first_line = document.text.partition("\\n")[0]
    return {"first_line": first_line, "characters": len(document.text)}
'''


def demo_user() -> User:
    """The user has no usable password until one has been shown to somebody."""
    user, created = User.objects.get_or_create(username=USERNAME, defaults={"is_staff": True, "is_superuser": True})
    if created:
        user.set_unusable_password()
        user.save()
    return user


def demo_workspace(user: User) -> None:
    """Made while the user is a member of no workspace; otherwise, what was renamed or deleted stays so."""
    if Membership.objects.filter(user=user).exists():
        return
    workspace = Workspace.objects.filter(name=WORKSPACE).first() or lifecycle.create_workspace(WORKSPACE)
    lifecycle.add_member(workspace, user.pk, Membership.Role.ADMIN)
    Configuration.objects.get_or_create(workspace=workspace, name="first line", defaults={"files": {"main.py": MAIN}})


def new_password(user: User) -> str:
    password = secrets.token_urlsafe(12)
    user.set_password(password)
    user.save()
    return password
