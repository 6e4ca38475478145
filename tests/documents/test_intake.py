import io
import stat
from contextlib import suppress
from pathlib import Path
from threading import Barrier

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.db import IntegrityError, OperationalError

from documents import intake, lifecycle
from documents.intake import DuplicateFile, Refused, StorageFailed
from documents.models import Document, DocumentProcessingJob
from tests.azurite import local_only, stored_files
from tests.documents import samples
from tests.documents.hostile import NAMES
from tests.documents.samples import DOCX, HTML, PDF, PNG, SAMPLES, TXT
from tests.factories import WorkspaceFactory, told
from tests.stepping import DEADLINE_SECONDS
from work import failpoints

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("each_storage")]


def receive(workspace, data=PDF, name="invoice.pdf", declared="", **options):
    return intake.receive(workspace, io.BytesIO(data), name, declared, "olga", **options)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_becomes_a_document_with_its_job(workspace, name):
    data, content_type = SAMPLES[name]

    document = receive(workspace, data, name, content_type)

    document.refresh_from_db()
    assert (document.workspace, document.name, document.content_type) == (workspace, name, content_type)
    assert (document.size_bytes, document.status) == (len(data), "processing")
    with document.file.open() as file:
        assert file.read() == data
    assert document.jobs.get().status == "PENDING"
    assert told(document) == ["DOCUMENT_ADDED"]


def test_what_is_also_done_is_done_with_it_or_not_at_all(workspace):
    def fail(document):
        raise IntegrityError("somebody was quicker")

    seen = []
    document = receive(workspace, also=seen.append)
    with pytest.raises(IntegrityError):
        receive(workspace, again=True, also=fail)

    assert seen == [document] == list(Document.objects.all())
    assert stored_files() == [document.file.name]


def test_where_it_lies_is_ours_to_say(workspace):
    document = receive(workspace, name="../../etc/passwd\0.pdf")

    assert intake.KEY.fullmatch(document.file.name)
    assert stored_files() == [document.file.name]


@local_only
def test_others_on_this_machine_cannot_read_it(workspace, settings):
    document = receive(workspace)

    path, storage = Path(document.file.path), settings.MEDIA_ROOT
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(each.stat().st_mode) for each in storage.rglob("*") if each.is_dir()} == {0o700}


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:40]))
def test_no_name_leads_anywhere(workspace, name):
    # The extension of some names contradicts the content.
    with suppress(Refused):
        receive(workspace, TXT, name)

    assert set(stored_files()) == set(Document.objects.values_list("file", flat=True))
    assert all(intake.KEY.fullmatch(key) for key in Document.objects.values_list("file", flat=True))


@pytest.mark.parametrize(
    ("data", "name", "declared", "code", "message"),
    [
        (b"", "invoice.pdf", "", "empty", "The file invoice.pdf is empty."),
        (b"MZ\0\0", "tool.exe", "", "unsupported_type", "Use PDF, docx"),
        (b"\0\1\2", "invoice.pdf", "application/pdf", "unsupported_type", "Unsupported file type: unknown data."),
        (
            DOCX,
            "invoice.pdf",
            "",
            "type_mismatch",
            "The name of the file ends in .pdf like a PDF, but its content is a Word document",
        ),
        (
            PDF,
            "page.html",
            "text/html",
            "type_mismatch",
            "The name of the file ends in .html like an HTML page, but its content is a PDF.",
        ),
        (
            PDF,
            "invoice.pdf",
            "text/html",
            "type_mismatch",
            "The file was sent as 'text/html', but its content is a PDF.",
        ),
        (PDF + DOCX, "invoice.pdf", "", "type_mismatch", "a PDF that is also a zip archive"),
        (PNG + HTML, "scan.png", "image/png", "type_mismatch", "a PNG image that is also an HTML page"),
    ],
)
def test_what_is_refused_leaves_nothing(workspace, data, name, declared, code, message):
    with pytest.raises(Refused) as refused:
        receive(workspace, data, name, declared)

    assert refused.value.code == code
    assert message in str(refused.value)
    assert stored_files() == []
    assert not Document.objects.exists()


def test_the_limit_holds_to_the_byte(workspace, settings):
    settings.ADE_MAX_UPLOAD_BYTES = 1000
    data = PDF + b"\n" * (1000 - len(PDF))

    assert receive(workspace, data).size_bytes == 1000
    with pytest.raises(Refused) as refused:
        receive(workspace, data + b"\n")

    assert refused.value.code == "too_large"
    assert str(refused.value) == "The file is larger than the limit of 1,000 bytes."
    assert len(stored_files()) == 1


class Endless(io.RawIOBase):
    """A stream that reports a small size and never ends."""

    place = read_bytes = 0

    def seek(self, place, whence=0):
        self.place = place if whence == 0 else 100
        return self.place

    def read(self, size=-1):
        data = (TXT * (size // len(TXT) + 1))[:size]
        self.read_bytes += len(data)
        return data


def test_what_never_ends_is_read_no_further_than_the_limit(workspace, settings, each_storage):
    settings.ADE_MAX_UPLOAD_BYTES = 1_000_000
    file = Endless()
    file.size = 100

    with pytest.raises(Refused, match="larger than the limit of 1,000,000 bytes"):
        intake.receive(workspace, file, "letter.txt", "", "olga")

    assert file.read_bytes < {"local": 1_500_000, "azure": 6_000_000}[each_storage]
    assert stored_files() == []


def test_what_django_has_put_aside_is_stored_too(workspace):
    with TemporaryUploadedFile("invoice.pdf", "application/pdf", len(PDF), None) as sent:
        sent.write(PDF)

        document = intake.receive(workspace, sent, sent.name, sent.content_type, "olga")

    with document.file.open() as file:
        assert file.read() == PDF


def test_the_same_bytes_are_there_already(workspace):
    first = receive(workspace)

    with pytest.raises(DuplicateFile) as refused:
        receive(workspace, name="other.pdf")

    assert (refused.value.document, refused.value.code) == (first, "already_there")
    assert str(refused.value) == f"This file was already uploaded as document {first.pk} (invoice.pdf)."
    assert len(stored_files()) == 1


def test_the_same_bytes_are_stored_again_if_wanted(workspace):
    first = receive(workspace)

    second = receive(workspace, name="other.pdf", again=True)
    third = intake.store_again(first, "third.pdf", "olga")

    assert len({first.file.name, second.file.name, third.file.name}) == 3
    assert (third.sha256, third.name, third.workspace) == (first.sha256, "third.pdf", workspace)
    with pytest.raises(DuplicateFile) as refused:
        receive(workspace)
    assert refused.value.document == first


def test_the_same_bytes_in_another_workspace_are_new(workspace):
    receive(workspace)

    assert receive(WorkspaceFactory()).pk


def test_what_is_gone_is_not_stored_again(workspace):
    first = receive(workspace)
    default_storage.delete(first.file.name)

    with pytest.raises(StorageFailed):
        intake.store_again(first, "a.pdf", "olga")


@pytest.mark.django_db(transaction=True)
def test_two_who_send_the_same_at_once_are_both_answered(workspace, threads):
    barrier = Barrier(4)

    def send():
        barrier.wait(DEADLINE_SECONDS)
        try:
            return receive(workspace).pk
        except DuplicateFile as refused:
            return refused.document.pk

    answers = [each.answer() for each in [threads.start(send) for _ in range(4)]]

    there = set(Document.objects.values_list("pk", flat=True))
    assert set(answers) == there
    assert len(stored_files()) == len(there)


class Broken(io.BytesIO):
    def __init__(self, data, at):
        super().__init__(data)
        self.at = at

    def read(self, size=-1):
        if self.tell() >= self.at:
            raise OSError(5, "Input/output error")
        return super().read(min(size, 65536))


def test_a_file_that_breaks_off_leaves_nothing(workspace):
    data = PDF + b"\n" * 300_000

    with pytest.raises(OSError, match="Input/output error"):
        intake.receive(workspace, Broken(data, 100), "invoice.pdf", "", "olga")

    assert stored_files() == []


@local_only
def test_a_storage_that_does_not_take_it_is_told(workspace, settings, monkeypatch):
    def full(name, content):
        path = settings.MEDIA_ROOT / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(default_storage, "_save", full)

    with pytest.raises(StorageFailed) as refused:
        receive(workspace)

    assert refused.value.code == "storage_unavailable"
    assert "No space left on device" in str(refused.value)
    assert stored_files() == []
    assert not Document.objects.exists()


@pytest.fixture
def fails_at():
    yield lambda point: failpoints.arm(f"{point}:raise*1")
    failpoints.arm("")


@pytest.mark.parametrize("point", ["upload.blob_written", "upload.before_commit"])
def test_an_error_between_file_and_row_leaves_neither(workspace, fails_at, point):
    fails_at(point)

    with pytest.raises(OperationalError):
        receive(workspace)

    assert stored_files() == []
    assert not Document.objects.exists()
    assert not DocumentProcessingJob.objects.exists()


def test_a_row_that_cannot_be_leaves_no_file(workspace, monkeypatch):
    def refuse(*args, **options):
        raise IntegrityError("no")

    monkeypatch.setattr(lifecycle, "add_document", refuse)

    with pytest.raises(IntegrityError):
        receive(workspace)

    assert stored_files() == []


@pytest.mark.django_db(transaction=True)
def test_a_commit_of_which_nobody_knows_whether_it_took_place_keeps_the_file(workspace, monkeypatch):
    class Unsure:
        def __enter__(self):
            return None

        def __exit__(self, *error):
            raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(intake.transaction, "atomic", Unsure)
    monkeypatch.setattr(lifecycle, "add_document", lambda *args, **options: None)

    with pytest.raises(OperationalError):
        receive(workspace)

    # A row may refer to the file. Otherwise the sweeper removes it.
    assert len(stored_files()) == 1


def test_a_file_of_this_machine(workspace, tmp_path):
    path = tmp_path / "letter.txt"
    path.write_bytes(TXT)

    assert intake.add_file(workspace, path, actor="olga").content_type == "text/plain"
    with pytest.raises(DuplicateFile):
        intake.add_file(workspace, path, actor="olga")
    assert intake.add_file(workspace, path, actor="olga", again=True).name == "letter.txt"
    with pytest.raises(OSError, match="No such file"):
        intake.add_file(workspace, tmp_path / "none.txt", actor="olga")


def test_nothing_is_held_in_memory_that_is_long(workspace, each_storage):
    file = io.BytesIO(samples.PNG[:-12] + bytes(20_000_000) + samples.PNG[-12:])
    longest = 0
    read = file.read

    class Watched:
        seek = file.seek

        def read(self, size=-1):
            nonlocal longest
            data = read(size)
            longest = max(longest, len(data))
            return data

    intake.receive(workspace, Watched(), "scan.png", "", "olga")

    assert longest <= {"local": 1 << 17, "azure": 4 << 20}[each_storage]
