import pytest

from documents.models import FieldCorrection
from tests.factories import DocumentFieldFactory, FieldCorrectionFactory, events_of, force_status

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def total(document):
    force_status(document, "processed")
    return DocumentFieldFactory(document=document, name="total", value="12", confidence=0.7, page=2, box=[0, 0, 1, 1])


def test_fields_shows_what_was_read_and_said(manage, total):
    FieldCorrectionFactory(document=total.document, name="total", value="13")

    ended = manage("document", "fields", total.document_id, "--json")

    assert (ended.code, ended.json["id"]) == (0, total.document_id)
    (row,) = ended.json["fields"]
    assert row.pop("corrected_at")
    assert row == {
        "name": "total",
        "id": total.pk,
        "value": "13",
        "machine_value": "12",
        "kind": "text",
        "confidence": 0.7,
        "page": 2,
        "box": [0, 0, 1, 1],
        "source": "page",
        "reason": "",
        "in_conflict": False,
        "to_review": False,
        "also_found": False,
        "others": [],
        "is_corrected": True,
        "agrees": False,
        "correction": "13",
        "corrected_by": "olga",
    }
    shown = manage("document", "fields", total.document_id)
    assert (shown.code, "total" in shown.out, "13" in shown.out) == (0, True, True)


def test_correct_and_withdraw(manage, total):
    corrected = manage("document", "correct", total.document_id, "total", "13", "--as", "olga", "--json")
    confirmed = manage("document", "correct", total.document_id, "total", "12", "--json")
    withdrawn = manage("document", "correct", total.document_id, "total", "--withdraw", "--json")

    assert [ended.code for ended in (corrected, confirmed, withdrawn)] == [0, 0, 0]
    results = [ended.json["result"] for ended in (corrected, confirmed, withdrawn)]
    assert results == ["corrected", "confirmed", "withdrawn"]
    assert [ended.json["field"]["value"] for ended in (corrected, confirmed, withdrawn)] == ["13", "12", "12"]
    assert events_of(total.document).filter(kind="FIELD_CORRECTED").first().actor == "olga (command)"
    shown = manage("document", "correct", total.document_id, "new", "x")
    assert shown.out.strip() == "Corrected new from nothing to “x”."


def test_what_cannot_be_corrected(manage, total):
    id = total.document_id

    assert manage("document", "correct", 999_999, "total", "13").code == 6
    assert manage("document", "fields", 999_999).code == 6
    assert manage("document", "fields").code == manage("document", "fields", id, "--to-look-at").code == 2
    assert manage("document", "correct", id, "total").code == 2
    assert manage("document", "correct", id, "total", "13", "--withdraw").code == 2
    refused = manage("document", "correct", id, "n" * 101, "13", "--json")
    assert (refused.code, refused.error["code"]) == (1, "bad_name")
    refused = manage("document", "correct", id, "total", "--withdraw", "--json")
    assert (refused.code, refused.error["code"]) == (1, "not_corrected")
    assert not FieldCorrection.objects.exists()


def test_to_look_at_lists_what_nobody_is_sure_of(manage, total):
    other = DocumentFieldFactory(confidence=0.5)
    force_status(other.document, "processed")
    DocumentFieldFactory(document=total.document, confidence=0.95)

    def ids(*arguments):
        return [row["id"] for row in manage("document", "fields", "--to-look-at", *arguments, "--json").json["fields"]]

    assert ids() == [other.pk, total.pk]
    assert ids("--workspace", "Aster") == [total.pk]
    assert ids("--before", other.pk) == [total.pk]
    assert ids("--limit", 1) == [other.pk]
    assert "total" in manage("document", "fields", "--to-look-at").out
    assert manage("document", "fields", "--to-look-at", "--workspace", "none").code == 6
