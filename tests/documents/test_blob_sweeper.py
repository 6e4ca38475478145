import io
import os
import time

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from documents import intake, periodic
from documents.models import Document
from tests.documents.samples import PDF, TXT

pytestmark = pytest.mark.django_db
DAY = 24 * 3600


@pytest.fixture(autouse=True)
def storage(settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.FILE_UPLOAD_TEMP_DIR = tmp_path / "uploads"
    settings.FILE_UPLOAD_TEMP_DIR.mkdir()
    monkeypatch.setattr(periodic, "_blobs", periodic.Sweeper(periodic._walk_documents, periodic._keys_of_documents))
    return settings.MEDIA_ROOT


def leave(number=0, month="2024/01", age=DAY + 60):
    key = default_storage.save(f"documents/{month}/{number:032x}", ContentFile(b"orphan"))
    return make_old(key, age)


def make_old(key, age=DAY + 60):
    past = time.time() - age
    os.utime(default_storage.path(key), (past, past))
    return key


def test_what_no_row_names_is_removed_after_a_day():
    old, young = leave(1), leave(2, age=DAY - 600)

    periodic.sweep_blobs("w1")

    assert not default_storage.exists(old)
    assert default_storage.exists(young)


def test_what_a_row_names_stays_however_old(workspace):
    document = intake.receive(workspace, io.BytesIO(PDF), "invoice.pdf", "", "olga")
    make_old(document.file.name, 1000 * DAY)
    leave(1, month=f"{document.created_at:%Y/%m}")

    periodic.sweep_blobs()

    kept = default_storage.listdir(f"documents/{document.created_at:%Y/%m}")[1]
    assert [f"documents/{document.created_at:%Y/%m}/{name}" for name in kept] == [document.file.name]


def test_what_a_process_left_that_died_is_removed(workspace, storage, monkeypatch):
    class Died(BaseException):
        pass

    def die(name):
        if name == "upload.blob_written":
            raise Died

    # As after a SIGKILL: no clean-up runs.
    monkeypatch.setattr(intake.failpoints, "hit", die)
    monkeypatch.setattr(default_storage, "delete", lambda name: None)
    with pytest.raises(Died):
        intake.receive(workspace, io.BytesIO(PDF), "invoice.pdf", "", "olga")
    monkeypatch.undo()
    (path,) = [path for path in storage.rglob("*") if path.is_file()]
    key = str(path.relative_to(storage))

    periodic.Sweeper(periodic._walk_documents, periodic._keys_of_documents).sweep()
    assert default_storage.exists(key)
    make_old(key)
    periodic.Sweeper(periodic._walk_documents, periodic._keys_of_documents).sweep()

    assert not default_storage.exists(key)
    assert not Document.objects.exists()


def test_only_what_an_intake_has_stored_is_looked_at(storage):
    others = [
        "documents/2024/01/notes.txt",
        "documents/2024/readme",
        "documents/7/2/" + "0" * 32,
        "runs/1/1/0001",
        "other",
    ]
    for key in others:
        make_old(default_storage.save(key, ContentFile(b"x")))

    periodic.sweep_blobs()

    assert [default_storage.exists(key) for key in others] == [True] * len(others)


def test_each_call_looks_at_so_many_and_the_next_goes_on(monkeypatch):
    monkeypatch.setattr(periodic, "AT_ONCE", 10)
    keys = [leave(n, month) for month in ("2023/12", "2024/01", "2024/02") for n in range(8)]
    left = []

    for _ in range(4):
        periodic.sweep_blobs()
        left.append(sum(default_storage.exists(key) for key in keys))

    # The folders of years and months count towards the limit too.
    assert left == [16, 8, 0, 0]


def test_it_begins_again_at_its_end():
    periodic.sweep_blobs()
    key = leave()

    periodic.sweep_blobs()
    periodic.sweep_blobs()

    assert not default_storage.exists(key)


def test_what_somebody_else_removes_meanwhile_is_gone(monkeypatch):
    keys = [leave(1), leave(2)]
    named = periodic._keys_of_documents

    def remove_one(found):
        default_storage.delete(keys[0])
        return named(found)

    periodic.Sweeper(periodic._walk_documents, remove_one).sweep()

    assert not any(map(default_storage.exists, keys))


def test_a_storage_that_is_away_is_tried_again(monkeypatch):
    key = leave()
    monkeypatch.setattr(default_storage, "listdir", lambda path: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        periodic.sweep_blobs()
    monkeypatch.undo()

    periodic.sweep_blobs()
    periodic.sweep_blobs()

    assert not default_storage.exists(key)


def test_an_empty_storage_is_fine():
    assert periodic.sweep_blobs() == 0


def test_many_rows_cost_one_question_for_each_call(workspace, django_assert_num_queries):
    for n in range(5):
        document = intake.receive(workspace, io.BytesIO(TXT + b"%d" % n), "letter.txt", "", "olga")
        make_old(document.file.name)

    with django_assert_num_queries(1):
        periodic.sweep_blobs()

    assert Document.objects.count() == 5


def test_uploads_that_a_dead_process_left_are_removed(settings):
    folder = settings.FILE_UPLOAD_TEMP_DIR
    for name, age in (("old.upload", DAY + 60), ("young.upload", 60)):
        (folder / name).write_bytes(b"x")
        os.utime(folder / name, (time.time() - age,) * 2)
    (folder / "folder").mkdir()
    os.utime(folder / "folder", (0, 0))

    periodic.sweep_blobs()

    assert sorted(os.listdir(folder)) == ["folder", "young.upload"]
    settings.FILE_UPLOAD_TEMP_DIR = folder / "none"
    periodic.sweep_blobs()
