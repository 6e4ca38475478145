import pytest

from documents.models import Document
from tests.api.conftest import client_with
from tests.factories import (
    DocumentChunkFactory,
    DocumentFactory,
    JobFactory,
    MembershipFactory,
    StageFactory,
    WorkspaceFactory,
    force_status,
    told,
    write,
)
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

DOCUMENTS = "/api/v1/documents"


def ids(answer):
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()["items"]]


def test_a_list_has_what_one_sees_the_newest_first(viewer, workspace):
    mine = [DocumentFactory(workspace=workspace).pk for _ in range(3)]
    DocumentFactory()

    assert ids(viewer.get(DOCUMENTS)) == mine[::-1]
    assert ids(viewer.get(DOCUMENTS, {"order": "id"})) == mine


def test_pages_follow_one_another(viewer, workspace):
    mine = [DocumentFactory(workspace=workspace).pk for _ in range(5)]

    first = viewer.get(DOCUMENTS, {"limit": 3, "status": "processing"}).json()
    second = viewer.get(DOCUMENTS, {"limit": 3, "status": "processing", "cursor": first["next"]}).json()

    assert [row["id"] for page in (first, second) for row in page["items"]] == mine[::-1]
    assert second["next"] is None


def test_filters_choose(viewer, workspace):
    old = write(DocumentFactory(workspace=workspace, sha256="a" * 64), created_at="2024-05-01T00:00Z")
    new = DocumentFactory(workspace=workspace, status=None, content_type="text/csv")
    force_status(new, "processed")

    chosen = {
        "status=processing": [old.pk],
        "status=processed": [new.pk],
        "content_type=text/csv": [new.pk],
        f"sha256={'a' * 64}": [old.pk],
        "created_before=2025-01-01T00:00:00Z": [old.pk],
        "created_after=2024-05-01T02:00:00%2B02:00": [new.pk, old.pk],
        "created_after=2025-01-01T00:00:00Z": [new.pk],
        f"workspace_id={workspace.pk}": [new.pk, old.pk],
    }
    assert {query: ids(viewer.get(f"{DOCUMENTS}?{query}")) for query in chosen} == chosen


@pytest.mark.parametrize(
    "query",
    [
        "status__regex=.*",
        "workspace__name=x",
        "order=workspace__name",
        "order=?",
        "status=PROCESSING",
        "limit=-1",
        "limit=1000000000000",
        "limit=0",
        "cursor=x",
        "sha256=abc",
        "created_after=2024-05-01T00:00:00",
        "created_after=0001-01-01T00:00:00%2B14:00",
        "created_after=9999-12-31T23:59:59-14:00",
        "created_after=yesterday",
        "workspace_id=-1",
        "workspace_id=9223372036854775808",
        "content_type=%00",
        "_connector=OR",
    ],
)
def test_nothing_else_is_asked(viewer, query):
    answer = viewer.get(f"{DOCUMENTS}?{query}")

    assert answer.status_code == 400
    assert answer.json()["code"] in ("invalid_request", "invalid_cursor", "invalid_json")


def test_a_workspace_of_others_is_no_filter(viewer):
    other = MembershipFactory().workspace

    for path in (DOCUMENTS, "/api/v1/configurations", "/api/v1/fields", "/api/v1/search?q=x"):
        answer = viewer.get(path, {"workspace_id": other.pk} | ({"q": "x"} if "q=" in path else {}))

        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    "id", ["-1", "0", "00", "2147483648", str(2**63), "9" * 5000, "%D9%A3", "%00", "x", "1.0", "+1"]
)
@pytest.mark.parametrize("path", ["documents", "configurations", "workspaces"])
def test_what_is_no_id_is_not_there(viewer, path, id):
    answer = viewer.get(f"/api/v1/{path}/{id}")

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_document_has_a_tag_that_changes_with_it(viewer, workspace):
    document = DocumentFactory(workspace=workspace)
    path = f"{DOCUMENTS}/{document.pk}"
    tag = viewer.get(path)["ETag"]

    same = viewer.get(path, headers={"If-None-Match": tag})
    force_status(document, "processed")
    changed = viewer.get(path, headers={"If-None-Match": tag})

    assert (same.status_code, same.content, same["ETag"]) == (304, b"", tag)
    assert (changed.status_code, changed.json()["status"]) == (200, "processed")
    assert changed["ETag"] != tag


def test_a_text_comes_in_parts(viewer, workspace):
    document = write(DocumentFactory(workspace=workspace), text="Äpfel 🍎 und Birnen")
    path = f"{DOCUMENTS}/{document.pk}/text"

    parts = [viewer.get(path, {"offset": offset, "limit": 7}).json() for offset in (0, 7, 14, 100, 2**30)]

    assert [part["text"] for part in parts] == ["Äpfel 🍎", " und Bi", "rnen", "", ""]
    assert [part["next_offset"] for part in parts] == [7, 14, None, None, None]
    assert viewer.get(path).json()["text"] == document.text
    assert viewer.get(path, {"limit": 10**9}).status_code == 400
    assert viewer.get(path, {"offset": 2**31}).status_code == 400


def test_chunks_come_in_their_order(viewer, workspace):
    document = DocumentFactory(workspace=workspace)
    chunks = [DocumentChunkFactory(document=document, text=f"piece {n}") for n in range(3)]
    DocumentChunkFactory()

    found = viewer.get(f"{DOCUMENTS}/{document.pk}/chunks").json()["items"]

    assert found == [{"id": c.pk, "position": n, "page": 1, "text": f"piece {n}"} for n, c in enumerate(chunks)]


def test_jobs_have_their_stages(viewer, workspace):
    stage = StageFactory(job__document=DocumentFactory(workspace=workspace), status="DONE")

    (job,) = viewer.get(f"{DOCUMENTS}/{stage.job.document_id}/jobs").json()["items"]

    assert (job["id"], job["status"], job["error_message"]) == (stage.job_id, "PROCESSING", None)
    assert [(each["name"], each["segment"], each["status"]) for each in job["stages"]] == [("extract", 0, "DONE")]


def test_events_come_in_their_order_from_any_on(viewer, workspace):
    document = DocumentFactory(workspace=workspace)
    force_status(document, "failed")
    client_with(workspace, MembershipFactory(workspace=workspace, role="operator").user, "operate").post(
        f"{DOCUMENTS}/{document.pk}/reprocess"
    )
    path = f"{DOCUMENTS}/{document.pk}/events"

    found = viewer.get(path).json()["items"]

    assert [event["kind"] for event in found] == told(document) == ["DOCUMENT_ADDED", "DOCUMENT_REOPENED"]
    assert [event["sequence"] for event in found] == [1, 2]
    assert [event["sequence"] for event in viewer.get(path, {"after": 1}).json()["items"]] == [2]


def test_reprocessing_makes_a_job_once(operator, workspace):
    document = DocumentFactory(workspace=workspace)
    force_status(document, "processed")
    path = f"{DOCUMENTS}/{document.pk}/reprocess"

    first, lost = (operator.post(path, headers={"Idempotency-Key": "k"}) for _ in range(2))
    again = operator.post(path)

    assert (first.status_code, first.json()["status"]) == (200, "processing")
    assert lost.content == first.content
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert document.jobs.count() == 1


def test_reprocessing_what_was_purged_or_by_a_viewer_is_refused(operator, viewer, client, ravi, workspace):
    purged = write(DocumentFactory(workspace=workspace), status="processed", file="", purged_at=clock.now())
    kept = DocumentFactory(workspace=workspace, status=None)
    client.force_login(ravi)

    assert operator.post(f"{DOCUMENTS}/{purged.pk}/reprocess").status_code == 410
    assert viewer.post(f"{DOCUMENTS}/{kept.pk}/reprocess").status_code == 403
    assert client.post(f"{DOCUMENTS}/{kept.pk}/reprocess").status_code == 403
    assert viewer.get(f"{DOCUMENTS}/{kept.pk}/reprocess").status_code == 405


def test_why_tells_what_a_document_waits_for(viewer, workspace):
    job = JobFactory(document=DocumentFactory(workspace=workspace))
    write(job, next_attempt_at="2100-01-01T00:00Z", attempts=1)

    told = viewer.get(f"{DOCUMENTS}/{job.document_id}/why").json()

    assert (told["kind"], told["id"], told["held_by"]) == ("document", job.document_id, ["worker", "time"])
    assert [gate["name"] for gate in told["gates"]] == ["worker", "time", "turn"]


def test_why_tells_of_stages_and_of_those_ahead(viewer, workspace):
    JobFactory()
    waiting = JobFactory(document=DocumentFactory(workspace=workspace))
    stage = StageFactory(job__document=DocumentFactory(workspace=workspace), status="READY")

    turn = viewer.get(f"{DOCUMENTS}/{waiting.document_id}/why").json()["gates"][-1]
    stages = viewer.get(f"{DOCUMENTS}/{stage.job.document_id}/why").json()["gates"][-1]

    assert (turn["name"], turn["holds"], turn["data"]) == ("turn", True, {"ahead": 1, "ready": 1, "most_ready": 4})
    # Others do not block it: no worker is running at all, which another gate reports.
    assert (stages["name"], stages["holds"]) == ("stages", False)
    assert stages["data"] == {"running": 0, "ready": 1, "all": 1, "slots": 0, "free": 0, "ahead": 0}


def test_why_says_when_nothing_is_done(viewer, workspace):
    document = DocumentFactory(workspace=workspace)
    force_status(document, "failed")

    told = viewer.get(f"{DOCUMENTS}/{document.pk}/why").json()

    assert (told["message"], told["gates"]) == (f"Document {document.pk} is failed.", [])


def test_a_token_shows_one_workspace_only(client, ravi, workspace):
    other = MembershipFactory(user=ravi).workspace
    mine, others = DocumentFactory(workspace=workspace), DocumentFactory(workspace=other)
    narrow = client_with(workspace, ravi, "read")
    client.force_login(ravi)

    assert ids(narrow.get(DOCUMENTS)) == [mine.pk]
    assert ids(client.get(DOCUMENTS)) == [others.pk, mine.pk]
    assert narrow.get(f"{DOCUMENTS}/{others.pk}").status_code == 404
    assert ids(narrow.get("/api/v1/workspaces")) == [workspace.pk]
    assert Document.objects.count() == 2
    assert WorkspaceFactory().pk not in ids(client.get("/api/v1/workspaces"))
