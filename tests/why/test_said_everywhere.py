"""The page, the API and the command give the same explanation."""

import random
import re
from datetime import datetime

import pytest
from django.utils.html import escape

from builds.models import Build
from documents.models import Document
from runs.models import Run
from schedules.models import ScheduledJob
from tests.api.conftest import operator  # noqa: F401 - fixtures
from tests.commands.conftest import manage  # noqa: F401 - fixtures
from tests.factories import WorkspaceFactory
from tests.schedules.conftest import at, jobs  # noqa: F401 - fixtures
from tests.schedules.declared import EACH, FREQUENT, PATIENT
from tests.schedules.test_why import shuffle
from tests.seeds import many_seeds
from tests.why import crew
from tests.why.lives import Lives
from tests.why.test_document_claims import begin_and_compare, claim_and_compare, go_on
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+]00:00)")
SHOWN = re.compile(r'<li class="(holds|lets)">\s*<span[^>]*>(.*?)</span>\s*<strong>(\w+)</strong> (.*?)\n', re.DOTALL)


def as_told(value):
    """Normalise JSON: commands print timestamps with milliseconds."""
    if isinstance(value, dict):
        return {name: as_told(each) for name, each in value.items()}
    if isinstance(value, list):
        return [as_told(each) for each in value]
    if isinstance(value, str) and MOMENT.fullmatch(value):
        return datetime.fromisoformat(value).isoformat(timespec="milliseconds")
    return value


def gates_shown(page):
    """Return the gates that the page shows."""
    html = page.content.decode()
    start = html.find('<ol class="gates">')
    shown = SHOWN.findall(html[start : html.find("</ol>", start)]) if start >= 0 else []
    return [(name, holds == "holds", message) for holds, _, name, message in shown]


def are_left_out(gates):
    """Return whether rows of other workspaces are left out, of which users only see the number."""
    return any(gate["data"].get("at_work_of_others") or "in other workspaces" in gate["message"] for gate in gates)


@pytest.fixture
def said(client, olga, operator, manage):  # noqa: F811 - fixtures
    """Return a function that checks that all three explanations of a row agree, and returns the blocking gates."""

    def said(noun, name, page_path):
        client.force_login(olga)
        page = client.get(page_path)
        in_api = as_told(operator.get(f"/api/v1/{noun}s/{name}/why").json())
        by_command = as_told(manage(noun, "why", name, "--json").json)

        gates = [(gate["name"], gate["holds"], escape(gate["message"])) for gate in in_api["gates"]]
        assert gates_shown(page) == gates
        if gates:
            assert escape(in_api["message"]) in page.content.decode()
        if not are_left_out(in_api["gates"]):
            assert by_command == in_api
        # A command may show all rows, because its user has shell access.
        assert (by_command["message"], by_command["held_by"]) == (in_api["message"], in_api["held_by"])
        return in_api["held_by"]

    return said


def tell_of_runs_and_builds(seed, steps, workspace, said):
    chance, seen = random.Random(seed), set()
    lives = [Lives(chance, workspace), Lives(chance, WorkspaceFactory())]
    for _ in range(steps):
        for _ in range(8):
            chance.choice(lives).go_on()
        for kind in ("run", "build", "build"):
            crew.claims(kind, chance)
        chance.choice(lives).end_a_build()
        for noun, rows in (
            ("run", Run.objects.filter(workspace=workspace)),
            ("build", Build.objects.filter(configuration__workspace=workspace)),
        ):
            for id in some_of(rows, chance):
                seen.update(said(noun, id, f"/{noun}s/{id}/"))
    return seen


def some_of(rows, chance):
    """Return a sample, mostly of waiting rows."""
    waiting = list(rows.filter(status="queued").order_by("pk").values_list("pk", flat=True))
    others = list(rows.exclude(status="queued").order_by("pk").values_list("pk", flat=True))
    return [*chance.sample(waiting, min(len(waiting), 2)), *chance.sample(others, min(len(others), 1))]


def test_of_runs_and_builds(workspace, said):
    assert tell_of_runs_and_builds(3, 16, workspace, said) == {"paused", "worker", "capacity", "build", "document"}


def test_of_documents(workspace, said):
    chance, seen = random.Random(4), set()
    for _ in range(10):
        go_on(chance, workspace)
        for id in Document.objects.filter(status="processing").order_by("-pk").values_list("pk", flat=True)[:4]:
            seen.update(said("document", id, f"/documents/{id}/"))
        begin_and_compare()
        claim_and_compare(chance)
    assert seen == {"worker", "time", "turn", "stages"}


def test_of_jobs(jobs, settings, at, workspace, said):  # noqa: F811 - fixtures
    # Fix the clock, because the next slot of a schedule depends on it.
    at(clock.now())
    jobs(FREQUENT, EACH, PATIENT)
    chance, seen = random.Random(3), set()
    for _ in range(6):
        shuffle(chance)
        if chance.random() < 0.3:
            crew.sign_on(job_run=1)
        for name in ScheduledJob.objects.order_by("name").values_list("name", flat=True):
            seen.update(said("job", name, f"/jobs/{name}/why/"))
    assert seen >= {"worker", "capacity", "job", "pause", "schedule"}


@pytest.mark.parametrize("seed", many_seeds(4, of=20))
def test_of_runs_and_builds_in_many_states(workspace, said, seed):
    tell_of_runs_and_builds(seed, 12, workspace, said)
