"""`doctor documents.files` compares documents with the stored files, in a directory and in a container."""

import hashlib

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from config import file_checks
from tests.azurite import connection_string, local_only, storages
from tests.documents.faulty import refusing
from tests.factories import DocumentFactory, write
from work import clock

pytestmark = [pytest.mark.once, pytest.mark.django_db]

CONTENT = b"An invoice of some bytes."


@pytest.fixture(autouse=True)
def stored(each_storage):
    """Files are kept in the storage of the test."""


@pytest.fixture
def document():
    return stored_document()


def stored_document(content=CONTENT):
    made = DocumentFactory(size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    default_storage.save(made.file.name, ContentFile(content))
    return made


def replace(document, content):
    default_storage.delete(document.file.name)
    default_storage.save(document.file.name, ContentFile(content))


def files(manage, *arguments):
    ended = manage("doctor", "documents.files", *arguments, "--json")
    row = ended.json["checks"][-1]
    assert row["name"] == "documents.files"
    assert (ended.code == 1) == (row["level"] == "FAIL")
    return row


@pytest.mark.parametrize("mode", ["sample", "all", "checksums"])
def test_files_that_are_whole(manage, document, mode):
    row = files(manage, "--files", mode)

    assert (row["level"], row["offenders"]) == ("ok", [])
    assert row["found"].startswith("1 of 1 files compared")


def test_a_missing_file_is_found_by_default(manage, document):
    default_storage.delete(document.file.name)
    stored_document()

    row = files(manage)

    assert (row["level"], row["offenders"]) == ("FAIL", [{"kind": "document", "id": document.pk}])
    assert f"1 missing (document {document.pk}: missing)" in row["found"]
    assert "backup" in row["advice"]


@pytest.mark.parametrize(
    ("content", "flaw"), [(CONTENT[:-1], "truncated"), (CONTENT + b"!", "changed"), (b"", "truncated")]
)
def test_a_file_of_another_size_is_found_by_default(manage, document, content, flaw):
    replace(document, content)

    row = files(manage)

    assert row["offenders"] == [{"kind": "document", "id": document.pk}]
    assert f"document {document.pk}: {flaw} ({len(content)} of {len(CONTENT)} bytes)" in row["found"]


def test_a_changed_file_of_the_same_size_is_found_by_its_checksum(manage, document):
    replace(document, CONTENT.swapcase())

    assert files(manage, "--files", "all")["level"] == "ok"
    row = files(manage, "--files", "checksums")

    assert row["offenders"] == [{"kind": "document", "id": document.pk}]
    assert f"document {document.pk}: changed (its checksum differs)" in row["found"]


def test_a_sample_is_a_part_and_all_is_all(manage, monkeypatch):
    monkeypatch.setattr(file_checks, "SAMPLE", 4)
    monkeypatch.setattr(file_checks, "NEIGHBOURS", 2)
    documents = [stored_document() for _ in range(30)]
    for lost in documents[:28]:
        default_storage.delete(lost.file.name)

    part, whole = files(manage), files(manage, "--files", "all")

    assert int(part["found"].split()[0]) <= 4
    assert whole["found"].startswith("30 files compared by size: 28 missing")
    assert whole["found"].endswith("; and more)")
    assert [row["id"] for row in whole["offenders"]] == [each.pk for each in documents[:10]]


def test_a_document_that_was_purged_needs_no_file(manage, document):
    default_storage.delete(document.file.name)
    write(document, status="processed", purged_at=clock.now(), file="")

    assert files(manage)["level"] == "ok"


def test_a_document_that_is_purged_meanwhile_is_not_reported(manage, document, monkeypatch):
    flaw = file_checks._flaw

    def purged_then(found, mode):
        write(document, status="processed", purged_at=clock.now(), file="")
        default_storage.delete(found.file.name)
        return flaw(found, mode)

    monkeypatch.setattr(file_checks, "_flaw", purged_then)

    assert files(manage)["level"] == "ok"


@local_only
def test_a_storage_that_does_not_answer_is_no_missing_file(manage, settings):
    DocumentFactory()
    settings.ADE_STORAGE = "azure"
    with refusing() as address:
        settings.STORAGES = storages(connection_string(address), "documents")

        row = files(manage)
        default_storage.service_client.close()

    assert (row["level"], row["offenders"]) == ("FAIL", [])
    assert "the blob service cannot be reached" in row["found"]


def test_an_unknown_mode_is_refused(manage):
    assert manage("doctor", "--files", "some", "--json").code == 2
