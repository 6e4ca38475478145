"""Creates the demo user and workspace when `manage.py up` is first started."""

import secrets
from contextlib import suppress

from django.conf import settings
from django.contrib.auth.models import User

from builds import packages
from builds.configurations import store
from builds.models import Configuration
from documents import intake, lifecycle
from documents.intake import DuplicateFile
from documents.models import Document
from runs import lifecycle as runs
from runs.lifecycle import DocumentFailed, QueueFull
from runs.models import Run
from workspaces.models import Membership, Workspace

USERNAME = "demo"
WORKSPACE = "demo"
EXAMPLES = settings.BASE_DIR / "examples"
DOCUMENTS = ("invoice.pdf", "sales.csv", "letter.txt")
# The last run fails on purpose: a letter is not an invoice, and the run reports that.
RUNS = (
    ("invoice", "invoice.pdf"),
    ("spreadsheet", "sales.csv"),
    ("statistics", "letter.txt"),
    ("invoice", "letter.txt"),
)


def demo_user() -> User:
    """Return the demo user. The user has no usable password until one has been printed."""
    user, created = User.objects.get_or_create(username=USERNAME, defaults={"is_staff": True, "is_superuser": True})
    if created:
        user.set_unusable_password()
        user.save()
    return user


def demo_workspace(user: User) -> None:
    """Create the demo workspace, unless the user is already a member of a workspace.

    So demo data that was renamed or deleted later stays as it is.
    """
    if Membership.objects.filter(user=user).exists():
        return
    workspace = Workspace.objects.filter(name=WORKSPACE).first() or lifecycle.create_workspace(WORKSPACE)
    configurations: dict[str, Configuration] = {}
    for folder in dict.fromkeys(folder for folder, _ in RUNS):
        package = packages.read(EXAMPLES / folder)
        # Do not overwrite a configuration, because it may have been changed.
        existing = Configuration.objects.filter(workspace=workspace, name=package.name).first()
        configurations[folder] = existing or store(workspace, package)[0]
    documents: dict[str, Document] = {}
    for name in DOCUMENTS:
        try:
            documents[name] = intake.add_file(workspace, EXAMPLES / "documents" / name, actor=USERNAME)
        except DuplicateFile as there:
            documents[name] = there.document
    for folder, name in RUNS:
        if Run.objects.filter(configuration=configurations[folder], input_document=documents[name]).exists():
            continue
        # The queue limit may be too low for all demo runs. Create everything else all the same.
        with suppress(QueueFull, DocumentFailed):
            runs.submit(configurations[folder], documents[name], actor=USERNAME)
    # Add the member last, so that the next start finishes what an interrupted one has left.
    lifecycle.add_member(workspace, user.pk, Membership.Role.ADMIN)


def new_password(user: User) -> str:
    password = secrets.token_urlsafe(12)
    user.set_password(password)
    user.save()
    return password
