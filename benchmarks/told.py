"""Actor commands for the streams and live pages parts: create the users who follow, and write events."""

import time

from django.contrib.auth import get_user_model
from django.core.management import call_command

from api import tokens
from benchmarks import listed, rows
from builds import lifecycle as builds
from builds.models import Configuration
from documents.lifecycle import add_member, create_workspace
from documents.models import Document
from runs.lifecycle import RUN_STATES, claim_next_run, submit_many, succeed
from work import lifecycle
from workspaces.models import Membership

# A caller may open this many streams in each web process.
STREAMS_OF_A_TOKEN = 50
RUNS = 200
ACTOR = "benchmark"


def prepare(streams: int) -> dict[str, object]:
    """Create a workspace with runs. Return the path of its stream, and enough tokens for this many streams."""
    call_command("collectstatic", verbosity=0, interactive=False)
    workspace = create_workspace("streams")
    person = get_user_model().objects.create_user("streams")
    add_member(workspace, person.pk, Membership.Role.OPERATOR)
    document = Document.objects.create(workspace=workspace, name="a.txt", sha256="0" * 64, **rows.PROCESSED)
    configuration = Configuration.objects.create(workspace=workspace, name="streams", files={"main.py": "#"})
    submit_many(configuration, [document] * RUNS, actor="benchmark")
    shown = [
        tokens.issue(workspace, person, str(n), [], actor="benchmark")[1]
        for n in range(-(-streams // STREAMS_OF_A_TOKEN))
    ]
    return {"path": f"/api/v1/workspaces/{workspace.pk}/stream", "tokens": shown}


def tell(number: int, gap: float) -> list[float]:
    """Write this many events. Return the moment of each commit, by the clock that all processes of a machine share."""
    ids = list(RUN_STATES.rows.values_list("pk", flat=True)[:RUNS])
    committed = []
    for n in range(number):
        lifecycle.record(RUN_STATES, ids[n % len(ids)], "BENCHMARK", message=f"event {n}.")
        committed.append(time.monotonic())
        time.sleep(gap)
    return committed


def prepare_looks(number: int) -> dict[str, object]:
    """Create this many queued runs, each of a different document. Return the runs, and the session of a user who sees
    them.
    """
    call_command("collectstatic", verbosity=0, interactive=False)
    workspace = create_workspace("looks")
    person = get_user_model().objects.create_user("looks")
    add_member(workspace, person.pk, Membership.Role.OPERATOR)
    values = {"sha256": "0" * 64, **rows.PROCESSED}
    documents = [Document.objects.create(workspace=workspace, name=f"{n}.txt", **values) for n in range(number)]
    configuration = Configuration.objects.create(workspace=workspace, name="looks", files={"main.py": "#"})
    builds.get_or_create_build(configuration, actor=ACTOR)
    claim = builds.claim_next_build(ACTOR)
    assert claim is not None
    assert builds.succeed(claim)
    return {"runs": submit_many(configuration, documents, actor=ACTOR), "session": listed.session_of(person)}


def run_next(gap: float) -> list[float]:
    """Claim the next run and finish it `gap` seconds later. Return the moments at which both changes were committed."""
    claim = claim_next_run(ACTOR)
    assert claim is not None
    started = time.monotonic()
    time.sleep(gap)
    assert succeed(claim)
    return [started, time.monotonic()]
