import os
import time

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from documents.periodic import Sweeper
from runs import periodic
from runs.work_types import RUN
from tests.factories import ArtifactFactory, RunFactory

pytestmark = pytest.mark.django_db
DAY = 24 * 3600


@pytest.fixture(autouse=True)
def storage(settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path / "media"
    monkeypatch.setattr(periodic, "_artifacts", Sweeper(periodic._artifacts.walk, periodic._artifacts.keys_of))


def leave(run_id, token=1, number=1, age=DAY + 60):
    key = default_storage.save(f"runs/{run_id}/{token}/{number:04}", ContentFile(b"made"))
    past = time.time() - age
    os.utime(default_storage.path(key), (past, past))
    return key


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
def test_what_a_run_that_has_ended_did_not_keep_is_removed(status):
    run = RunFactory(status=status)
    old, young = leave(run.pk), leave(run.pk, number=2, age=60)
    kept = leave(run.pk, number=3)
    ArtifactFactory(run=run, file=kept)

    periodic.sweep_artifacts("w1")

    assert [default_storage.exists(key) for key in (old, young, kept)] == [False, True, True]


@pytest.mark.parametrize("status", ["queued", "running"])
def test_what_a_run_makes_that_has_not_ended_stays(status):
    key = leave(RunFactory(status=status).pk)

    periodic.sweep_artifacts()

    assert default_storage.exists(key)


def test_what_another_run_names_does_not_count():
    run = RunFactory(status="failed")
    key = leave(run.pk)
    ArtifactFactory(file=key)

    periodic.sweep_artifacts()

    assert not default_storage.exists(key)


def test_what_is_of_no_run_is_removed():
    key = leave(999_999)

    periodic.sweep_artifacts()

    assert not default_storage.exists(key)


def test_only_what_a_run_has_made_is_looked_at():
    others = ["runs/1/notes.txt", "runs/a/1/0001", "runs/1/1/notes", f"runs/{'9' * 30}/1/0001", "documents/1/1/0001"]
    for key in others:
        default_storage.save(key, ContentFile(b"x"))
        os.utime(default_storage.path(key), (0, 0))

    periodic.sweep_artifacts()

    assert all(map(default_storage.exists, others))


def test_workers_do_so_from_time_to_time():
    (task,) = [task for task in RUN.periodic_tasks if task.do is periodic.sweep_artifacts]

    assert (task.every, task.when_rung) == (300, False)
