"""Artifacts of runs and their input documents, in a directory and in a container."""

import json

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from runs import artifacts, scratch
from runs.scratch import NoDocument
from tests.azurite import azure_only, connection_string, storages, stored_files
from tests.documents.faulty import refusing
from tests.factories import ArtifactFactory, DocumentFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("each_storage")]
MADE = {"empty.txt": b"", "tables/total.json": b"{}", "z.bin": bytes(range(256)) * 40_000}


@pytest.fixture
def place(tmp_path):
    for name, content in MADE.items():
        path = tmp_path / "place/artifacts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "place"


def test_what_was_made_is_stored_and_copied_out_again(place, tmp_path):
    kept = artifacts.store(place, 7, 1)

    assert [values["file"] for values in kept] == stored_files() == [f"runs/7/1/{n:04}" for n in (1, 2, 3)]
    assert {values["name"]: values["size_bytes"] for values in kept} == {k: len(v) for k, v in MADE.items()}
    for values in kept:
        path = artifacts.copy_out(ArtifactFactory(**values), tmp_path / "out")
        assert path.read_bytes() == MADE[values["name"]]
    artifacts.discard(kept)
    artifacts.discard(kept)
    assert stored_files() == []


@azure_only
def test_a_storage_that_is_away_keeps_nothing(place, settings):
    usual = settings.STORAGES
    with refusing() as address:
        settings.STORAGES = storages(connection_string(address), "documents")
        with pytest.raises(OSError, match="the blob service cannot be reached"):
            artifacts.store(place, 7, 1)
    settings.STORAGES = usual

    assert stored_files() == []


def test_an_engine_gets_the_file_of_its_document(tmp_path):
    content = b"x" * 9_000_000
    document = DocumentFactory(name="a.txt", file=default_storage.save("documents/a", ContentFile(content)))

    scratch.lay_out(tmp_path, document)

    told = json.loads((tmp_path / scratch.INPUT).read_text())["document"]
    assert (tmp_path / told["file"]).read_bytes() == content


def test_a_document_without_its_file_is_told(tmp_path):
    with pytest.raises(NoDocument, match="is missing"):
        scratch.lay_out(tmp_path, DocumentFactory(file="documents/none"))
