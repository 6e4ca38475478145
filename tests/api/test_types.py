import pytest

from documents import fields, types
from tests.factories import DocumentFactory, DocumentProblemFactory, DocumentTypeFactory, force_status, write
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def document(workspace):
    return force_status(DocumentFactory(workspace=workspace), "processed")


def put(client, document, type):
    return client.put(f"/api/v1/documents/{document.pk}/type", {"type": type}, content_type="application/json")


def test_the_type_of_a_document_is_chosen_and_withdrawn(operator, viewer, document):
    chosen = put(operator, document, "receipt").json()

    assert (chosen["type"], chosen["type_chosen_by"]) == ("receipt", "olga (token of olga)")
    assert viewer.get("/api/v1/documents", {"type": "receipt"}).json()["items"] == [chosen]
    assert viewer.get("/api/v1/documents", {"type": "letter"}).json()["items"] == []
    assert put(operator, document, None).json()["type"] is None
    assert put(viewer, document, "letter").status_code == 403


def test_an_unknown_type_and_a_purged_document_are_refused(operator, document):
    refused = put(operator, document, "bill")
    write(document, file="", text="", purged_at=clock.now())

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")
    assert "Known types: invoice," in refused.json()["message"]
    assert put(operator, document, "letter").status_code == 410


def test_the_types_of_a_workspace_are_listed_with_their_fields(viewer, workspace):
    DocumentTypeFactory(workspace=workspace, name="move", words="we have moved")

    found = viewer.get("/api/v1/document-types").json()["items"]

    assert (found[0]["name"], found[0]["words"], found[0]["built_in"]) == ("move", ["we have moved"], False)
    invoice = next(row for row in found if row["name"] == "invoice")
    assert {"name": "gross_total", "kind": "amount", "required": True, "threshold": 0.8} in invoice["fields"]


def test_open_problems_are_listed_and_dismissed_once(operator, viewer, document):
    problem = DocumentProblemFactory(document=document, field="net_total")
    DocumentProblemFactory()

    def listed(**filters):
        return [row["id"] for row in viewer.get("/api/v1/problems", filters).json()["items"]]

    assert listed() == listed(state="open") == listed(document_id=document.pk, code=problem.code) == [problem.pk]
    assert viewer.post(f"/api/v1/problems/{problem.pk}/dismiss").status_code == 403
    dismissed = operator.post(f"/api/v1/problems/{problem.pk}/dismiss").json()
    assert (dismissed["dismissed_by"], dismissed["field"]) == ("olga (token of olga)", "net_total")
    assert operator.post(f"/api/v1/problems/{problem.pk}/dismiss").status_code == 409
    assert (listed(), listed(state="open")) == ([problem.pk], [])


def test_a_field_comes_with_the_values_of_all_sources(viewer, document):
    values = [
        {"name": "invoice_number", "value": "17", "kind": "number", "confidence": 0.95, "reason": "After its label."},
        {"name": "invoice_number", "value": "18", "kind": "number", "confidence": 1, "source": "e-invoice"},
    ]
    fields.keep(document.pk, values, types.BUILT_IN["invoice"])

    (row,) = viewer.get(f"/api/v1/documents/{document.pk}/fields").json()["items"]
    (listed,) = viewer.get("/api/v1/fields", {"state": "to_look_at"}).json()["items"]

    assert (row["value"], row["source"], row["in_conflict"], row["to_review"]) == ("18", "e-invoice", True, True)
    assert row["others"] == [
        {"source": "page", "value": "17", "confidence": 0.95, "page": None, "box": None, "reason": "After its label."}
    ]
    assert listed["machine_value"] == "18"
