"""The demo user and workspace that `manage.py up` creates at its first start."""

import secrets

from django.conf import settings
from django.contrib.auth.models import User

from builds import configurations, packages
from builds.models import Configuration
from documents import intake, lifecycle
from documents.intake import AlreadyThere
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
    found = {folder: _configuration(workspace, folder) for folder in dict.fromkeys(folder for folder, _ in RUNS)}
    documents = {name: _document(workspace, name) for name in DOCUMENTS}
    for folder, name in RUNS:
        _run(found[folder], documents[name])
    # Added last, so that an interrupted start is resumed.
    lifecycle.add_member(workspace, user.pk, Membership.Role.ADMIN)


def new_password(user: User) -> str:
    password = secrets.token_urlsafe(12)
    user.set_password(password)
    user.save()
    return password


def _configuration(workspace: Workspace, folder: str) -> Configuration:
    package = packages.read(EXAMPLES / folder)
    # A configuration that was changed stays as it is.
    return (
        Configuration.objects.filter(workspace=workspace, name=package.name).first()
        or (configurations.store(workspace, package)[0])
    )


def _document(workspace: Workspace, name: str) -> Document:
    try:
        return intake.add_file(workspace, EXAMPLES / "documents" / name, actor=USERNAME)
    except AlreadyThere as there:
        return there.document


def _run(configuration: Configuration, document: Document) -> None:
    if Run.objects.filter(configuration=configuration, input_document=document).exists():
        return
    try:
        runs.submit(configuration, document, actor=USERNAME)
    except QueueFull:
        # The queue is limited to less than the demo needs. Everything else is created all the same.
        return
