import pytest

from documents.corrections import correct
from documents.models import Sender, SenderLesson
from tests.documents.taught import arrive, field, given, learned, update_all

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def files(settings, tmp_path):
    """Keep the stored words of each test apart."""
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def taught(workspace):
    """Two documents of a sender; the second one has taught its number."""
    documents = [arrive(workspace, field("invoice_number", "Anna", 0.5), number=each) for each in ("4711", "4712")]
    correct(documents[1].pk, "invoice_number", "4712", actor="olga")
    learned()
    return documents


def test_a_sender_is_listed_and_shown_with_what_was_learned(viewer, taught, workspace):
    sender = Sender.objects.get()

    listed = viewer.get("/api/v1/senders", {"workspace_id": workspace.pk}).json()["items"]
    shown = viewer.get(f"/api/v1/senders/{sender.pk}").json()

    assert [row["id"] for row in listed] == [sender.pk]
    assert shown["identities"] == [{"kind": "iban", "value": "DE89370400440532013000"}]
    (lesson,) = shown["lessons"]
    assert (lesson["field"], lesson["printed"], lesson["right"], lesson["wrong"]) == ("invoice_number", True, 1, 0)
    assert lesson["learned_from_id"] == taught[1].pk
    assert viewer.get(f"/api/v1/documents/{taught[0].pk}").json()["sender_id"] == sender.pk


def test_lessons_are_previewed_applied_switched_off_and_forgotten(operator, viewer, taught):
    sender = Sender.objects.get()
    at = f"/api/v1/senders/{sender.pk}"

    seen = viewer.get(f"{at}/preview").json()
    assert (seen["documents"], seen["is_cut"]) == (2, False)
    assert seen["counts"] == {"improved": 2, "changed": 0, "worse": 0}
    assert {(each["document_id"], each["before"], each["after"]) for each in seen["changes"]} == {
        (taught[0].pk, "Anna", "4711"),
        (taught[1].pk, "Anna", "4712"),
    }

    assert viewer.post(f"{at}/apply").status_code == 403
    assert operator.post(f"{at}/apply").json()["applied_by"] == "olga (token of olga)"
    update_all()
    assert given(taught[0]) == {"invoice_number": "4711"}

    assert operator.post(f"{at}/off").json()["switched_off_by"] == "olga (token of olga)"
    refused = operator.post(f"{at}/off")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "is switched off" in refused.json()["message"]
    update_all()
    assert given(taught[0]) == {}

    assert operator.post(f"{at}/forget").status_code == 200
    assert operator.get(at).status_code == 404


def test_what_is_known_is_exported_and_imported(operator, viewer, taught, workspace):
    sender = Sender.objects.get()
    exported = viewer.get(f"/api/v1/senders/{sender.pk}/export").json()
    SenderLesson.objects.all().delete()
    at = f"/api/v1/workspaces/{workspace.pk}/senders/import"

    imported = operator.post(at, exported, content_type="application/json")

    assert imported.json() == {"id": sender.pk, "name": sender.name, "new_lessons": 1}
    refused = operator.post(at, exported | {"version": 7}, content_type="application/json")
    assert (refused.status_code, "its version is not 1" in refused.json()["message"]) == (400, True)
    assert viewer.post(at, exported, content_type="application/json").status_code == 403
