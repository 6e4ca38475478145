"""The pages of senders: what was learned, from where, how often it was right, and the buttons."""

import json

import pytest
from django.urls import reverse

from documents.corrections import correct
from documents.models import Sender, SenderUpdate
from tests.documents.taught import arrive, field, learned
from tests.factories import LessonEvidenceFactory, SenderFactory, SenderLessonFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

HOSTILE = "<script>alert(1)</script>{{7*7}}"


@pytest.fixture(autouse=True)
def files(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def taught(workspace):
    documents = [arrive(workspace, field("invoice_number", "Anna", 0.5), number=each) for each in ("4711", "4712")]
    correct(documents[1].pk, "invoice_number", "4712", actor="olga")
    correct(documents[1].pk, "order_number", "PO-99-99", actor="olga")
    learned()
    return documents


def url(name, *arguments):
    return reverse(f"console:{name}", args=arguments)


def test_the_page_of_a_sender_says_what_was_learned_from_where_and_how_often_it_was_right(seen_by, olga, taught):
    sender = Sender.objects.get()

    page = seen_by(olga, url("sender", sender.pk)).content.decode()

    assert f'<a href="{url("document", taught[1].pk)}">document {taught[1].pk}</a>' in page
    assert ">85%<" in page
    assert "printed nowhere, so there is nothing to learn" in page
    assert "DE89370400440532013000" in page
    document = seen_by(olga, url("document", taught[0].pk)).content.decode()
    assert f'<a href="{url("sender", sender.pk)}">' in document


def test_the_preview_says_what_would_change_and_has_the_button(seen_by, pressed_by, olga, taught):
    sender = Sender.objects.get()
    page = seen_by(olga, url("sender_preview", sender.pk)).content.decode()

    assert "Of the values of 2 documents: 2 improved, 0 changed, 0 worse." in page
    assert url("apply_sender", sender.pk) in page

    answer = pressed_by(olga, url("apply_sender", sender.pk)).content.decode()
    assert "Its documents are being updated." in answer
    assert SenderUpdate.objects.get().applied_by == "olga"


def test_a_forgotten_sender_leads_back_to_the_list(seen_by, pressed_by, olga, taught):
    sender = Sender.objects.get()

    answer = pressed_by(olga, url("forget_sender", sender.pk), follow=False)

    assert answer["Location"] == url("senders")
    assert seen_by(olga, url("sender", sender.pk)).status_code == 404
    assert "No senders yet." in seen_by(olga, url("senders")).content.decode()


def test_hostile_names_are_shown_as_text(seen_by, olga, workspace):
    lesson = SenderLessonFactory(sender=SenderFactory(workspace=workspace, name=HOSTILE), field=HOSTILE)
    LessonEvidenceFactory(lesson=lesson, is_right=False)

    for path in (url("senders"), url("sender", lesson.sender_id), url("sender_preview", lesson.sender_id)):
        page = seen_by(olga, path).content.decode()
        assert "<script>alert" not in page
        assert "{{7*7}}" in page


def test_the_export_is_a_file(seen_by, olga, taught):
    answer = seen_by(olga, url("sender_export", Sender.objects.get().pk))

    assert json.loads(answer.content)["lessons"][0]["field"] == "invoice_number"
    assert "attachment" in answer["Content-Disposition"]
