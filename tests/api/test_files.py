"""Downloads of documents over the API: whole, in ranges, or 304 if nothing has changed."""

import io

import pytest
from django.core.files.storage import default_storage
from django.test import Client

from documents import intake
from tests.azurite import azure_only, followed
from tests.documents.samples import PDF
from tests.factories import DocumentFactory, MembershipFactory, write
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db, pytest.mark.usefixtures("kept_apart")]

SIZE = len(PDF)


@pytest.fixture
def get(viewer, stored):
    return lambda **headers: viewer.get(
        f"/api/v1/documents/{stored.pk}/content",
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def body_of(answer):
    return b"".join(answer.streaming_content)


def test_a_program_gets_the_file_and_no_browser_runs_it(get, stored):
    answer = get()

    assert (answer.status_code, body_of(answer)) == (200, PDF)
    assert answer["Content-Type"] == "application/pdf"
    assert answer["Content-Length"] == str(SIZE)
    assert answer["Content-Disposition"] == 'attachment; filename="invoice.pdf"'
    assert answer["ETag"] == f'"{stored.sha256}"'
    assert answer["Accept-Ranges"] == "bytes"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"].startswith("sandbox; ")
    assert answer["Cache-Control"] == "private, no-store"


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ("bytes=0-", slice(0, None)),
        ("bytes=0-0", slice(0, 1)),
        ("bytes=5-9", slice(5, 10)),
        ("bytes=10-", slice(10, None)),
        ("bytes=-7", slice(SIZE - 7, None)),
        (f"bytes=-{10**18}", slice(0, None)),
        (f"bytes=5-{10**18}", slice(5, None)),
        (f"bytes={SIZE - 1}-", slice(SIZE - 1, None)),
    ],
)
def test_one_range_is_sent(get, asked, part):
    answer = get(Range=asked)

    assert (answer.status_code, body_of(answer)) == (206, PDF[part])
    first, last, _ = part.indices(SIZE)
    assert answer["Content-Range"] == f"bytes {first}-{last - 1}/{SIZE}"
    assert answer["Content-Length"] == str(last - first)


@pytest.mark.parametrize(
    "asked",
    [
        *(f"bytes={SIZE}-", "bytes=9-5", "bytes=-0", "bytes=-", "bytes=", "bytes=--5", "bytes=a-b", "bytes=1-2-3"),
        *(f"bytes={'9' * 19}-", f"bytes={'9' * 5000}-", "bytes=-1-5", "bytes=٣-٤", "bytes=0x1-2", "bytes=1_0-20"),
    ],
)
def test_a_range_that_is_not_there_is_refused(get, asked):
    answer = get(Range=asked.encode().decode("latin-1"))

    assert (answer.status_code, answer.json()["code"]) == (416, "range_not_satisfiable")
    assert answer["Content-Range"] == f"bytes */{SIZE}"


@pytest.mark.parametrize(
    "asked", ["bytes=0-1,3-4", ",".join(["bytes=0-1", *["0-1"] * 2000]), "lines=1-2", "x", "Bytes 1-2"]
)
def test_several_ranges_or_other_units_get_all_of_it(get, asked):
    answer = get(Range=asked)

    assert (answer.status_code, body_of(answer)) == (200, PDF)


def test_whoever_has_it_is_told_so(get, stored):
    same = [get(If_None_Match=tag) for tag in (f'"{stored.sha256}"', f'W/"{stored.sha256}"', f'"x", "{stored.sha256}"')]
    other = get(If_None_Match='"another"')

    assert {(answer.status_code, answer.content, answer["ETag"]) for answer in same} == {
        (304, b"", f'"{stored.sha256}"')
    }
    assert (other.status_code, body_of(other)) == (200, PDF)


def test_a_part_is_of_the_file_that_one_began_with(get, stored):
    same = get(Range="bytes=5-9", If_Range=f'"{stored.sha256}"')
    others = [get(Range="bytes=5-9", If_Range=said) for said in ('"another"', "Wed, 01 Jan 2025 00:00:00 GMT", "")]

    assert (same.status_code, body_of(same)) == (206, PDF[5:10])
    assert [(answer.status_code, body_of(answer)) for answer in others] == [(200, PDF)] * 3


def test_another_file_than_the_wanted_one_is_refused(get):
    answer = get(If_Match='"another"')

    assert (answer.status_code, answer.json()["code"]) == (412, "precondition_failed")


def test_a_file_that_is_gone_or_not_whole_is_told(get, stored):
    with default_storage.open(stored.file.name, "wb") as file:
        file.write(PDF[:-1])
    damaged = get()
    default_storage.delete(stored.file.name)
    gone = get()

    assert [(answer.status_code, answer.json()["code"]) for answer in (damaged, gone)] == [(503, "unavailable")] * 2
    assert "Retry-After" in gone


@pytest.mark.long
@azure_only
def test_where_the_storage_sends_files_itself_one_is_sent_there(each_storage, viewer, workspace):
    stored = intake.receive(workspace, io.BytesIO(PDF), "invoice.pdf", "", "olga")
    path = f"/api/v1/documents/{stored.pk}/content"

    answer = viewer.get(path)
    same = viewer.get(path, headers={"If-None-Match": f'"{stored.sha256}"'})

    assert (answer.status_code, answer.content, same.status_code) == (302, b"", 304)
    assert body_of(followed(answer)) == PDF


def test_what_was_purged_is_gone(viewer, workspace):
    purged = write(DocumentFactory(workspace=workspace), status="processed", file="", purged_at=clock.now())

    for path in ("content", "link", "text"):
        answer = viewer.get(f"/api/v1/documents/{purged.pk}/{path}")

        assert (answer.status_code, answer.json()["code"]) == (410, "gone")
    assert viewer.get(f"/api/v1/documents/{purged.pk}").json()["purged_at"]


def test_a_link_is_good_for_whoever_has_it(viewer, stored):
    link = viewer.get(f"/api/v1/documents/{stored.pk}/link").json()

    answer = Client().get(link["url"])

    assert (answer.status_code, body_of(answer)) == (200, PDF)
    assert link["url"].startswith("http://testserver/documents/")


def test_a_link_ends_with_the_membership_of_whom_it_was_made_for(viewer, stored, ravi):
    link = viewer.get(f"/api/v1/documents/{stored.pk}/link").json()
    ravi.memberships.all().delete()

    assert Client().get(link["url"]).status_code == 404


def test_the_file_of_others_is_not_there(client, stored):
    client.force_login(MembershipFactory().user)

    for path in ("content", "link", "text", "chunks", "fields", "events", "jobs", "why"):
        assert client.get(f"/api/v1/documents/{stored.pk}/{path}").status_code == 404
