"""Previews of the files of a run, whatever their content."""

import hashlib
import re
from html import unescape

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db.models import Q
from django.utils.html import escape

from console import artifact_previews
from documents import previews
from runs import lifecycle
from tests.documents.hostile import CONTROLS, TRAVERSAL, UNICODE
from tests.documents.samples import CSV, DOCX, EML, HTML, JPEG, PDF, PNG, SVG, XLSX, zipped
from tests.extractor.archives import docx_of, paragraph
from tests.extractor.pdfs import long_pdf, says, with_content
from tests.extractor.test_workbook import xlsx_of
from tests.factories import ArtifactFactory, DocumentFactory, RunFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>{{7*7}}$(id)%s{0.__class__}"
NAMES = [HOSTILE, "a.pdf.html", "a\r\nSet-Cookie: x=1", "../../etc/passwd", "'\"><svg onload=alert(1)>", "W" * 255]


@pytest.fixture(autouse=True)
def files(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.VAR_DIR = tmp_path / "var"
    settings.VAR_DIR.mkdir()


@pytest.fixture
def run(configuration, build, workspace):
    document = DocumentFactory(workspace=workspace, name="invoice.pdf")
    return RunFactory(configuration=configuration, build=build, input_document=document, status="succeeded")


@pytest.fixture
def made(run):
    """Return a function that stores an artifact of the run."""

    def made(name, content, **columns):
        data = content.encode() if isinstance(content, str) else content
        values = {
            "file": default_storage.save(f"runs/{run.pk}/1/0001", ContentFile(data)),
            "size_bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        return ArtifactFactory(run=run, name=name, **(values | columns))

    return made


@pytest.fixture
def look(seen_by, ravi):
    """Return a function that requests the preview as a viewer."""

    def look(artifact, query=""):
        page = seen_by(ravi, f"/artifacts/{artifact.pk}/{query}")
        assert page.status_code == 200
        return page

    return look


@pytest.fixture
def no_child(monkeypatch):
    """Fail if a child process is needed: text is shown without one."""
    monkeypatch.setattr(previews, "program_directory", None)


def card(page):
    """Return the text of the preview section as people read it."""
    inside = re.search(r'aria-labelledby="preview">(.+?)</section>', page.content.decode(), re.DOTALL)[1]
    return " ".join(unescape(re.sub("<[^>]+>", " ", inside)).split())


def text_of(page):
    return unescape(re.search(r"<pre[^>]*>\n(.*?)</pre>", page.content.decode(), re.DOTALL)[1])


def cells(page, tag="td"):
    return [unescape(cell) for cell in re.findall(f"<{tag}(?: scope=.col.)?>(.*?)</{tag}>", page.content.decode())]


# Text


def test_text_is_shown_as_it_is(look, made, no_child):
    page = look(made("report.txt", "Dear Ms Müller,\n\n  324.00 €\n"))

    assert text_of(page) == "Dear Ms Müller,\n\n  324.00 €\n"
    assert "This file is plain text" in page.content.decode()


def test_of_long_text_its_beginning_is_shown(look, made, no_child):
    page = look(made("long.txt", "é" * artifact_previews.TEXT_BYTES))

    assert text_of(page) == "é" * (artifact_previews.TEXT_BYTES // 2)
    assert "Only the beginning is shown" in card(page)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("page.html", HTML.decode().replace("Hello", HOSTILE)),
        ("page.pdf.html", f"<!DOCTYPE html><html><body>{HOSTILE}</body></html>"),
        ("picture.svg", SVG.decode()),
        ("invoice.xml", f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaa">]><x>&a;{HOSTILE}</x>'),
        ("page.xhtml", f'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">{HOSTILE}</html>'),
        ("page.mhtml", f"MIME-Version: 1.0\nFrom: <a@b>\nContent-Type: text/html\n\n{HOSTILE}"),
        ("code.py", f"import os\nos.system('{HOSTILE}')\n"),
        ("letter.txt", f"</pre></section>{HOSTILE}"),
        ("letter.txt", "{% load x %}{{ request.user.password }}{# #}"),
    ],
)
def test_markup_and_programs_are_text_that_does_nothing(look, made, no_child, name, content):
    page = look(made(name, content))

    assert text_of(page) == content
    assert escape(content) in page.content.decode()
    assert HOSTILE not in page.content.decode()
    assert "<svg onload" not in page.content.decode()


def test_what_terminals_obey_and_what_turns_text_around_is_made_visible(look, made, no_child):
    page = look(made("log.txt", "\x1b[31mred\x1b[0m \u202efdp.exe\n2026-01-01 INFO forged\r\n"))

    assert text_of(page) == "\\x1b[31mred\\x1b[0m \\u202efdp.exe\n2026-01-01 INFO forged\n"


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "latin-1"])
def test_text_may_be_encoded_otherwise(look, made, no_child, codec):
    assert "Grüße" in text_of(look(made("a.txt", "Grüße aus Köln".encode(codec))))


def test_an_empty_file_says_so(look, made, no_child):
    assert "No content to show." in card(look(made("a.txt", "")))


# JSON


def test_json_is_indented(look, made, no_child):
    page = look(made("a.json", '{"total":324.00,"lines":[],"who":"' + HOSTILE + '"}'))

    assert text_of(page) == '{\n  "total": 324.00,\n  "lines": [],\n  "who": "' + HOSTILE + '"\n}'
    assert HOSTILE not in page.content.decode()
    assert "This file is JSON" in page.content.decode()


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a": ', "hello", "[" * 60 + "]" * 60])
def test_what_is_no_json_or_too_deep_is_shown_as_text(look, made, no_child, content):
    page = look(made("a.json", content))

    assert text_of(page) == content[: artifact_previews.TEXT_BYTES]
    assert (
        "The name says JSON, but the content is not JSON or is nested more than 40 levels deep."
        in page.content.decode()
    )


def test_large_json_is_shown_as_text(look, made, no_child):
    page = look(made("a.json", "[" + "1," * 200_000 + "1]"))

    assert len(text_of(page)) == artifact_previews.TEXT_BYTES
    assert "Only the beginning is shown" in card(page)


def test_json_that_grows_when_it_is_indented_is_cut(look, made, no_child):
    page = look(made("a.json", "[" * 39 + "1," * 100_000 + "1" + "]" * 39))

    assert len(text_of(page)) < artifact_previews.JSON_BYTES + 10
    assert "Only the beginning is shown" in card(page)


# Tables


def test_a_table_in_text_is_a_table(look, made):
    page = look(made("lines.csv", CSV.decode() + f'"{HOSTILE}",=1+1,\u202e\n'))

    assert cells(page, "th") == ["date", "amount", "text"]
    assert cells(page)[:3] == ["2024-01-02", "3.50", "coffee"]
    assert cells(page)[-3:] == [HOSTILE, "=1+1", "\\u202e"]
    assert HOSTILE not in page.content.decode()
    assert "4 rows, 3 columns. The first row is used as the heading." in card(page)


def test_of_a_long_table_the_first_rows_are_shown(look, made):
    page = look(made("long.csv", "".join(f"{number},a,b\n" for number in range(2000))))

    assert len(cells(page)) == 99 * 3
    assert "2000 rows, 3 columns; only the first 100 rows and 3 columns are shown." in card(page)


def test_a_workbook_is_shown_sheet_by_sheet(look, made, tmp_path):
    file = xlsx_of(tmp_path / "a.xlsx", Sales=[["Item", "Price"], [HOSTILE, 3.5]], Notes=[["a", "b"], ["c", "d"]])
    artifact = made("a.xlsx", file.read_bytes())

    first, second = look(artifact), look(artifact, "?page=2")

    assert (cells(first, "th"), cells(first)) == (["Item", "Price"], [HOSTILE, "3.5"])
    assert "sheet 1 of 2" in card(first)
    assert 'href="?page=2"' in first.content.decode()
    assert (cells(second), "heading. Notes a b c d" in card(second)) == (["c", "d"], True)
    assert "sheet 2 of 2" in card(look(artifact, "?page=99"))


def test_a_letter_is_shown_as_its_text(look, made):
    page = look(made("a.docx", docx_of(paragraph("Dear Ms &lt;b&gt; Müller"))))

    assert text_of(page) == "Dear Ms <b> Müller"


def test_a_table_that_cannot_be_read_is_shown_as_text(look, made, monkeypatch):
    def refuse(stored, number):
        raise previews.PreviewFailed("expected at most 1,000,000 values, found more")

    monkeypatch.setattr(previews, "excerpt", refuse)

    page = look(made("a.csv", CSV))

    assert text_of(page) == CSV.decode()
    assert "Not shown as a table: expected at most 1,000,000 values, found more" in page.content.decode()


@pytest.mark.parametrize(
    "told",
    [b"", b"[]", b"{", b"null", b'{"rows": 1}', b'{"rows": [1]}', b'{"rows": [{"a": 1}]}', b"[" * 100_000],
)
def test_of_a_child_that_was_taken_over_nothing_is_believed(look, made, monkeypatch, tmp_path, told):
    monkeypatch.setattr(previews, "_peek", lambda stored, number: told)

    page = look(made("a.xlsx", xlsx_of(tmp_path / "a.xlsx", A=[[1]]).read_bytes()))

    assert "No preview. The extractor returned an invalid excerpt of the page" in card(page)


# Images


def test_a_pdf_is_shown_page_by_page(look, seen_by, ravi, made, tmp_path):
    artifact = made("a.pdf", long_pdf(tmp_path / "a.pdf", 3).read_bytes())

    page = look(artifact, "?page=2")
    (picture,) = re.findall(r'<img src="(/artifacts[^"]+)"', page.content.decode())
    answer = seen_by(ravi, picture)

    assert picture == f"/artifacts/{artifact.pk}/pages/2.png"
    assert "page 2 of 3" in card(page)
    assert (answer["Content-Type"], answer.content[:4]) == ("image/png", b"\x89PNG")
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Cache-Control"] == "private, max-age=300"


@pytest.mark.parametrize(("name", "content"), [("a.png", PNG), ("a.jpeg", JPEG)])
def test_an_image_is_never_sent_as_it_is(look, seen_by, ravi, made, name, content):
    artifact = made(name, content)

    answer = seen_by(ravi, f"/artifacts/{artifact.pk}/pages/1.png")

    assert look(artifact).content
    assert answer["Content-Type"] in ("image/png", "image/svg+xml")
    assert answer.content != content


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("broken.pdf", b"%PDF-1.7 but nothing else"),
        ("broken.pdf", PDF),
        ("broken.png", PNG[:-20]),
        ("broken.xlsx", XLSX),
        ("broken.docx", DOCX),
        ("program.pdf", b"MZ\x90\0" + b"\0" * 200),
        ("archive.zip", zipped({"a": "b"})),
        ("program.txt", b"\x7fELF\0\0\0" + bytes(range(256))),
        # Files that are valid as two types at once.
        ("both.png", PNG + b"<html><script>alert(1)</script></html>"),
        ("both.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR<html><body onload=alert(1)>"),
        ("both.pdf", b"<html><script>alert(1)</script>%PDF-1.7\nstartxref\n9\n%%EOF"),
    ],
)
def test_what_cannot_be_previewed_says_why(look, made, name, content):
    page = look(made(name, content))

    why = r"(cannot be read: |Unsupported file type: |is ambiguous: |its content is )"
    assert re.search(rf"No preview\. .*{why}.+\. You can download the file instead\.", card(page))
    assert "<img src" not in page.content.decode().split("<main")[1]
    assert "<script>alert" not in page.content.decode()


def test_a_pdf_whose_page_cannot_be_drawn_says_so_after_it_was_tried(look, seen_by, ravi, made, monkeypatch):
    artifact = made("a.pdf", with_content(says("Hello")))
    look(artifact)
    previews._keep(previews._path(artifact, 1, ".txt"), b"expected a page of some size, found none")

    picture, page = seen_by(ravi, f"/artifacts/{artifact.pk}/pages/1.png"), look(artifact)

    assert picture["Content-Type"] == "image/svg+xml"
    assert "No preview. expected a page of some size, found none. You can download the file instead." in card(page)


def test_a_name_that_says_something_else_is_told(look, made, tmp_path):
    page = look(made("invoice.txt", long_pdf(tmp_path / "a.pdf", 1).read_bytes()))
    mail = look(made("mail.pdf", EML))

    assert "The name of the file ends in .txt like plain text, but its content is a PDF" in unescape(
        page.content.decode()
    )
    assert "This file is a PDF (detected from the content)." in page.content.decode()
    assert "The name of the file ends in .pdf like a PDF, but its content is an e-mail" in unescape(
        mail.content.decode()
    )


@pytest.mark.parametrize("number", ["0", "99999", "9" * 30])
def test_a_page_that_is_not_there_has_no_picture(seen_by, ravi, made, tmp_path, number):
    artifact = made("a.pdf", long_pdf(tmp_path / "a.pdf", 1).read_bytes())

    assert seen_by(ravi, f"/artifacts/{artifact.pk}/pages/{number}.png").status_code == 404


def test_what_is_no_picture_is_not_sent_as_one(seen_by, ravi, made):
    for artifact in (made("a.svg", SVG), made("a.html", HTML), made("a.csv", CSV)):
        assert seen_by(ravi, f"/artifacts/{artifact.pk}/pages/1.png").status_code == 404


def test_whoever_comes_while_others_are_looked_at_is_told_to_come_again(look, made, monkeypatch):
    monkeypatch.setattr(previews, "PATIENCE_SECONDS", 0)
    artifact = made("a.csv", CSV)

    with previews._turn(), previews._turn():
        assert "Other files are being previewed. Reload in a moment. You can download the file instead." in card(
            look(artifact)
        )


# Any type


def test_what_is_too_large_is_not_opened(look, made, no_child):
    page = look(made("a.txt", "small", size_bytes=artifact_previews.MOST_BYTES + 1))

    said = "No preview. This file is 64.0 MB. Files of up to 64.0 MB can be previewed. You can download the file"
    assert said in card(page).replace("\xa0", " ")


def test_a_file_that_is_gone_says_so(look, seen_by, ravi, made):
    artifact = made("a.txt", "here")
    default_storage.delete(artifact.file)

    assert "This file is missing from the storage. Report this to an operator. You can" in card(look(artifact))
    assert seen_by(ravi, f"/artifacts/{artifact.pk}/pages/1.png").status_code == 404


def test_a_storage_that_is_away_says_so(look, made, monkeypatch):
    def refuse(self, name, mode="rb"):
        raise OSError("no route to host")

    artifact = made("a.txt", "here")
    monkeypatch.setattr(default_storage.__class__, "open", refuse)

    assert "This file cannot be read from the storage now. Try again later. You can" in card(look(artifact))


def test_of_a_run_that_was_pruned_no_file_is_left(seen_by, ravi, run, made):
    artifact = made("a.txt", "here")
    lifecycle.prune([run.pk], where=Q(status="succeeded"), actor="test")

    assert seen_by(ravi, f"/artifacts/{artifact.pk}/").status_code == 404
    page = seen_by(ravi, f"/runs/{run.pk}/").content.decode()
    assert "Output files" in page
    assert "(retention period)" in page


@pytest.mark.parametrize("name", [*NAMES, *TRAVERSAL[:12], *CONTROLS[:8], *UNICODE[:6]])
def test_a_hostile_name_is_text(look, seen_by, ravi, made, name):
    artifact = made(name.replace("\0", ""), "hello")

    for page in (look(artifact), seen_by(ravi, f"/runs/{artifact.run_id}/")):
        shown = page.content.decode()
        assert HOSTILE not in shown
        assert "<svg onload" not in shown
        assert "Set-Cookie: x" not in str(page.headers)


def test_members_look_and_strangers_find_nothing(seen_by, client, olga, zed, made):
    artifact = made("a.txt", "hello")
    paths = [f"/artifacts/{artifact.pk}/", f"/artifacts/{artifact.pk}/pages/1.png"]

    assert seen_by(olga, paths[0]).status_code == 200
    assert [seen_by(zed, path).status_code for path in paths] == [404, 404]
    client.logout()
    assert all(client.get(path).url.startswith("/sign-in/") for path in paths)


def test_a_page_asks_little(asks_at_most, ravi, made):
    asks_at_most(8, ravi, f"/artifacts/{made('a.txt', 'hello').pk}/")


def test_the_page_of_a_run_leads_to_it(seen_by, ravi, made):
    artifact = made("a.txt", "hello")

    page = seen_by(ravi, f"/runs/{artifact.run_id}/").content.decode()

    assert f'href="/artifacts/{artifact.pk}/">Preview<' in page
    assert f'href="/artifacts/{artifact.pk}/download/">Download<' in page
