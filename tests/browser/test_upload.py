import io

import pytest

from documents import intake
from documents.models import Document
from tests.documents.samples import HTML, PDF, PNG, TXT

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.django_db(transaction=True)]

ADD = "/admin/documents/document/add/"


@pytest.fixture(autouse=True)
def storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


def choose(page, name, data, content_type="application/pdf"):
    page.get_by_label("File").set_input_files({"name": name, "mimeType": content_type, "buffer": data})


def test_olga_uploads_a_document_and_sees_it_listed(sign_in, olga):
    person = sign_in(olga)
    page = person.page

    person.press(page.get_by_role("link", name="Documents", exact=True).last)
    person.press(page.get_by_role("link", name="Add document"))
    choose(page, "invoice.pdf", PDF)
    person.press(page.get_by_role("button", name="Upload"))

    document = Document.objects.get()
    assert person.messages() == [f"Stored invoice.pdf as document {document.pk}."]
    assert page.locator(".field-status .readonly").inner_text() == "Processing"
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Download").click()
    assert downloading.value.suggested_filename == "invoice.pdf"
    assert downloading.value.path().read_bytes() == PDF
    person.go("/admin/documents/document/")
    assert page.locator("#result_list tbody tr").count() == 1
    assert "invoice.pdf" in page.locator("#result_list tbody").inner_text()
    assert person.complaints == []


def test_olga_is_told_why_a_file_is_refused(sign_in, olga):
    person = sign_in(olga)
    page = person.page

    person.go(ADD)
    choose(page, "scan.png", PNG + HTML, "image/png")
    person.press(page.get_by_role("button", name="Upload"))

    assert page.get_by_role("alert").inner_text() == "The file was not stored. Correct the errors below."
    assert "a PNG image that is also an HTML page" in page.locator(".errorlist").inner_text()
    assert page.get_by_label("Workspace").locator("option:checked").inner_text() == "Aster"
    assert not Document.objects.exists()
    assert person.complaints == []


def test_olga_stores_the_same_bytes_again(sign_in, olga, workspace):
    there = intake.receive(workspace, io.BytesIO(PDF), "first.pdf", "", "ravi")
    person = sign_in(olga)
    page = person.page

    person.go(ADD)
    choose(page, "second.pdf", PDF)
    person.press(page.get_by_role("button", name="Upload"))
    assert page.get_by_role("link", name=f"Document {there.pk}, first.pdf").is_visible()
    assert Document.objects.count() == 1
    person.press(page.get_by_role("button", name="Store it again anyway"))

    assert "Stored second.pdf as document" in person.messages()[0]
    assert Document.objects.count() == 2
    assert person.complaints == []


def test_the_form_works_without_scripts(chromium, live_server, client, olga):
    client.force_login(olga)
    context = chromium.new_context(java_script_enabled=False)
    cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}
    context.add_cookies([cookie])
    page = context.new_page()

    page.goto(f"{live_server.url}{ADD}")
    choose(page, "letter.txt", TXT, "text/plain")
    with page.expect_navigation():
        page.get_by_role("button", name="Upload").click()

    assert page.url.endswith(f"/admin/documents/document/{Document.objects.get().pk}/change/")
    context.close()


def test_what_a_file_is_called_stays_text(sign_in, olga):
    person = sign_in(olga)
    person.page.on("dialog", lambda dialog: person.complaints.append(dialog.message))

    person.go(ADD)
    choose(person.page, "<img src=x onerror=alert(1)>.txt", TXT, "text/plain")
    person.press(person.page.get_by_role("button", name="Upload"))

    assert "<img src=x onerror=alert(1)>.txt" in person.messages()[0]
    assert person.complaints == []


def test_ravi_has_no_form(sign_in, ravi):
    person = sign_in(ravi)

    person.go("/admin/documents/document/")
    assert person.page.get_by_role("link", name="Add document").count() == 0
    assert person.go(ADD).status == 403
