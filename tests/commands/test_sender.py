import json

import pytest

from documents.corrections import correct
from documents.models import Sender, SenderLesson
from tests.documents.taught import arrive, field, given, learned, update_all

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def taught(workspace, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    documents = [arrive(workspace, field("invoice_number", "Anna", 0.5), number=each) for each in ("4711", "4712")]
    correct(documents[1].pk, "invoice_number", "4712", actor="olga")
    learned()
    return documents


def test_senders_are_listed_and_shown(manage, taught, workspace):
    sender = Sender.objects.get()

    listed = manage("sender", "list", "--workspace", workspace.name, "--json").json["senders"]
    shown = manage("sender", "show", sender.pk, "--json").json

    assert [row["id"] for row in listed] == [sender.pk]
    assert (shown["documents"], shown["identities"][0]["kind"]) == (2, "iban")
    assert [(row["field"], row["right"]) for row in shown["lessons"]] == [("invoice_number", 1)]
    assert "invoice_number" in manage("sender", "show", sender.pk).out
    assert manage("sender", "show", 999_999).code == 6


def test_lessons_are_previewed_applied_and_switched_off(manage, taught):
    sender = Sender.objects.get()

    seen = manage("sender", "preview", sender.pk, "--json")
    assert seen.json["counts"] == {"improved": 2, "changed": 0, "worse": 0}
    assert "2 improved, 0 changed, 0 worse." in manage("sender", "preview", sender.pk).out

    assert manage("sender", "apply", sender.pk, "--as", "olga").code == 0
    update_all()
    assert given(taught[0]) == {"invoice_number": "4711"}
    assert manage("lesson", "off", SenderLesson.objects.get().pk).code == 0
    update_all()
    assert given(taught[0]) == {}
    assert manage("lesson", "on", SenderLesson.objects.get().pk).code == 0
    assert manage("sender", "off", sender.pk).code == 0
    assert manage("sender", "off", sender.pk).code == 1
    assert manage("sender", "on", sender.pk).code == 0
    assert manage("sender", "forget", sender.pk).code == 0
    assert manage("sender", "show", sender.pk).code == 6


def test_what_is_known_is_written_to_a_file_and_read_from_it(manage, taught, workspace, tmp_path):
    sender, file = Sender.objects.get(), tmp_path / "sender.json"
    assert manage("sender", "export", sender.pk, file).code == 0
    assert manage("sender", "export", sender.pk, file).code == 1
    assert manage("sender", "export", sender.pk, "--json").json["sender"] == json.loads(file.read_text())
    SenderLesson.objects.all().delete()

    ended = manage("sender", "import", file, "--workspace", workspace.name, "--json")

    assert ended.json == {"id": sender.pk, "name": sender.name, "new_lessons": 1}
    file.write_text("{}")
    assert manage("sender", "import", file, "--workspace", workspace.name).code == 1
    assert manage("sender", "import", tmp_path / "none", "--workspace", workspace.name).code == 6
    assert manage("sender", "import", tmp_path, "--workspace", workspace.name).code == 1
