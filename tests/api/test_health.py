import threading
import time
from datetime import timedelta

import pytest
from django.db import OperationalError

from tests.api.programs import V1, Person, Program, problem_of
from tests.factories import DueSlotFactory, JobRunFactory, RunFactory, age
from work import boots, clock, health

pytestmark = pytest.mark.edge


@pytest.mark.django_db
def test_health_needs_no_token_and_tells_nothing_else(client):
    answer = client.get(f"{V1}/health")

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert answer["Cache-Control"] == "private, no-store"


@pytest.mark.django_db
def test_a_database_that_refuses_is_told_and_nothing_of_it(client, monkeypatch):
    class Away:
        def cursor(self):
            raise OperationalError("could not connect to db.internal.example.com as ade")

        def close(self):
            pass

    monkeypatch.setattr(health, "connection", Away())

    answer = client.get(f"{V1}/health")

    assert problem_of(answer) == (503, "unavailable")
    assert answer.json()["details"] == {"status": "failing"}
    assert "internal" not in answer.content.decode()
    monkeypatch.undo()
    assert client.get(f"{V1}/health").status_code == 200


def test_nobody_waits_for_a_database_that_does_not_answer_and_it_is_asked_once(monkeypatch):
    asked, answers = [], threading.Event()

    class Silent:
        def cursor(self):
            asked.append(self)
            answers.wait(600)
            raise OperationalError("gone")

        def close(self):
            pass

    monkeypatch.setattr(health, "connection", Silent())
    started = time.monotonic()

    assert [health.database_answers(0.05) for _ in range(3)] == [False] * 3

    assert time.monotonic() - started < 60
    assert len(asked) == 1
    answers.set()


@pytest.mark.django_db
def test_details_are_how_much_waits_and_who_is_there(olga, workspace):
    oldest = age(RunFactory(configuration__workspace=workspace, status="queued"), 3600)
    RunFactory(status="running")
    DueSlotFactory()
    JobRunFactory()
    boots.register("w1", "boot1", {"run": 2, "build": 1})
    boots.sign_off(boots.register("w2", "boot2", {"run": 2}))

    told = Program(olga, workspace, "installation").get("/health/details").json()

    queues = {queue["kind"]: (queue["waiting"], queue["at_work"]) for queue in told["queues"]}
    assert (queues["run"], queues["job_run"], queues["build"]) == ((1, 1), (1, 1), (0, 0))
    assert (told["workers_alive"], told["slots"]) == (1, {"run": 2, "build": 1})
    assert told["oldest_waiting_since"][:19] == oldest.created_at.isoformat()[:19]
    assert clock.now() - oldest.created_at > timedelta(minutes=59)


@pytest.mark.django_db
def test_details_are_for_members_and_for_tokens_of_the_installation(ravi, zed, workspace):
    assert Person(ravi).get("/health/details").status_code == 200
    assert problem_of(Person(zed).get("/health/details")) == (403, "forbidden")
    assert problem_of(Program(ravi, workspace, "operate", "admin").get("/health/details")) == (403, "forbidden")
