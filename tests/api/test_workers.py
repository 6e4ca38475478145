from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission

from api.models import AuditEntry
from tests.api.programs import Person, Program, problem_of
from tests.factories import BuildFactory, DocumentFactory, JobRunFactory, RunFactory, UserFactory, events_of, write
from work import boots, clock, draining

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def worker(db):
    return boots.register("w1", "boot1", {"run": 2})


def doing(program, worker):
    (listed,) = program.get("/workers").json()["items"]
    shown = program.get(f"/workers/{worker.pk}").json()
    assert listed == shown
    return [(each["kind"], each["id"]) for each in shown["doing"]]


def test_workers_are_listed_by_how_they_are(ravi, workspace, settings):
    alive, stopped, silent = (boots.register(name, name, {}) for name in ("w1", "w2", "w3"))
    boots.sign_off(stopped)
    write(silent, heartbeat_at=clock.now() - timedelta(seconds=2 * settings.ADE_LEASE_SECONDS))
    program = Program(ravi, workspace)

    found = {
        state: [row["id"] for row in program.get("/workers", state=state).json()["items"]]
        for state in ("alive", "stopped", "silent")
    }

    assert found == {"alive": [alive.pk], "stopped": [stopped.pk], "silent": [silent.pk]}
    assert [row["state"] for row in program.get("/workers").json()["items"]] == ["silent", "stopped", "alive"]
    assert problem_of(program.get("/workers", state="lost")) == (400, "invalid_request")


def test_what_a_worker_does_names_only_rows_of_ones_own(ravi, workspace, worker):
    mine, other, job_run = RunFactory(configuration__workspace=workspace), RunFactory(), JobRunFactory()
    build, document = BuildFactory(), DocumentFactory()
    rows = [("run", mine), ("run", other), ("job_run", job_run), ("build", build), ("document", document)]
    write(worker, doing=[*(f"{kind} {row.pk}" for kind, row in rows), "errand 7"])
    root = Person(UserFactory(username="root", is_superuser=True))

    expected = [("run", mine.pk), ("run", None), ("job_run", job_run.pk), ("build", None), ("document", None)]
    assert doing(Program(ravi, workspace), worker) == [*expected, ("errand", None)]
    assert doing(Person(ravi), worker) == [*expected, ("errand", None)]
    assert doing(root, worker) == [*((kind, row.pk) for kind, row in rows), ("errand", None)]


def test_a_token_names_no_rows_of_other_workspaces_of_its_person(olga, workspace, worker):
    mine, other = RunFactory(configuration__workspace=workspace), RunFactory()
    other.workspace.memberships.create(user=olga)
    write(worker, doing=[f"run {mine.pk}", f"run {other.pk}"])

    assert doing(Program(olga, workspace), worker) == [("run", mine.pk), ("run", None)]
    assert doing(Person(olga), worker) == [("run", mine.pk), ("run", other.pk)]


@pytest.fixture
def in_charge(olga, workspace):
    """Return a client of Olga with the permission for the shared installation."""
    olga.user_permissions.add(Permission.objects.get(codename="change_queue"))
    return Program(olga, workspace, "installation")


def test_a_worker_drains(in_charge, worker):
    answer = in_charge.post(f"/workers/{worker.pk}/drain", {"reason": "a new version"})

    assert answer.status_code == 200
    told = answer.json()
    assert told == in_charge.get(f"/workers/{worker.pk}").json()
    assert (told["state"], told["drain_reason"]) == ("alive", "a new version")
    assert told["drain_requested_by"] == "olga (token program)"
    assert told["drain_requested_at"]
    assert events_of(worker).last().kind == "WORKER_DRAIN_REQUESTED"
    entry = AuditEntry.objects.get(operation="workers.drain")
    assert (entry.subject_kind, entry.subject_id) == ("worker", worker.pk)


def test_without_a_request_nothing_is_told_of_one(ravi, workspace, worker):
    told = Program(ravi, workspace).get(f"/workers/{worker.pk}").json()

    assert [told[name] for name in ("drain_requested_at", "drain_requested_by", "drain_reason")] == [None] * 3


def test_a_drain_that_is_asked_twice_or_of_one_that_is_gone_is_a_conflict(in_charge, worker):
    gone = boots.register("w2", "boot2", {})
    boots.sign_off(gone)
    draining.drain(worker, actor="ada")

    twice, late = (in_charge.post(f"/workers/{row.pk}/drain") for row in (worker, gone))

    assert [problem_of(answer) for answer in (twice, late)] == [(409, "conflict")] * 2
    assert "is already draining: " in twice.json()["message"]
    assert twice.json()["details"]["state"] == "alive"
    assert twice.json()["details"]["drain_requested_at"]
    assert "cannot drain: it stopped at" in late.json()["message"]
    assert late.json()["details"] == {"id": gone.pk, "state": "stopped", "drain_requested_at": None}
    assert problem_of(in_charge.post("/workers/999999/drain")) == (404, "not_found")


def test_a_drain_takes_the_permission_and_the_scope(olga, ravi, zed, workspace, worker):
    root = UserFactory(username="root", is_superuser=True)
    olgas = Program(olga, workspace, "operate")

    for program in (olgas, Program(root, workspace, "read"), Person(olga), Person(ravi), Person(zed)):
        assert problem_of(program.post(f"/workers/{worker.pk}/drain")) == (403, "forbidden")
    worker.refresh_from_db()
    assert worker.drain_requested_at is None
