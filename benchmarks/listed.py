"""Creates a million runs for lists, as in an installation that is a month old: one workspace has most of the runs,
another has only a few old ones, failures are old, and hardly any run has timed out.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.sessions.backends.db import SessionStore
from django.core.management import call_command

from api import tokens
from api.models import Scope
from benchmarks import rows
from builds import lifecycle as builds
from builds.models import Build, Configuration
from documents.lifecycle import create_workspace
from documents.models import Document
from runs import lifecycle as runs
from runs.models import Run
from work import clock
from work.models import Event
from workspaces.models import Membership, Workspace

ACTOR = "benchmark"
WORKSPACES, CONFIGURATIONS, DOCUMENTS = 4, 3, 500
# Runs are numbered modulo a thousand: numbers below the first share go to the first workspace, those below the second
# share to the second. The last workspace has only a few of the oldest runs.
SHARE_OF_FIRST, SHARE_OF_SECOND = 900, 980
DAYS = 30


def seed(number: int) -> dict[str, Any]:
    """Create workspaces, users and this many runs. Return a token for the first workspace, a session of a user who sees
    all workspaces but one, a session of a superuser, and IDs of rows in the first, the second and the last workspace.
    """
    people = get_user_model().objects
    user = people.create(username="lister", is_staff=True)
    root = people.create(username="root", is_staff=True, is_superuser=True)
    made = [_workspace(n) for n in range(WORKSPACES)]
    seen = made[:-2] + made[-1:]
    for workspace in seen:
        Membership.objects.create(user=user, workspace=workspace, role=Membership.Role.OPERATOR)
    _copy(number)
    rows.settle()
    _, token = tokens.issue(made[0], user, "benchmark", list(Scope), actor=ACTOR)
    return {
        "token": token,
        "sessions": [session_of(each) for each in (user, root)],
        "places": [_place(workspace) for workspace in seen],
        "since": (clock.now() - timedelta(days=DAYS)).isoformat(),
        # A run in the middle of the table that belongs to the first workspace.
        "run": Run.objects.filter(pk__gte=number // 2, workspace=made[0].pk).order_by("pk").values_list("pk")[0][0],
    }


def tell(each: int) -> int:
    """Write this many events for every run, most of them log lines. Return the number of all events."""
    rows.execute(
        f"""
        INSERT INTO events (subject_kind, subject_id, sequence, at, kind, from_status, to_status, claim_token, actor,
            level, message, data)
        SELECT 'run', r.id, n, r.created_at, CASE n WHEN 1 THEN 'RUN_QUEUED' WHEN 2 THEN 'RUN_STARTED'
            WHEN 3 THEN 'STEP_STARTED' WHEN {each - 1} THEN 'STEP_SUCCEEDED' WHEN {each} THEN 'RUN_SUCCEEDED'
            ELSE 'LOG' END, '', '', 1, '{ACTOR}', 20, 'read ' || n || ' words', '{{"stream": "stdout", "step": "read"}}'
        FROM runs r CROSS JOIN generate_series(1, {each}) n
        ON CONFLICT DO NOTHING
        """  # noqa: S608  # no user input
    )
    rows.settle()
    return Event.objects.count()


def dress() -> None:
    """Collect the static files, among which pages look up their style sheets."""
    call_command("collectstatic", interactive=False, verbosity=0)


def session_of(user: AbstractBaseUser) -> str:
    """Create a session of this user, as after signing in, and return its key."""
    session = SessionStore()
    session[SESSION_KEY], session[HASH_SESSION_KEY] = str(user.pk), user.get_session_auth_hash()
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[-1]
    session.create()
    return str(session.session_key)


def _place(workspace: Workspace) -> dict[str, Any]:
    configuration = Configuration.objects.filter(workspace=workspace).order_by("pk")[0]
    return {
        "workspace": workspace.pk,
        "configuration": configuration.pk,
        "build": Build.objects.get(configuration=configuration).pk,
        "documents": list(Document.objects.filter(workspace=workspace).order_by("pk").values_list("pk", flat=True)),
    }


def _workspace(number: int) -> Workspace:
    workspace = create_workspace(f"listed {number}")
    Document.objects.bulk_create(
        Document(workspace=workspace, name=f"{n}.txt", sha256=f"{number:04x}{n:060x}", **rows.PROCESSED)
        for n in range(DOCUMENTS)
    )
    for n in range(CONFIGURATIONS):
        made = Configuration.objects.create(workspace=workspace, name=f"{n}", files={"main.py": f"# {number} {n}"})
        builds.get_or_create_build(made, actor=ACTOR)
        claim = builds.claim_next_build(ACTOR)
        assert claim is not None
        assert builds.succeed(claim)
    return workspace


def _copy(number: int) -> None:
    """Copy a run that ADE itself has created, and vary the columns by which lists filter."""
    template = runs.submit(Configuration.objects.order_by("pk")[0], Document.objects.order_by("pk")[0], actor=ACTOR)
    claim = runs.claim_next_run(ACTOR)
    assert claim is not None
    assert runs.succeed(claim)
    began = clock.now() - timedelta(days=DAYS)
    moment = f"'{began.isoformat()}'::timestamptz + interval '{DAYS} days' * n / {number}"
    of = f"""CASE WHEN n <= {number // 200} AND n % 4 = 3 THEN 3 WHEN n * 7919 % 1000 < {SHARE_OF_FIRST} THEN 0
        WHEN n * 7919 % 1000 < {SHARE_OF_SECOND} THEN 1 ELSE 2 END"""
    failed, timed_out = f"n <= {number // 20} AND n % 2 = 0", f"n <= {number // 50} AND n % 100 = 0"
    changed = {
        "created_at": "m",
        "started_at": "m",
        "finished_at": "m",
        "workspace_id": "w.workspace_id",
        "configuration_id": "w.configuration_id",
        "build_id": "w.id",
        "input_document_id": f"w.first + n * 104729 % {DOCUMENTS}",
        "status": f"CASE WHEN {failed} THEN 'failed' ELSE 'succeeded' END",
        "failure_type": f"CASE WHEN {timed_out} THEN 'TIMED_OUT' WHEN {failed} THEN 'ENGINE_FAILED' ELSE '' END",
    }
    names = [str(field.column) for field in Run._meta.concrete_fields if not field.primary_key]
    chosen = ", ".join(changed.get(name, f"t.{name}") for name in names)
    rows.execute(
        f"""
        WITH places AS (
            SELECT b.id, b.configuration_id, c.workspace_id, (SELECT min(id) FROM documents d
                WHERE d.workspace_id = c.workspace_id) AS first,
                dense_rank() OVER (ORDER BY c.workspace_id) - 1 AS workspace,
                row_number() OVER (PARTITION BY c.workspace_id ORDER BY b.id) - 1 AS nth
            FROM builds b JOIN configurations c ON c.id = b.configuration_id
        ), numbers AS (SELECT n, {moment} AS m, {of} AS workspace FROM generate_series(1, {number}::bigint) n)
        INSERT INTO runs ({", ".join(names)}) SELECT {chosen} FROM numbers
        JOIN places w ON w.workspace = numbers.workspace
            AND w.nth = CASE WHEN n % 10 < 8 THEN 0 WHEN n % 10 = 8 THEN 1 ELSE 2 END
        JOIN runs t ON t.id = {template.pk} ORDER BY n
        """  # noqa: S608  # no user input
    )
