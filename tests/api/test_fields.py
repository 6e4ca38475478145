from urllib.parse import quote

import pytest

from documents.models import FieldCorrection
from tests.factories import (
    DocumentFactory,
    DocumentFieldFactory,
    FieldCorrectionFactory,
    force_status,
    told,
    write,
)
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def document(workspace):
    document = DocumentFactory(workspace=workspace)
    force_status(document, "processed")
    return document


@pytest.fixture
def put(operator, document):
    def put(name, value="43", client=operator, **body):
        path = f"/api/v1/documents/{document.pk}/fields/{quote(name, safe='')}"
        return client.put(path, {"value": value} | body, content_type="application/json")

    return put


def test_what_people_say_stands_beside_what_was_read(viewer, document):
    DocumentFieldFactory(document=document, name="total", value="42", box=[0.1, 0.2, 0.3, 0.4])
    FieldCorrectionFactory(document=document, name="total", value="43")
    FieldCorrectionFactory(document=document, name="buyer", value="Aster")

    found = viewer.get(f"/api/v1/documents/{document.pk}/fields").json()["items"]

    assert [(row["name"], row["value"], row["machine_value"], row["agrees"]) for row in found] == [
        ("total", "43", "42", False),
        ("buyer", "Aster", None, None),
    ]
    assert found[0]["correction"]["by"] == "olga"
    assert found[0]["box"] == [0.1, 0.2, 0.3, 0.4]


def test_a_correction_holds_until_it_is_withdrawn(operator, put, document):
    DocumentFieldFactory(document=document, name="total", value="42")

    corrected, again = put("total").json(), put("total").json()
    withdrawn = operator.delete(f"/api/v1/documents/{document.pk}/fields/total").json()

    assert (corrected["value"], corrected["correction"]["by"]) == ("43", "olga (token of olga)")
    assert again["value"] == "43"
    assert (withdrawn["value"], withdrawn["correction"]) == ("42", None)
    assert operator.delete(f"/api/v1/documents/{document.pk}/fields/total").status_code == 404
    assert "FIELD_CORRECTED" in told(document)
    assert "FIELD_CORRECTION_WITHDRAWN" in told(document)


@pytest.mark.parametrize("name", ["net/gross", "a b", "Größe", "100%", "?", "#", "a//b", "{{7*7}}", "fields"])
def test_any_name_is_a_name(put, name):
    assert put(name).json()["name"] == name
    assert FieldCorrection.objects.get().name == name


@pytest.mark.parametrize("name", ["x" * 101, "%00", "\x07"])
def test_what_is_no_name_is_refused(put, name):
    answer = put(name) if name != "%00" else put("\0")

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")


@pytest.mark.parametrize("body", [{"value": "x" * 5001}, {"value": 43}, {"value": None}, {"more": 1}])
def test_what_is_no_value_is_refused(put, body):
    answer = put("total", **body)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert not FieldCorrection.objects.exists()


def test_only_operators_correct_and_only_what_is_kept(put, viewer, client, ravi, document):
    client.force_login(ravi)
    refused = [put("total", client=who).status_code for who in (viewer, client)]
    write(document, purged_at=clock.now(), file="")

    assert refused == [403, 403]
    assert (put("total").status_code, put("total").json()["code"]) == (410, "gone")


def test_a_field_of_others_is_not_there(operator):
    other = DocumentFieldFactory()
    path = f"/api/v1/documents/{other.document_id}/fields/{other.name}"

    assert operator.put(path, {"value": "x"}, content_type="application/json").status_code == 404
    assert operator.delete(path).status_code == 404
    assert operator.get("/api/v1/fields").json()["items"] == []
    assert operator.get("/api/v1/fields", {"document_id": other.document_id}).status_code == 404


def test_what_is_to_be_looked_at_is_listed(viewer, document):
    unsure = DocumentFieldFactory(document=document, name="total", confidence=0.3)
    corrected = DocumentFieldFactory(document=document, name="date", confidence=0.3)
    DocumentFieldFactory(document=document, name="sure", confidence=0.95)
    FieldCorrectionFactory(document=document, name="date", value="2024")

    def names(**query):
        return [row["id"] for row in viewer.get("/api/v1/fields", query).json()["items"]]

    assert names(state="to_look_at") == [unsure.pk]
    assert names(state="corrected") == [corrected.pk]
    assert names(name="total", document_id=document.pk) == [unsure.pk]
    assert len(names()) == 3
