import hashlib

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from tests.factories import ArtifactFactory, RunFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db, pytest.mark.usefixtures("each_storage")]


@pytest.fixture
def run():
    return RunFactory(status="running")


def stored(run, name, content=b"a,b\n1,2\n"):
    file = default_storage.save(f"runs/{run.pk}/1/0001", ContentFile(content))
    sha256 = hashlib.sha256(b"a,b\n1,2\n").hexdigest()
    return ArtifactFactory(run=run, name=name, file=file, size_bytes=8, sha256=sha256, content_type="text/csv")


def test_they_are_listed(manage, run):
    stored(run, "table.csv")

    (found,) = manage("run", "artifacts", run.pk, "--json").json["artifacts"]

    assert (found["name"], found["size_bytes"], found["content_type"]) == ("table.csv", 8, "text/csv")


def test_they_are_copied_under_their_names(manage, run, tmp_path):
    stored(run, "tables/first.csv")

    ended = manage("run", "artifacts", run.pk, "--to", tmp_path / "out", "--json")

    assert ended.code == 0
    assert ended.json["artifacts"][0]["path"] == str(tmp_path / "out/tables/first.csv")
    assert (tmp_path / "out/tables/first.csv").read_bytes() == b"a,b\n1,2\n"


def test_nothing_is_overwritten(manage, run, tmp_path):
    stored(run, "table.csv")
    (tmp_path / "table.csv").write_text("mine")

    ended = manage("run", "artifacts", run.pk, "--to", tmp_path)

    assert ended.code == 1
    assert f"Could not copy table.csv to {tmp_path}: File exists" in ended.err
    assert (tmp_path / "table.csv").read_text() == "mine"


def test_a_damaged_one_is_told_and_not_left_there(manage, run, tmp_path):
    stored(run, "table.csv", b"something else")

    ended = manage("run", "artifacts", run.pk, "--to", tmp_path / "out")

    assert ended.code == 1
    assert "The storage is damaged: the stored file of table.csv has changed." in ended.err
    assert not (tmp_path / "out/table.csv").exists()


def test_a_run_that_made_none(manage, run):
    assert manage("run", "artifacts", run.pk, "--json").json == {"artifacts": []}


def test_a_run_that_is_not_there(manage):
    assert manage("run", "artifacts", 7).code == 6
