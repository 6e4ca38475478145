import pytest

from tests.factories import DocumentChunkFactory, DocumentFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def found(viewer):
    def found(q, **options):
        answer = viewer.get("/api/v1/search", {"q": q, "by": "words"} | options)
        assert answer.status_code == 200, answer.content
        return answer.json()

    return found


def test_pieces_are_found_by_their_words(found, workspace):
    chunk = DocumentChunkFactory(document__workspace=workspace, text="The harvest of apples was good.")
    DocumentChunkFactory(text="apples of others")

    told = found("apples")

    assert [hit["chunk_id"] for hit in told["hits"]] == [chunk.pk]
    assert [part["text"] for part in told["hits"][0]["snippet"] if part["is_match"]] == ["apples"]
    assert (told["how"], told["has_more"], told["hits"][0]["workspace"]) == (["words"], False, "Aster")


def test_filters_and_pages(found, workspace):
    for n in range(3):
        document = DocumentFactory(workspace=workspace, content_type="text/csv" if n else "application/pdf")
        DocumentChunkFactory(document=document, text="apples")

    assert len(found("apples", workspace_id=workspace.pk, content_type="text/csv")["hits"]) == 2
    assert len(found("apples", status="processed")["hits"]) == 0
    assert len(found("apples", created_before="2024-01-01T00:00:00Z")["hits"]) == 0
    assert (len(found("apples", limit=2)["hits"]), found("apples", limit=2)["has_more"]) == (2, True)
    assert len(found("apples", limit=2, after=2)["hits"]) == 1


@pytest.mark.parametrize("query", ["", "q=", "q=x&by=magic", "q=x&limit=0", "q=x&after=-1", "q=%00", f"q={'x' * 501}"])
def test_what_cannot_be_looked_for_is_refused(viewer, query):
    answer = viewer.get(f"/api/v1/search?{query}")

    assert (answer.status_code, set(answer.json())) == (400, {"code", "message", "details"})


@pytest.mark.parametrize("q", ["'; DROP TABLE documents; --", '"', "* -", "a:b & c | !d", "((", "\\", "{{7*7}}", "%s"])
def test_whatever_is_typed_is_looked_for(found, q):
    assert found(q)["hits"] == []
