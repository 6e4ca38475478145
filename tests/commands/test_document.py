import pytest

from documents import lifecycle
from tests.factories import DocumentFactory

pytestmark = pytest.mark.django_db


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
