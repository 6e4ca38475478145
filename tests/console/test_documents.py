import re
from html import unescape

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from documents import previews, purging
from documents.models import Document, DocumentProcessingJob, FieldCorrection
from runs.models import Run
from tests.documents.samples import PDF, PNG, TXT
from tests.extractor.pdfs import says, with_content
from tests.factories import (
    DocumentChunkFactory,
    DocumentFactory,
    DocumentFieldFactory,
    FieldCorrectionFactory,
    JobFactory,
    MembershipFactory,
    RunFactory,
    StageFactory,
    UserFactory,
    WorkspaceFactory,
    age,
    events_of,
    force_status,
    told,
    write,
)

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

HOSTILE = "<script>alert(1)</script>{{7*7}}"


@pytest.fixture(autouse=True)
def storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.VAR_DIR = tmp_path / "var"
    settings.VAR_DIR.mkdir()


@pytest.fixture
def drawn(monkeypatch):
    """Record the pages that are rendered, without starting the renderer."""
    pages = []

    def draw(document, number):
        pages.append((document.pk, number))
        return b"\x89PNG"

    monkeypatch.setattr(previews, "_draw", draw)
    return pages


@pytest.fixture
def read(workspace):
    """Return a function that creates a processed document with a file and one page per text."""

    def read(*texts, data=b"%PDF", **columns):
        key = default_storage.save("documents/2026/01/" + "0" * 32, ContentFile(data))
        made = DocumentFactory(**{"workspace": workspace, "file": key, **columns})
        for number, text in enumerate(texts, 1):
            DocumentChunkFactory(document=made, page=number, text=text)
        return force_status(made, "processed", pages=len(texts) or 1)

    return read


def page_of(document, *below):
    return f"/documents/{document.pk}/" + "".join(f"{each}/" for each in below)


def image_of(document, number=1):
    return f"{page_of(document)}pages/{number}.png"


def text_of(page):
    return " ".join(unescape(re.sub("<[^>]+>", " ", page.content.decode())).split())


def names_in(page):
    return [row.name for row in page.context["slice"].rows]


# The list


def test_the_latest_document_comes_first(seen_by, ravi, workspace):
    for name in ("first", "second"):
        DocumentFactory(workspace=workspace, name=name)

    page = seen_by(ravi, "/documents/")

    assert names_in(page) == ["second", "first"]


def test_a_list_goes_on_behind_the_last_row_of_a_page(seen_by, ravi, workspace, monkeypatch):
    monkeypatch.setattr("console.lists.ROWS", 2)
    made = [DocumentFactory(workspace=workspace, name=str(n)) for n in range(5)]
    # Both have the same timestamp.
    write(made[2], created_at=made[1].created_at)

    seen, path = [], "/documents/"
    while path:
        page = seen_by(ravi, path)
        seen += names_in(page)
        path = page.context["slice"].older and f"/documents/{page.context['slice'].older}"

    assert seen == ["4", "3", "2", "1", "0"]


def test_what_came_in_earlier_stands_further_below(seen_by, ravi, workspace):
    DocumentFactory(workspace=workspace, name="young")
    age(DocumentFactory(workspace=workspace, name="old"), 3600)

    assert names_in(seen_by(ravi, "/documents/")) == ["young", "old"]


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("?status=failed", ["bad"]),
        ("?status=processing", ["new"]),
        ("?status=guessed", ["new", "bad"]),
        ("?before=999999", []),
        ("?before=x", ["new", "bad"]),
        ("?workspace=999999", []),
    ],
)
def test_a_list_can_be_narrowed(seen_by, ravi, workspace, asked, names):
    force_status(DocumentFactory(workspace=workspace, name="bad"), "failed")
    DocumentFactory(workspace=workspace, name="new")

    assert names_in(seen_by(ravi, f"/documents/{asked}")) == names


def test_a_list_has_what_is_ones_own(seen_by, ravi, zed, workspace):
    DocumentFactory(workspace=workspace, name="mine")
    DocumentFactory(name="theirs")
    also = MembershipFactory(user=ravi).workspace
    DocumentFactory(workspace=also, name="also mine")

    assert names_in(seen_by(ravi, "/documents/")) == ["also mine", "mine"]
    assert names_in(seen_by(ravi, f"/documents/?workspace={also.pk}")) == ["also mine"]
    assert names_in(seen_by(zed, "/documents/")) == []
    superuser = UserFactory(is_superuser=True)
    assert names_in(seen_by(superuser, "/documents/")) == ["also mine", "theirs", "mine"]


def test_an_empty_list_says_what_to_do(seen_by, olga, ravi):
    assert "No documents yet. Add one" in text_of(seen_by(olga, "/documents/"))
    assert "Operators can add documents here" in text_of(seen_by(ravi, "/documents/"))
    assert "No documents match this filter." in text_of(seen_by(ravi, "/documents/?status=failed"))


def test_a_list_asks_few_questions(asks_at_most, olga, workspace):
    last = DocumentFactory.create_batch(60, workspace=workspace)[30]

    asks_at_most(6, olga, "/documents/?status=processing")
    asks_at_most(7, olga, f"/documents/?before={last.pk}")


# Adding a document


def sent(data=PDF, name="invoice.pdf", content_type="application/pdf"):
    return SimpleUploadedFile(name, data, content_type)


def test_a_file_becomes_a_document(pressed_by, olga, workspace):
    page = pressed_by(olga, "/documents/add/", workspace=workspace.pk, file=sent())

    document = Document.objects.get()
    assert page.said == [f"Stored invoice.pdf as document {document.pk}."]
    assert page.redirect_chain == [(page_of(document), 302)]
    assert events_of(document).get().actor == "olga"


def test_what_is_refused_is_told_and_can_be_sent_again(pressed_by, olga, workspace):
    page = pressed_by(olga, "/documents/add/", workspace=workspace.pk, file=sent(b"", "empty.pdf"))

    assert not Document.objects.exists()
    assert "Nothing was stored." in text_of(page)
    assert page.context["form"].errors["file"]
    assert 'enctype="multipart/form-data"' in page.content.decode()


def test_the_same_bytes_are_stored_again_if_somebody_says_so(pressed_by, olga, workspace):
    pressed_by(olga, "/documents/add/", workspace=workspace.pk, file=sent(TXT, "a.txt", "text/plain"))
    page = pressed_by(olga, "/documents/add/", workspace=workspace.pk, file=sent(TXT, "b.txt", "text/plain"))
    assert "This file already exists" in text_of(page)

    page = pressed_by(olga, "/documents/add/", again=Document.objects.get().pk, name="b.txt")

    assert [each.name for each in Document.objects.order_by("pk")] == ["a.txt", "b.txt"]
    assert page.said[0].startswith("Stored b.txt")


def test_several_files_are_stored_and_each_says_what_became_of_it(pressed_by, olga, workspace):
    there = DocumentFactory(workspace=workspace)
    pressed_by(olga, "/documents/add/", workspace=workspace.pk, file=sent(TXT, "there.txt", "text/plain"))
    there = Document.objects.exclude(pk=there.pk).get()
    files = [sent(name="new.pdf"), sent(TXT, "again.txt", "text/plain"), sent(b"", "empty.pdf")]

    page = pressed_by(olga, "/documents/add/", workspace=workspace.pk, file=files)

    new = Document.objects.get(name="new.pdf")
    stored, again, empty = page.context["each"]
    assert (stored.document, again.there, empty.document) == (new, there, None)
    text = text_of(page)
    assert f"stored document {new.pk}" in text
    assert f"already there document {there.pk}" in text
    assert f"refused {empty.refused}" in text
    assert not Document.objects.filter(name__in=["again.txt", "empty.pdf"]).exists()


def test_of_several_files_those_that_are_too_large_together_are_named_as_missing(pressed_by, olga, workspace, settings):
    settings.ADE_MAX_UPLOAD_BYTES = len(PDF) + len(TXT) + 10
    files = [sent(), sent(TXT, "b.txt", "text/plain"), sent(TXT + b"!" * 50, "c.txt", "text/plain")]

    page = pressed_by(olga, "/documents/add/", workspace=workspace.pk, file=files)

    assert [each.name for each in page.context["each"]] == ["invoice.pdf", "b.txt"]
    assert "The files that are missing here were not stored" in text_of(page)


def test_a_file_that_is_too_large_beside_a_small_one_is_named_as_missing(pressed_by, olga, workspace, settings):
    settings.ADE_MAX_UPLOAD_BYTES = len(PDF) + 10

    page = pressed_by(olga, "/documents/add/", workspace=workspace.pk, file=[sent(), sent(PDF + b"!" * 99, "b.pdf")])

    assert [each.name for each in page.context["each"]] == ["invoice.pdf"]
    assert "The files that are missing here were not stored" in text_of(page)


def test_several_files_for_no_workspace_are_not_stored(pressed_by, olga, workspace):
    page = pressed_by(olga, "/documents/add/", file=[sent(), sent(TXT, "b.txt", "text/plain")])

    assert page.context["upload"].errors["workspace"]
    assert "Nothing was stored." in text_of(page)
    assert not Document.objects.exists()


@pytest.mark.parametrize(
    ("file", "status", "told"),
    [
        ((PDF, "new.pdf"), 201, {"document", "page"}),
        ((TXT, "again.txt", "text/plain"), 409, {"error", "document", "page"}),
        ((b"", "empty.pdf"), 422, {"error"}),
    ],
    ids=["stored", "already there", "refused"],
)
def test_the_script_of_the_page_is_told_in_json(client, pressed_by, olga, workspace, file, status, told):
    pressed_by(olga, "/documents/add/", workspace=workspace.pk, file=sent(TXT, "there.txt", "text/plain"))
    sending = {"workspace": workspace.pk, "file": sent(*file)}

    answer = client.post("/documents/add/", sending, headers={"accept": "application/json"})

    assert (answer.status_code, answer.json().keys()) == (status, told)
    if status == 201:
        assert answer.json()["page"] == page_of(Document.objects.get(name="new.pdf"))
    if status == 409:
        assert answer.json()["page"] == page_of(Document.objects.get(name="there.txt"))


def test_only_operators_add(seen_by, pressed_by, olga, ravi, zed, workspace):
    assert seen_by(olga, "/documents/add/").status_code == 200
    for person in (ravi, zed):
        assert seen_by(person, "/documents/add/").status_code == 403
        sending = {"workspace": workspace.pk, "file": sent()}
        assert pressed_by(person, "/documents/add/", **sending).status_code == 403
    assert not Document.objects.exists()


def test_a_superuser_without_any_workspace_is_led_to_make_one(seen_by, pressed_by):
    root = UserFactory(is_superuser=True, is_staff=True)
    empty, page = seen_by(root, "/documents/"), seen_by(root, "/documents/add/")
    assert '<a href="/documents/add/">Create a workspace</a>' in empty.content.decode()
    assert page.status_code == 200
    assert "No workspaces yet." in page.content.decode()
    (button,) = re.findall(r'class="button main" href="([^"]*)"', page.content.decode())
    assert seen_by(root, button).status_code == 200
    assert pressed_by(root, "/documents/add/").status_code == 409
    without_admin = seen_by(UserFactory(is_superuser=True, is_staff=False), "/documents/add/").content.decode()
    assert button not in without_admin
    assert "because it is not marked as staff" in without_admin

    pressed_by(root, button, name="Accounts", **{f"memberships-{each}_FORMS": 0 for each in ("TOTAL", "INITIAL")})

    assert "No workspaces yet." not in seen_by(root, "/documents/add/").content.decode()


def test_a_superuser_who_is_in_no_workspace_adds_to_any(seen_by, pressed_by, workspace):
    root = UserFactory(is_superuser=True)
    assert workspace.name in seen_by(root, "/documents/add/").content.decode()

    pressed_by(root, "/documents/add/", workspace=workspace.pk, file=sent())

    assert Document.objects.get().workspace == workspace


def test_nobody_adds_to_the_workspace_of_others(pressed_by, olga):
    page = pressed_by(olga, "/documents/add/", workspace=WorkspaceFactory().pk, file=sent())

    assert page.context["form"].errors["workspace"]
    assert not Document.objects.exists()


# The page of a document


def test_who_is_not_signed_in_is_asked_to(client, document):
    for path in (page_of(document), image_of(document), "/documents/", "/documents/add/"):
        assert client.get(path)["Location"].startswith("/sign-in/")


def test_that_of_others_is_not_there(seen_by, zed, read):
    document = read("text")

    assert seen_by(zed, page_of(document)).status_code == 404
    assert seen_by(zed, image_of(document)).status_code == 404


def test_a_document_that_was_read_is_shown_with_its_text_and_fields(seen_by, ravi, read):
    document = read("Dear Ms Example", "The second page", name="letter.pdf")
    DocumentFieldFactory(
        document=document, name="total", value="12.00", confidence=0.7, page=2, box=[0.1, 0.2, 0.3, 0.25]
    )
    DocumentFieldFactory(document=document, name="date", value="2026-01-01", confidence=0.95, page=1, box=[0, 0, 1, 1])
    JobFactory(document=document, status="COMPLETED")

    page = seen_by(ravi, page_of(document))

    text, source = text_of(page), page.content.decode()
    assert "processed 2 pages" in text
    assert "Dear Ms Example" in text
    assert "The second page" not in text
    assert f'<img src="{image_of(document)}" alt="Page 1 of letter.pdf">' in source
    assert 'x="-2.0" y="-2.0" width="1004.0" height="1004.0"' in source
    assert source.count("<rect") == 1
    # The fields that need review, and the place of one on the other page.
    assert [line.row.name for line in page.context["lines"]] == ["total", "date"]
    assert 'href="?page=2#box-2"' in source
    assert 'id="field-2"' in source
    assert '<a href="#field-1" aria-label="Date: 2026-01-01"' in source
    assert "1 to check" in text
    assert "<button>Correct" not in source


def test_another_page_can_be_chosen(seen_by, ravi, read):
    document = read("one", "two", "three")

    page = seen_by(ravi, page_of(document) + "?page=2")

    assert page.context["page"].number == 2
    assert "two" in text_of(page)
    assert f'<img src="{image_of(document, 2)}"' in page.content.decode()
    for asked, number in (("99", 3), ("0", 1), ("x", 1), ("9" * 30, 1)):
        assert seen_by(ravi, page_of(document) + f"?page={asked}").context["page"].number == number


def test_what_is_text_is_shown_as_text(seen_by, ravi, read):
    document = read("Some text", content_type="text/plain")

    page = seen_by(ravi, page_of(document))

    assert "Some text" in text_of(page)
    assert '<img src="/documents' not in page.content.decode()
    assert seen_by(ravi, image_of(document)).status_code == 404


def test_why_a_document_is_not_read_yet_is_explained(seen_by, ravi, workspace):
    document = DocumentFactory(workspace=workspace)
    JobFactory(document=document)

    page = seen_by(ravi, page_of(document))

    assert "Why it is waiting" in text_of(page)
    assert "no worker" in text_of(page).lower()
    assert page.context["live"]


def test_how_it_was_read_is_told_stage_by_stage(seen_by, ravi, document):
    job = JobFactory(document=document, status="PROCESSING")
    StageFactory(job=job, name="embed")
    StageFactory(job=job, name="extract", status="ERROR")
    StageFactory(job=job, name="extract", status="DONE")
    write(job, attempts=1, error_log="attempt 1: it was dark\n")

    page = seen_by(ravi, page_of(document))

    shown = [(stage.name, stage.segment, stage.status) for stage in page.context["processing"].stages]
    assert shown == [("extract", 0, "ERROR"), ("extract", 1, "DONE"), ("embed", 0, "NEW")]
    text = text_of(page)
    assert "1 of 3 attempts failed, 1 of 3 stages done." in text
    assert "attempt 1: it was dark" in text


def test_of_many_stages_those_in_trouble_are_shown(seen_by, ravi, document, monkeypatch):
    monkeypatch.setattr("console.processing.MOST_STAGES", 2)
    job = JobFactory(document=document, status="PROCESSING")
    for status in ("DONE", "DONE", "ERROR"):
        StageFactory(job=job, status=status)

    page = seen_by(ravi, page_of(document))

    assert [stage.segment for stage in page.context["processing"].stages] == [0, 2]
    assert "And 1 more" in text_of(page)


def test_why_a_document_failed_is_told(seen_by, ravi, document):
    force_status(JobFactory(document=document), "FAILED", error_message=HOSTILE)
    force_status(document, "failed")

    page = seen_by(ravi, page_of(document))

    assert HOSTILE not in page.content.decode()
    assert HOSTILE in unescape(page.content.decode())


def test_its_runs_and_its_history_are_shown(seen_by, ravi, workspace, document, configuration):
    runs = [RunFactory(configuration=configuration, input_document=document, status="succeeded") for _ in range(2)]
    RunFactory(configuration=configuration)

    page = seen_by(ravi, page_of(document))

    assert [run.pk for run in page.context["runs"]] == [runs[1].pk, runs[0].pk]
    assert [event.kind for event in page.context["events"]] == ["DOCUMENT_PROCESSED", "DOCUMENT_ADDED"]


def test_one_that_was_purged_says_so(seen_by, pressed_by, olga, workspace, read):
    write(workspace, document_retention_days=1)
    document = age(read("text"), 2 * 24 * 3600)
    assert purging.purge(document.pk, days=1, actor="test")

    page = seen_by(olga, page_of(document))

    assert "purged on" in text_of(page)
    assert "Download" not in text_of(page)
    assert "Process again" not in text_of(page)
    assert seen_by(olga, image_of(document)).status_code == 404
    assert "whose document was purged" in pressed_by(olga, page_of(document, "reprocess")).said[0]
    assert "has been purged" in pressed_by(olga, page_of(document, "correct"), name="a", value="b").said[0]


def test_hostile_names_and_values_stay_text(seen_by, olga, read):
    document = read(HOSTILE, name=HOSTILE)
    DocumentFieldFactory(document=document, name=HOSTILE, value=f"{HOSTILE}\n" * 9, page=1, box=[0, 0, 0.5, 0.5])
    FieldCorrectionFactory(document=document, name=f"{HOSTILE}2", value=HOSTILE, corrected_by=HOSTILE)

    for path in (page_of(document), "/documents/"):
        source = seen_by(olga, path).content.decode()

        assert "<script>alert" not in source
        assert "&lt;script&gt;alert(1)&lt;/script&gt;{{7*7}}" in source


@pytest.mark.parametrize("box", [None, [], [1, 2], ["a"] * 4, [0, 0, 5, 5], {"x": 1}, [None] * 4, [True, 0, 0, 0]])
def test_boxes_that_are_none_are_not_drawn(seen_by, ravi, read, box):
    document = read("text")
    DocumentFieldFactory(document=document, page=1, box=box)

    page = seen_by(ravi, page_of(document))

    assert page.status_code == 200
    assert page.content.decode().count("<rect") == (box == [True, 0, 0, 0])


def test_many_fields_are_shown_in_part_and_then_all(seen_by, olga, read, monkeypatch):
    monkeypatch.setattr("console.boxes.MOST_SHOWN", 3)
    document = read("text")
    DocumentFieldFactory.create_batch(5, document=document, page=1)

    page = seen_by(olga, page_of(document))

    assert len(page.context["lines"]) == 3
    assert "And 2 more." in text_of(page)
    assert len(seen_by(olga, page_of(document) + "?fields=all").context["lines"]) == 5


# While a document is processed, its page also says why it waits.
@pytest.mark.parametrize(("status", "most"), [("processed", 15), ("processing", 16)])
def test_a_page_asks_few_questions(asks_at_most, olga, read, configuration, status, most):
    document = read(*["text"] * 30)
    DocumentFieldFactory.create_batch(20, document=document, page=1, box=[0, 0, 0.5, 0.5])
    FieldCorrectionFactory.create_batch(5, document=document)
    job = JobFactory(document=document, status="PROCESSING")
    StageFactory.create_batch(5, job=job)
    RunFactory.create_batch(3, configuration=configuration, input_document=document, status="succeeded")
    force_status(document, status)

    asks_at_most(most, olga, page_of(document))


# Corrections


@pytest.fixture
def field(read):
    return DocumentFieldFactory(document=read("text"), name="total", value="12.00", confidence=0.7, page=1)


def test_a_value_is_corrected_in_place_and_withdrawn(pressed_by, olga, field):
    document, back = field.document, f"{page_of(field.document)}#field-1"

    page = pressed_by(olga, page_of(document, "correct"), name="total", value="13.00", back=back)

    assert page.said == ["Corrected total from “12.00” to “13.00”."]
    assert page.redirect_chain == [(back, 302)]
    assert "corrected by olga" in text_of(page)
    assert "read as “12.00”" in text_of(page)
    page = pressed_by(olga, page_of(document, "withdraw"), name="total")
    assert page.said == ["Withdrew the correction of “total”."]
    assert not FieldCorrection.objects.exists()
    page = pressed_by(olga, page_of(document, "withdraw"), name="total")
    assert page.said == ["There is no correction of “total” to withdraw."]
    assert told(document)[-2:] == ["FIELD_CORRECTED", "FIELD_CORRECTION_WITHDRAWN"]


def test_what_was_read_is_confirmed(pressed_by, olga, field):
    page = pressed_by(olga, page_of(field.document, "correct"), name="total", value="12.00")

    assert page.said == ["Confirmed total: “12.00”."]
    assert "confirmed by olga" in text_of(page)
    assert page.context["unsure"] == 0


def test_what_nobody_has_found_is_said(pressed_by, olga, field):
    page = pressed_by(olga, page_of(field.document, "correct"), name="order", value="7")

    assert [line.row.name for line in page.context["lines"]] == ["total", "order"]


@pytest.mark.parametrize(("name", "value"), [("", "x"), ("n" * 101, "x"), ("total", "x" * 5001)])
def test_what_cannot_be_kept_is_told(pressed_by, olga, field, name, value):
    page = pressed_by(olga, page_of(field.document, "correct"), name=name, value=value)

    assert page.said[0].startswith("The correction was not saved. The ")
    assert page.said[0].endswith(".")
    assert not FieldCorrection.objects.exists()


def test_a_document_is_processed_again(pressed_by, olga, read):
    document = read("text")

    page = pressed_by(olga, page_of(document, "reprocess"))

    assert page.said == ["Queued 1 document again."]
    assert Document.objects.get().status == "processing"
    assert DocumentProcessingJob.objects.get().status == "PENDING"
    assert pressed_by(olga, page_of(document, "reprocess")).said == ["Skipped 1 that is in progress."]


@pytest.mark.parametrize("verb", ["correct", "withdraw", "reprocess"])
def test_buttons_are_for_operators_and_pressed(seen_by, pressed_by, olga, ravi, zed, field, verb):
    path, sending = page_of(field.document, verb), {"name": "total", "value": "1"}

    assert pressed_by(ravi, path, **sending).status_code == 403
    assert pressed_by(zed, path, **sending).status_code == 404
    assert seen_by(olga, path).status_code == 405
    unguarded = Client(enforce_csrf_checks=True)
    unguarded.force_login(olga)
    assert unguarded.post(path, sending).status_code == 403
    assert told(field.document) == ["DOCUMENT_ADDED"]
    source = seen_by(ravi, page_of(field.document)).content.decode()
    assert path not in source


# Page images


def test_the_picture_of_a_page_is_kept_to_who_may_see_it(seen_by, ravi, read, drawn):
    document = read("one", "two")

    answer = seen_by(ravi, image_of(document, 2))

    assert (answer.status_code, answer["Content-Type"], answer.content) == (200, "image/png", b"\x89PNG")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Cache-Control"] == "private, max-age=300"
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    assert seen_by(ravi, image_of(document, 2)).content == b"\x89PNG"
    assert drawn == [(document.pk, 2)]


@pytest.mark.parametrize("number", [0, 3, 10**30])
def test_a_page_that_is_not_there_has_no_picture(seen_by, ravi, read, drawn, number):
    assert seen_by(ravi, image_of(read("one", "two"), number)).status_code == 404
    assert drawn == []


def test_whoever_comes_while_others_are_drawn_is_told_to_come_again(seen_by, ravi, read, drawn, monkeypatch):
    monkeypatch.setattr(previews, "PATIENCE_SECONDS", 0)
    document = read("text")

    with previews._turn(), previews._turn():
        answer = seen_by(ravi, image_of(document))

    assert (answer.status_code, answer["Retry-After"]) == (503, "3")
    assert seen_by(ravi, image_of(document)).status_code == 200


def test_a_page_is_really_drawn(seen_by, ravi, read):
    document = read("text", data=with_content(says("Hello")))

    answer = seen_by(ravi, image_of(document))

    assert answer["Content-Type"] == "image/png"
    assert answer.content.startswith(b"\x89PNG\r\n")


def test_what_cannot_be_drawn_is_told_in_words(seen_by, ravi, read):
    document = read("text", data=b"%PDF-1.7 but nothing else")

    answer = seen_by(ravi, image_of(document))
    page = seen_by(ravi, page_of(document))

    assert (answer.status_code, answer["Content-Type"]) == (200, "image/svg+xml")
    assert "No preview. This PDF cannot be read: " in text_of(page)
    assert '<img src="/documents' not in page.content.decode()


def test_a_file_that_is_gone_has_no_picture(seen_by, ravi, read):
    document = read("text")
    default_storage.delete(document.file.name)

    answer = seen_by(ravi, image_of(document))

    assert (answer.status_code, answer["Content-Type"]) == (200, "image/svg+xml")


def test_an_image_is_drawn_smaller(seen_by, ravi, read):
    document = read("text", data=PNG, content_type="image/png")

    assert seen_by(ravi, image_of(document))["Content-Type"] in ("image/png", "image/svg+xml")
    assert Run.objects.count() == 0
