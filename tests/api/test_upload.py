import errno
import io
import re
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from api.models import KeptAnswer
from documents.models import Document
from tests.api.conftest import client_with
from tests.documents.hostile import NAMES
from tests.documents.samples import DOCX, PDF, SAMPLES
from tests.factories import MembershipFactory, WorkspaceFactory, events_of

pytestmark = [pytest.mark.edge, pytest.mark.django_db, pytest.mark.usefixtures("kept_apart")]
PATHS = ["/documents", "/api/v1/documents"]


def sent(data=PDF, name="invoice.pdf", content_type="application/pdf"):
    file = SimpleUploadedFile("x", data, content_type)
    # Set directly: Django's own class would sanitise the name, and a program can send any.
    file._name = name
    return file


def files_below(folder):
    return [path for path in Path(folder).rglob("*") if path.is_file()]


@pytest.mark.parametrize("path", PATHS)
def test_a_file_becomes_a_document_of_the_workspace_of_the_token(operator, workspace, path):
    answer = operator.post(path, {"file": sent()})

    document = Document.objects.get()
    assert answer.status_code == 200
    assert answer.json()["id"] == document.pk
    assert answer.json()["workspace_id"] == workspace.pk
    assert (answer.json()["name"], answer.json()["status"]) == ("invoice.pdf", "processing")
    assert answer.json()["size_bytes"] == len(PDF)
    assert events_of(document).first().actor == "olga (token of olga)"
    assert document.jobs.count() == 1


@pytest.mark.parametrize("name", SAMPLES)
def test_every_kind_of_file_is_taken(operator, name):
    data, content_type = SAMPLES[name]

    answer = operator.post("/documents", {"file": sent(data, name, content_type)})

    assert (answer.status_code, answer.json()["content_type"]) == (200, content_type)


@pytest.mark.parametrize(
    ("data", "name", "declared", "status", "code", "reason"),
    [
        (b"", "invoice.pdf", "application/pdf", 400, "invalid_request", "empty"),
        (DOCX, "invoice.pdf", "application/pdf", 415, "unsupported_media_type", "type_mismatch"),
        (PDF, "invoice.pdf", "text/html", 415, "unsupported_media_type", "type_mismatch"),
        (b"MZ\0\0", "tool.exe", "", 415, "unsupported_media_type", "unsupported_type"),
    ],
)
def test_what_is_no_document_is_refused(operator, kept_apart, data, name, declared, status, code, reason):
    answer = operator.post("/documents", {"file": sent(data, name, declared)})

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["details"] == {"reason": reason}
    assert not Document.objects.exists()
    assert not files_below(kept_apart)


def test_what_is_too_large_is_refused(operator, settings, kept_apart):
    settings.ADE_MAX_UPLOAD_BYTES = 1000

    answer = operator.post("/documents", {"file": sent(PDF * 100)})

    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert not files_below(kept_apart)
    assert not files_below(settings.FILE_UPLOAD_TEMP_DIR)


def test_the_same_bytes_again_are_told_unless_wanted(operator):
    first = operator.post("/documents", {"file": sent()}).json()

    again = operator.post("/documents", {"file": sent(name="copy.pdf")})
    wanted = operator.post("/documents", {"file": sent(name="copy.pdf"), "again": "true"})

    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert again.json()["details"] == {"reason": "already_there", "document_id": first["id"]}
    assert wanted.status_code == 200
    assert Document.objects.count() == 2


@pytest.mark.parametrize("word", ["1", "0", "yes", "True", ""])
def test_yes_and_no_have_one_word_each(operator, word):
    answer = operator.post("/documents", {"file": sent(), "again": word})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert "must be true or false" in str(answer.json())
    assert not Document.objects.exists()


def test_nobody_learns_that_another_workspace_has_the_same_bytes(operator):
    there = MembershipFactory(role="operator")
    client_with(there.workspace, there.user, "operate").post("/documents", {"file": sent()})

    assert operator.post("/documents", {"file": sent()}).status_code == 200


def test_whoever_operates_several_workspaces_says_which(client, olga, workspace):
    other = MembershipFactory(user=olga, role="operator").workspace
    client.force_login(olga)

    unsaid = client.post("/documents", {"file": sent()})
    said = client.post("/documents", {"file": sent(), "workspace": other.pk})

    assert (unsaid.status_code, unsaid.json()["code"]) == (400, "invalid_request")
    assert (said.status_code, said.json()["workspace_id"]) == (200, other.pk)


@pytest.mark.parametrize("id", [-1, 0, 2**31, 2**63, 10**30, "x", "%00", "٣", "\0", "1.5", "1e3", "[1]"])
def test_what_is_no_id_of_a_workspace_is_refused(operator, id):
    answer = operator.post("/documents", {"file": sent(), "workspace": id})

    assert answer.status_code in (400, 404)
    assert not Document.objects.exists()


def test_a_workspace_of_others_is_not_there(operator):
    answer = operator.post("/documents", {"file": sent(), "workspace": WorkspaceFactory().pk})

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert not Document.objects.exists()


def test_viewers_and_strangers_upload_nothing(viewer, client, ravi, zed, workspace):
    client.force_login(ravi)
    as_viewer = client.post("/documents", {"file": sent(), "workspace": workspace.pk})
    client.force_login(zed)
    as_stranger = client.post("/documents", {"file": sent()})

    assert viewer.post("/documents", {"file": sent()}).json()["code"] == "forbidden"
    assert (as_viewer.status_code, as_stranger.status_code) == (403, 403)
    assert Client().post("/documents", {"file": sent()}).status_code == 401
    assert not Document.objects.exists()


def test_a_page_of_others_uploads_nothing_with_a_session(olga, workspace):
    client = Client(enforce_csrf_checks=True)
    client.force_login(olga)

    answer = client.post("/documents", {"file": sent()})

    assert (answer.status_code, answer.json()["code"]) == (403, "csrf_failed")
    assert not Document.objects.exists()


def test_exactly_one_file_of_that_name_is_taken(operator):
    several = operator.post("/documents", {"file": [sent(), sent()]})
    another = operator.post("/documents", {"file": sent(), "other": sent()})
    none = operator.post("/documents", {"document": sent()})
    text = operator.post("/documents", {"file": "%PDF-1.4"})

    assert [answer.status_code for answer in (several, another, none, text)] == [400] * 4
    assert not Document.objects.exists()


def test_values_that_nobody_knows_are_refused(operator):
    answer = operator.post("/documents", {"file": sent(), "agian": "true"})

    assert (answer.status_code, answer.json()["details"]) == (400, {"unknown": ["agian"]})


@pytest.mark.parametrize("content_type", ["application/json", "application/pdf", "text/plain"])
def test_what_is_no_form_is_refused(operator, content_type):
    answer = operator.post("/documents", PDF, content_type=content_type)

    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


def test_any_name_is_data(operator):
    # Lone surrogates cannot be sent.
    names = [name for name in list(NAMES)[::4] if name.encode(errors="ignore").decode() == name]

    answers = [
        operator.post("/documents", {"file": sent(name=name, content_type=""), "again": "true"}) for name in names
    ]

    assert {answer.status_code for answer in answers} <= {200, 400, 415}
    assert not [answer for answer in answers if re.search(r"[\0-\x1f/\\]", answer.json().get("name", ""))]


def test_a_storage_that_is_away_says_when_to_come_again(operator, kept_apart):
    kept_apart.mkdir()
    (kept_apart / "documents").write_text("a file where a folder should be")

    answer = operator.post("/documents", {"file": sent()})

    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert answer["Retry-After"] == "30"


def keyed(client, key="k1", **values):
    return client.post("/documents", {"file": sent(), **values}, headers={"Idempotency-Key": key})


def test_whoever_lost_the_answer_gets_it_again_and_one_document(operator):
    first, again = keyed(operator), keyed(operator)

    assert (again.status_code, again.content) == (200, first.content)
    assert again["Idempotency-Replayed"] == "true"
    assert Document.objects.count() == 1


def test_a_key_is_for_one_request(operator):
    keyed(operator)

    others = [
        operator.post("/documents", {"file": sent(PDF + b"\n")}, headers={"Idempotency-Key": "k1"}),
        operator.post("/documents", {"file": sent(name="other.pdf")}, headers={"Idempotency-Key": "k1"}),
        keyed(operator, again="true"),
    ]

    assert {(answer.status_code, answer.json()["code"]) for answer in others} == {(422, "idempotency_key_reused")}
    assert Document.objects.count() == 1


def test_what_was_refused_may_be_asked_again_with_its_key(operator, kept_apart):
    kept_apart.mkdir()
    (kept_apart / "documents").write_text("in the way")
    away = keyed(operator)
    (kept_apart / "documents").unlink()

    assert (away.status_code, keyed(operator).status_code) == (503, 200)


@pytest.mark.django_db(transaction=True)
def test_two_at_once_with_one_key_get_one_document(threads, workspace, olga, kept_apart):
    client = client_with(workspace, olga, "operate")

    found = threads.together([lambda: keyed(client, again="true")] * 2)

    assert {answer.status_code for answer in found} == {200}
    assert len({answer.json()["id"] for answer in found}) == 1
    assert (Document.objects.count(), KeptAnswer.objects.count()) == (1, 1)
    assert len(files_below(kept_apart)) == 1


def test_a_file_is_read_whole_whatever_came_before(operator, kept_apart):
    data = PDF + b"%" * 3_000_000

    answer = operator.post("/documents", {"file": io.BytesIO(data)}, headers={"Idempotency-Key": "long"})

    assert answer.json()["size_bytes"] == len(data)
    assert files_below(kept_apart)[0].stat().st_size == len(data)


def test_a_storage_without_room_is_told(operator, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("documents.intake.default_storage.save", fail)

    answer = operator.post("/documents", {"file": sent()})

    assert (answer.status_code, answer.json()["code"]) == (507, "disk_full")
    assert answer.json()["message"].startswith("The disk is full.")
    assert not Document.objects.exists()
