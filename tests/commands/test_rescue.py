import pytest

from runs.models import Run
from tests.factories import JobFactory, RunFactory, StageFactory, age, expire_lease, write
from work.models import Event

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def rows_of(ended):
    return {(duty["kind"], duty["duty"]): duty["rows"] for duty in ended.json["duties"]}


def test_what_lost_workers_left_is_moved_on(manage):
    run, stage = expire_lease(RunFactory(status="running")), expire_lease(StageFactory(status="RUNNING"))
    living = RunFactory(status="running")

    ended = manage("rescue", "--as", "olga", "--json")

    assert ended.code == 0
    assert rows_of(ended)["run", "rescue"] == 1
    assert [(row["kind"], row["id"], row["to_status"]) for row in ended.json["moved"]] == [
        ("stage", stage.pk, "READY"),
        ("run", run.pk, "failed"),
    ]
    living.refresh_from_db()
    assert living.status == "running"
    assert Event.objects.filter(subject_kind="run", subject_id=run.pk, actor="recovery by olga (command)").exists()


def test_jobs_that_nobody_works_on_go_back(manage, settings):
    settings.ADE_ZOMBIE_SECONDS = 10
    job = age(JobFactory(status="PROCESSING"), 60)

    ended = manage("rescue", "--json")

    assert rows_of(ended)["job", "reset_zombies"] == 1
    assert [(row["kind"], row["id"], row["to_status"]) for row in ended.json["moved"]] == [("job", job.pk, "PENDING")]


def test_forgotten_gates_are_opened(manage):
    run = write(RunFactory(), gate="document")

    ended = manage("rescue", "--json")

    assert rows_of(ended)["run", "open_forgotten"] == 1
    assert Run.objects.get(pk=run.pk).gate == ""


def test_twice_is_no_harm(manage):
    expire_lease(RunFactory(status="running"))

    first, second = manage("rescue", "--json"), manage("rescue", "--json")

    assert len(first.json["moved"]) == 1
    assert second.json["moved"] == []


def test_people_are_told_what_has_moved(manage):
    run = expire_lease(RunFactory(status="running"))

    words = [line.split() for line in manage("rescue").out.splitlines()]

    assert ["run", str(run.pk), "running", "failed"] in [line[:4] for line in words]


def test_people_are_told_when_nothing_has(manage):
    assert "No status has changed." in manage("rescue").out
