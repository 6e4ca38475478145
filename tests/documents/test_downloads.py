import io
import time
from datetime import UTC, datetime, timedelta
from email.message import Message
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import pytest
from django.core.files.storage import default_storage
from django.core.signing import TimestampSigner

from documents import downloads, intake, views
from tests.azurite import azure_only, followed, local_only
from tests.documents.hostile import NAMES
from tests.documents.samples import PDF, SAMPLES
from tests.factories import DocumentFactory, MembershipFactory, UserFactory, write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("each_storage")]


@pytest.fixture
def stored(workspace):
    return intake.receive(workspace, io.BytesIO(PDF), "invoice.pdf", "", "olga")


def path_of(document):
    return f"/documents/{document.pk}/download/"


def name_in(answer):
    """Return the file name as a browser parses it."""
    header = Message()
    header["Content-Disposition"] = answer["Content-Disposition"]
    return header.get_filename()


def body_of(answer):
    return b"".join(answer.streaming_content)


@pytest.fixture
def get(client):
    """Return a function that requests a path and follows redirects, as a browser does."""
    return lambda path: followed(client.get(path))


@pytest.mark.parametrize("who", ["olga", "ravi"])
def test_members_get_the_file(client, get, stored, who, request):
    client.force_login(request.getfixturevalue(who))

    answer = get(path_of(stored))

    assert answer.status_code == 200
    assert body_of(answer) == PDF
    assert answer["Content-Disposition"] == 'attachment; filename="invoice.pdf"'
    assert answer["Content-Type"] == "application/pdf"
    assert answer["Content-Length"] == str(len(PDF))
    assert answer["Cache-Control"] == "private, no-store"


def test_no_browser_runs_or_keeps_it(client, stored, olga):
    client.force_login(olga)

    answer = client.get(path_of(stored))
    answer.close()

    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"].startswith("sandbox; ")
    assert answer["Cache-Control"] == "private, no-store"
    assert answer["X-Frame-Options"] == "DENY"


def test_others_learn_nothing(client, stored, zed):
    for user in (zed, MembershipFactory().user, None):
        if user:
            client.force_login(user)
        else:
            client.logout()

        assert client.get(path_of(stored)).status_code == 404
        assert client.head(path_of(stored)).status_code == 404


@pytest.mark.parametrize("id", ["0", "999999", "9" * 30, "9" * 5000, "-1", "x", "1/../1", "%00"])
def test_what_is_not_there_is_not_found(client, olga, id):
    client.force_login(olga)

    assert client.get(f"/documents/{id}/download/").status_code == 404


@azure_only
def test_who_may_have_it_is_sent_to_that_one_blob_for_five_minutes(client, stored, olga):
    client.force_login(olga)

    for answer in (client.get(path_of(stored)), client.head(path_of(stored))):
        told = {name: value for name, (value,) in parse_qs(urlsplit(answer["Location"]).query).items()}
        left = datetime.fromisoformat(told["se"]) - datetime.now(UTC)

        assert (answer.status_code, answer.content) == (302, b"")
        assert urlsplit(answer["Location"]).path.endswith(stored.file.name)
        assert (told["sp"], told["sr"]) == ("r", "b")
        assert timedelta(seconds=290) < left <= timedelta(seconds=300)
        assert answer["Referrer-Policy"] == "no-referrer"


def asked(method, url, **options):
    try:
        with urlopen(Request(url, method=method, **options)) as answer:
            return answer.status
    except HTTPError as refused:
        refused.close()
        return refused.code


@azure_only
def test_the_link_is_for_reading_that_blob_alone(client, stored, olga, workspace):
    other = intake.receive(workspace, io.BytesIO(PDF), "other.pdf", "", "olga", again=True)
    link = client.get(views.link(stored, olga))["Location"]
    at_other = link.replace(stored.file.name, other.file.name)
    as_page = link.replace("rsct=application/pdf", "rsct=text/html")
    headers = {"x-ms-blob-type": "BlockBlob"}

    assert as_page != link
    assert [asked("GET", link), asked("HEAD", link)] == [200, 200]
    assert asked("GET", link.partition("?")[0]) in (403, 404)
    assert [asked("GET", at_other), asked("GET", as_page), asked("DELETE", link)] == [403] * 3
    assert asked("PUT", link, data=b"x", headers=headers) == 403
    with default_storage.open(stored.file.name) as file:
        assert file.read() == PDF


@local_only
def test_head_says_the_same_and_sends_nothing(client, stored, olga):
    client.force_login(olga)
    whole = client.get(path_of(stored))
    body_of(whole)

    answer = client.head(path_of(stored))

    assert answer.status_code == 200
    assert answer.content == b""
    its_own = ("Vary", "X-Request-ID")
    assert {name: value for name, value in whole.items() if name not in its_own}.items() <= dict(answer.items()).items()


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nothing_else_is_answered(client, stored, olga, method):
    client.force_login(olga)

    assert getattr(client, method)(path_of(stored)).status_code == 405


@pytest.mark.parametrize("name", SAMPLES)
def test_no_page_is_served(client, get, workspace, olga, name):
    data, content_type = SAMPLES[name]
    document = intake.receive(workspace, io.BytesIO(data), name, "", "olga")
    client.force_login(olga)

    answer = get(path_of(document))

    assert body_of(answer) == data
    if content_type in ("text/html", "message/rfc822", "application/xml"):
        content_type = "application/octet-stream"
    assert answer["Content-Type"] == content_type
    assert answer["Content-Disposition"].startswith("attachment; ")


@pytest.mark.parametrize(
    "content_type",
    ["text/html", "image/svg+xml", "application/xhtml+xml", "text/xml", "x", "", "text/html; charset=utf-7"],
)
def test_what_a_row_says_is_not_believed(client, get, stored, olga, content_type):
    write(stored, content_type=content_type)
    client.force_login(olga)

    answer = get(path_of(stored))

    assert answer["Content-Type"] == "application/octet-stream"
    body_of(answer)


@pytest.mark.parametrize("name", [name for name in NAMES if len(name) < 255], ids=lambda name: ascii(name[:40]))
def test_no_name_leaves_its_header(client, get, stored, olga, name):
    # Write the name past the intake, like a row from an earlier version.
    stored.name = name.replace("\0", "").encode(errors="replace").decode()
    if name:
        write(stored, name=stored.name)
    client.force_login(olga)

    answer = get(path_of(stored))

    body_of(answer)
    said = answer["Content-Disposition"]
    assert said.startswith("attachment; filename")
    assert said.isascii()
    assert said.isprintable()
    assert len(name_in(answer).encode()) <= 255
    assert "/" not in name_in(answer)
    assert "\\" not in name_in(answer)
    assert {header.lower() for header, _ in answer.items()} & {"set-cookie", "location", "refresh"} == set()


def test_names_in_any_writing_arrive(client, get, stored, olga):
    write(stored, name="請求書 Müller.pdf")
    client.force_login(olga)

    answer = get(path_of(stored))

    body_of(answer)
    assert answer["Content-Disposition"] == "attachment; filename*=utf-8''%E8%AB%8B%E6%B1%82%E6%9B%B8%20M%C3%BCller.pdf"
    assert name_in(answer) == "請求書 Müller.pdf"


def test_a_signed_link_is_for_whoever_has_it(get, stored, olga):
    answer = get(views.link(stored, olga))

    assert body_of(answer) == PDF
    assert answer["Content-Disposition"].startswith("attachment; ")


def test_a_signed_link_ends(client, stored, olga, monkeypatch):
    link = views.link(stored, olga)

    now = time.time()
    monkeypatch.setattr("django.core.signing.time.time", lambda: now + downloads.LINK_SECONDS + 2)

    assert client.get(link).status_code == 404


def test_a_signed_link_is_good_for_five_minutes():
    assert downloads.LINK_SECONDS == 300


def test_a_signed_link_allows_what_its_person_may(client, stored, olga, zed):
    assert client.get(views.link(stored, zed)).status_code == 404
    link = views.link(stored, olga)
    olga.memberships.all().delete()
    assert client.get(link).status_code == 404
    root = UserFactory(is_superuser=True)
    link = views.link(stored, root)
    root.is_active = False
    root.save()
    assert client.get(link).status_code == 404
    root.delete()
    assert client.get(link).status_code == 404


def test_a_signed_link_is_for_one_file(client, stored, olga, workspace):
    other = DocumentFactory(workspace=workspace, file=stored.file.name)
    key = views.link(stored, olga).partition("?")[2]

    assert client.get(f"{path_of(other)}?{key}").status_code == 404
    assert client.get(f"/artifacts/{stored.pk}/download/?{key}").status_code == 404


def test_a_key_that_is_wrong_opens_nothing_for_members_either(client, stored, olga):
    client.force_login(olga)
    key = downloads.key_of("document", stored.pk, olga)
    forged = [
        key[:-1],
        f"{key}x",
        key.replace(str(stored.pk), "1", 1)[::-1],
        "",
        "x",
        ":",
        "1-1",
        "é",
        "\0",
        "a" * 5000,
    ]
    forged.append(TimestampSigner(salt="other").sign(f"{stored.pk}-{olga.pk}"))

    assert [client.get(path_of(stored), {"key": each}).status_code for each in forged] == [404] * len(forged)


def test_a_file_that_is_gone_is_told(client, stored, olga, caplog):
    client.force_login(olga)
    default_storage.delete(stored.file.name)

    answer = client.get(path_of(stored))

    assert (answer.status_code, answer["Content-Type"]) == (503, "text/plain")
    assert "downloads.not_readable" in caplog.text


@pytest.mark.parametrize("file", ["../../../etc/passwd", "/etc/passwd", "documents/../../secret_key", "documents"])
def test_a_row_leads_nowhere_else(client, stored, olga, file):
    write(stored, file=file)
    client.force_login(olga)

    assert client.get(path_of(stored)).status_code in (400, 503)


def test_a_document_without_a_file_has_none(client, stored, olga):
    write(stored, file="")
    client.force_login(olga)

    assert client.get(path_of(stored)).status_code == 404
    assert "Download" not in client.get(f"/admin/documents/document/{stored.pk}/change/").content.decode()
