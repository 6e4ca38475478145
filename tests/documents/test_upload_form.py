import os
import re
import stat
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from documents.models import Document
from tests.documents.hostile import NAMES
from tests.documents.samples import DOCX, HTML, PDF, PNG, SAMPLES, TXT
from tests.factories import DocumentFactory, MembershipFactory, UserFactory, WorkspaceFactory, events_of

pytestmark = pytest.mark.django_db

ADD = "/admin/documents/document/add/"


@pytest.fixture(autouse=True)
def storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    return settings.MEDIA_ROOT


@pytest.fixture
def site(olga, client):
    client.force_login(olga)
    return client


@pytest.fixture
def send(site, workspace):
    def send(data=PDF, name="invoice.pdf", content_type="application/pdf", **values):
        sent = SimpleUploadedFile("x", data, content_type)
        # Set directly: Django's own class would sanitise the name, and a browser can send any.
        sent._name = name
        return site.post(ADD, {"workspace": workspace.pk, "file": sent} | values)

    return send


def errors_of(page, field="file"):
    return page.context["form"].errors.get(field, [])


def test_the_form_works_without_scripts_and_says_what_is_taken(site, workspace):
    page = site.get(ADD).content.decode()
    content = page[page.index('id="content-main"') :]

    assert 'enctype="multipart/form-data"' in content
    assert "<script" not in content
    assert "style=" not in content
    assert f'<option value="{workspace.pk}" selected>Aster</option>' in content
    assert re.search(r'<label [^>]*for="id_file"', content)
    assert 'aria-describedby="id_file_helptext"' in content
    assert 'id="id_file_helptext"' in content
    assert "PDF, docx, xlsx" in content


def test_the_list_leads_to_the_form(site, workspace):
    assert f'href="{ADD}"' in site.get("/admin/documents/document/").content.decode()


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_becomes_a_document(send, workspace, name):
    data, content_type = SAMPLES[name]

    answer = send(data, name, content_type)

    document = Document.objects.get()
    assert answer.url == f"/admin/documents/document/{document.pk}/change/"
    assert (document.name, document.content_type, document.workspace) == (name, content_type, workspace)
    assert events_of(document).get().actor == "olga"


def test_the_page_of_the_document_says_so(site, send):
    page = site.get(send().url)

    document = Document.objects.get()
    assert [str(message) for message in page.context["messages"]] == [f"Stored invoice.pdf as document {document.pk}."]
    assert f'href="/documents/{document.pk}/download/"' in page.content.decode()


@pytest.mark.parametrize(
    ("data", "name", "declared", "message"),
    [
        (b"", "invoice.pdf", "application/pdf", "is empty."),
        (DOCX, "invoice.pdf", "application/pdf", "but its content is a Word document (docx)."),
        (PNG + HTML, "scan.png", "image/png", "that is also an HTML page"),
        (b"MZ\0\0", "tool.exe", "", "Unsupported file type: a Windows program."),
        (PDF, "invoice.pdf", "text/html", "The file was sent as"),
    ],
)
def test_what_is_refused_is_told_beside_the_field(send, storage, data, name, declared, message):
    page = send(data, name, declared)

    assert page.status_code == 200
    assert message in errors_of(page)[0]
    content = page.content.decode()
    assert 'role="alert"' in content
    assert "<title>Error: " in content
    assert 'aria-invalid="true"' in content
    assert not Document.objects.exists()
    assert not [path for path in storage.rglob("*") if path.is_file()]


def test_what_is_too_large_is_told(send, settings, storage):
    settings.ADE_MAX_UPLOAD_BYTES = 1000

    page = send(TXT * 1000, "letter.txt", "text/plain")

    assert errors_of(page) == ["The file is larger than the limit of 1,000 bytes."]
    assert not Document.objects.exists()
    assert os.listdir(settings.FILE_UPLOAD_TEMP_DIR) == []


def test_many_files_together_are_limited_too(site, workspace, settings):
    settings.ADE_MAX_UPLOAD_BYTES = 1000
    files = {f"other{n}": SimpleUploadedFile("a.txt", b"x" * 300) for n in range(4)}

    page = site.post(ADD, {"workspace": workspace.pk, **files, "file": SimpleUploadedFile("a.txt", b"hello")})

    assert errors_of(page) == ["The file is larger than the limit of 1,000 bytes."]


def test_nothing_sent_is_told(site, workspace):
    page = site.post(ADD, {"workspace": workspace.pk})

    assert errors_of(page) == ["This field is required."]


def test_what_does_not_fit_into_memory_lies_where_nobody_else_reads(send, settings, monkeypatch):
    settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 100
    seen = []
    save = default_storage._save

    def watch(name, content):
        (path,) = Path(settings.FILE_UPLOAD_TEMP_DIR).iterdir()
        seen.append(stat.S_IMODE(path.stat().st_mode))
        return save(name, content)

    monkeypatch.setattr(default_storage, "_save", watch)

    send(TXT * 100, "letter.txt", "text/plain")

    assert seen == [0o600]
    assert settings.FILE_UPLOAD_TEMP_DIR == settings.VAR_DIR / "uploads"
    assert stat.S_IMODE(Path(settings.FILE_UPLOAD_TEMP_DIR).stat().st_mode) == 0o700
    assert os.listdir(settings.FILE_UPLOAD_TEMP_DIR) == []


def test_the_same_bytes_lead_to_the_document_that_is_there(send, site):
    send()
    first = Document.objects.get()

    page = send(name="other.pdf")

    content = page.content.decode()
    assert "This file was already uploaded as document " in errors_of(page)[0]
    assert f'<a href="/admin/documents/document/{first.pk}/change/">' in content
    assert 'value="Store it again anyway"' in content
    assert '<input type="hidden" name="name" value="other.pdf">' in content
    assert Document.objects.count() == 1

    answer = site.post(ADD, {"again": first.pk, "name": "other.pdf"})

    second = Document.objects.exclude(pk=first.pk).get()
    assert answer.url == f"/admin/documents/document/{second.pk}/change/"
    assert (second.name, second.sha256) == ("other.pdf", first.sha256)
    assert second.file.name != first.file.name


def test_what_is_stored_again_is_looked_at_again(send, site):
    send()

    page = site.post(ADD, {"again": Document.objects.get().pk, "name": "other.html"})

    assert "The name of the file ends in .html like an HTML page, but" in errors_of(page, "again")[0]
    assert "The name of the file ends in .html like an HTML page, but" in page.content.decode()
    assert Document.objects.count() == 1


def test_what_is_of_others_cannot_be_stored_again(site, olga):
    read_only = MembershipFactory(user=olga, role="viewer").workspace
    for document in (DocumentFactory(), DocumentFactory(workspace=read_only)):
        page = site.post(ADD, {"again": document.pk, "name": "a.pdf"})

        assert errors_of(page, "again")
    for nonsense in ("", "x", "9" * 30, "-1", "1e9"):
        assert errors_of(site.post(ADD, {"again": nonsense, "name": "a.pdf"}), "again")
    assert Document.objects.count() == 2


def test_a_file_that_is_gone_is_told(send, site):
    send()
    document = Document.objects.get()
    default_storage.delete(document.file.name)

    page = site.post(ADD, {"again": document.pk, "name": "a.pdf"})

    assert page.status_code == 503
    assert "Could not store the file: " in page.content.decode()


def test_a_storage_that_is_down_is_no_fault_of_the_file(send, monkeypatch):
    def down(name, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(default_storage, "_save", down)

    page = send()

    assert page.status_code == 503
    assert errors_of(page) == ["Could not store the file: No space left on device. Try again later."]
    assert not Document.objects.exists()


@pytest.mark.parametrize("name", [name for name in NAMES if len(name) < 300], ids=lambda name: ascii(name[:40]))
def test_no_name_does_harm(site, workspace, name):
    # Encoded as browsers do, and as a hostile client would.
    shown = name.encode(errors="surrogatepass").replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    body = b'--B\r\nContent-Disposition: form-data; name="workspace"\r\n\r\n%d\r\n' % workspace.pk
    body += b'--B\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n' % shown
    page = site.post(ADD, body + TXT + b"\r\n--B--\r\n", "multipart/form-data; boundary=B")

    assert page.status_code in (200, 302)
    for document in Document.objects.all():
        assert len(document.name.encode()) <= 255
        assert "/" not in document.name
        content = site.get(f"/admin/documents/document/{document.pk}/change/").content.decode()
        assert "<script>alert(1)" not in content
        assert "<img src=x" not in content


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", "multipart/form-data"),
        (b"x" * 100, "multipart/form-data; boundary=" + "b" * 1000),
        (b"--B\r\n", "multipart/form-data; boundary=B"),
        (
            b'--B\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nno end',
            "multipart/form-data; boundary=B",
        ),
        (
            b'--B\r\nContent-Disposition: form-data; name="file"\r\n\r\nno name\r\n--B--',
            "multipart/form-data; boundary=B",
        ),
        (b"file=x", "application/x-www-form-urlencoded"),
        (b"%PDF-1.4", "application/pdf"),
        (
            b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n'
            b"Content-Transfer-Encoding: base64\r\n\r\n!!!!\r\n--B--\r\n",
            "multipart/form-data; boundary=B",
        ),
        (
            b"--B\r\nContent-Disposition: form-data; name=\"file\"; filename*=nonsense''%ff\r\n\r\nx\r\n--B--\r\n",
            "multipart/form-data; boundary=B",
        ),
    ],
)
def test_forms_that_are_none_are_refused(site, workspace, settings, body, content_type):
    site.raise_request_exception = False

    assert site.post(ADD, body, content_type).status_code in (200, 400)

    assert not Document.objects.exists()
    assert os.listdir(settings.FILE_UPLOAD_TEMP_DIR) == []


def test_viewers_and_strangers_add_nothing(ravi, zed, workspace, client):
    for user in (ravi, zed):
        client.force_login(user)

        assert client.get(ADD).status_code == 403
        answer = client.post(ADD, {"workspace": workspace.pk, "file": SimpleUploadedFile("a.pdf", PDF)})

        assert answer.status_code == 403
    client.logout()
    assert client.get(ADD).url.startswith("/admin/login/")
    assert not Document.objects.exists()


def test_nothing_is_added_to_a_workspace_that_one_does_not_operate(send, olga):
    read_only = MembershipFactory(user=olga, role="viewer").workspace

    for workspace in (read_only, WorkspaceFactory()):
        assert errors_of(send(workspace=workspace.pk), "workspace")
    assert not Document.objects.exists()


def test_whoever_operates_several_chooses(site, olga, workspace):
    other = MembershipFactory(user=olga, role="admin").workspace

    page = site.get(ADD).content.decode()

    assert f'<option value="{other.pk}">' in page
    assert " selected>" not in page.replace('<option value="" selected>', "")


def test_superusers_may(workspace, client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))

    sent = SimpleUploadedFile("a.pdf", PDF, "application/pdf")

    assert client.post(ADD, {"workspace": workspace.pk, "file": sent}).status_code == 302


def test_it_takes_a_token_against_forgery(olga, workspace):
    site = Client(enforce_csrf_checks=True)
    site.force_login(olga)

    answer = site.post(ADD, {"workspace": workspace.pk, "file": SimpleUploadedFile("a.pdf", PDF)})

    assert answer.status_code == 403
    assert not Document.objects.exists()
