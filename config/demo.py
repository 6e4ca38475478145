"""The demo user and workspace that `manage.py up` creates at its first start."""

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
from runs.lifecycle import QueueFull
from runs.models import Run
from workspaces.models import Membership, Workspace

USERNAME = "demo"
WORKSPACE = "demo"
EXAMPLES = settings.BASE_DIR / "examples"
DOCUMENTS = ("invoice.pdf", "sales.csv", "letter.txt")
# The last one fails on purpose: a letter is not an invoice, and the run reports it.
RUNS = (
    ("invoice", "invoice.pdf"),
    ("spreadsheet", "sales.csv"),
    ("statistics", "letter.txt"),
    ("invoice", "letter.txt"),
)


def demo_user() -> User:
    """Return the demo user. It has no usable password until one has been printed."""
    user, created = User.objects.get_or_create(username=USERNAME, defaults={"is_staff": True, "is_superuser": True})
    if created:
        user.set_unusable_password()
        user.save()
    return user


def demo_workspace(user: User) -> None:
    """Create the demo workspace, unless the user is a member of any. So renamed or deleted demo data stays as it is."""
    if Membership.objects.filter(user=user).exists():
        return
    workspace = Workspace.objects.filter(name=WORKSPACE).first() or lifecycle.create_workspace(WORKSPACE)
    configurations: dict[str, Configuration] = {}
    for folder in dict.fromkeys(folder for folder, _ in RUNS):
        package = packages.read(EXAMPLES / folder)
        # A configuration that was changed stays as it is.
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
        # The queue may be limited to less than the demo needs. Everything else is created all the same.
        with suppress(QueueFull):
            runs.submit(configurations[folder], documents[name], actor=USERNAME)
    # Added last, so that an interrupted start is resumed.
    lifecycle.add_member(workspace, user.pk, Membership.Role.ADMIN)


def new_password(user: User) -> str:
    password = secrets.token_urlsafe(12)
    user.set_password(password)
    user.save()
    return password
