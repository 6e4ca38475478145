import pytest

from documents import lifecycle
from documents.models import Document
from tests.factories import DocumentFactory, events_of

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def test_list_chooses(manage, document):
    other = DocumentFactory(status="failed")

    def ids(*arguments):
        return {row["id"] for row in manage("document", "list", *arguments, "--json").json["documents"]}

    assert ids() == {document.pk, other.pk}
    assert ids("--status", "failed") == {other.pk}
    assert ids("--workspace", "Aster") == {document.pk}
    assert ids("--before", other.pk) == {document.pk}


def test_show_tells_of_jobs_and_stages(manage, workspace):
    values = {"name": "a.pdf", "content_type": "application/pdf", "size_bytes": 1, "sha256": "0" * 64}
    document = lifecycle.add_document(workspace, values, actor="olga")
    claim = lifecycle.begin_next_job("w1")
    lifecycle.plan(claim.id, 2, actor="w1")

    shown = manage("document", "show", document.pk, "--json").json

    assert [job["status"] for job in shown["jobs"]] == ["PROCESSING"]
    assert [(stage["name"], stage["segment"]) for stage in shown["stages"]] == [
        ("extract", 0),
        ("extract", 1),
        ("embed", 0),
        ("publish", 0),
    ]
    assert [event["kind"] for event in shown["events"]] == ["DOCUMENT_ADDED"]


def test_show_is_readable_without_jobs(manage, document):
    ended = manage("document", "show", document.pk)

    assert ended.code == 0
    assert "invoice.pdf" in ended.out


def test_one_that_does_not_exist(manage):
    assert manage("document", "show", 999_999).code == 6


@pytest.fixture
def letter(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "media"
    path = tmp_path / "letter.txt"
    path.write_bytes(b"Dear Olga,\n")
    return path


def test_add_stores_files(manage, workspace, letter):
    other = letter.with_name("table.csv")
    other.write_bytes(b"a,b,c\n1,2,3\n")

    ended = manage("document", "add", letter, other, "--workspace", "Aster", "--as", "olga", "--json")

    assert ended.code == 0
    rows = ended.json["documents"]
    assert [(row["path"], row["result"], row["message"]) for row in rows] == [
        (str(letter), "added", None),
        (str(other), "added", None),
    ]
    assert [row["content_type"] for row in rows] == ["text/plain", "text/csv"]
    assert rows[0]["workspace"] == "Aster"
    assert events_of(Document.objects.get(pk=rows[0]["id"])).get().actor == "olga (command)"


def test_add_names_the_document_that_is_there(manage, workspace, letter):
    first = manage("document", "add", letter, "--workspace", "Aster", "--json").json["documents"][0]["id"]

    ended = manage("document", "add", letter, "--workspace", "Aster", "--json")

    (row,) = ended.json["documents"]
    assert (ended.code, row["id"], row["result"]) == (1, first, "already_there")
    assert Document.objects.count() == 1
    shown = manage("document", "add", letter, "--workspace", "Aster")
    assert (shown.code, f"This file was already uploaded as document {first} (" in shown.out) == (1, True)
    again = manage("document", "add", letter, "--workspace", "Aster", "--again", "--json")
    assert (again.code, again.json["documents"][0]["result"]) == (0, "added")
    assert Document.objects.count() == 2


def test_add_stores_the_others_when_one_is_refused(manage, workspace, letter):
    false, empty = letter.with_name("false.pdf"), letter.with_name("empty.txt")
    false.write_bytes(b"no PDF")
    empty.touch()

    ended = manage("document", "add", false, empty, letter, "--workspace", "Aster", "--json")

    assert ended.code == 1
    assert [(row["result"], row["id"] is None) for row in ended.json["documents"]] == [
        ("type_mismatch", True),
        ("empty", True),
        ("added", False),
    ]
    assert "The name of the file ends in .pdf like a PDF" in ended.json["documents"][0]["message"]
    assert Document.objects.get().name == "letter.txt"


def test_add_takes_no_more_than_the_limit(manage, workspace, letter, settings):
    settings.ADE_MAX_UPLOAD_BYTES = 5

    ended = manage("document", "add", letter, "--workspace", "Aster", "--json")

    assert (ended.code, ended.json["documents"][0]["result"]) == (1, "too_large")


def test_add_wants_files(manage, workspace, letter):
    for path in (letter.with_name("none.txt"), letter.parent):
        assert manage("document", "add", letter, path, "--workspace", "Aster").code == 6
    assert not Document.objects.exists()


def test_what_files_are_called_does_nothing_to_the_terminal(manage, workspace, letter):
    path = letter.with_name("a\x1b[2Jb\u202e.txt")
    path.write_bytes(b"hello")

    ended = manage("document", "add", path, "--workspace", "Aster")
    again = manage("document", "add", path, "--workspace", "Aster")

    assert Document.objects.get().name == "a[2Jb.txt"
    assert not any(c in ended.out + again.out for c in "\x1b\u202e")
