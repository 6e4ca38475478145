"""What a person corrects teaches ADE about the sender, and the sender's next document uses it."""

import pytest

from documents import learning, lifecycle, retention, senders, words
from documents.corrections import correct, withdraw
from documents.fields import of_document
from documents.learning import confidence_of, reason_of
from documents.models import (
    Document,
    DocumentField,
    FieldCorrection,
    LessonEvidence,
    Sender,
    SenderIdentity,
    SenderLesson,
    SenderUpdate,
)
from tests.documents.processing import add, pdf, process
from tests.documents.taught import IBAN, arrive, field, given, learned, sender_of, update_all
from tests.factories import DocumentFactory, LessonEvidenceFactory, SenderLessonFactory, age, write
from work import clock

pytestmark = pytest.mark.django_db
DAY = 24 * 3600


@pytest.fixture(autouse=True)
def files(places):
    """Keep the stored words of each test apart."""


def teach(document, name, value):
    assert correct(document.pk, name, value, actor="olga")
    learned()


def counts(lesson=None):
    lesson = SenderLesson.objects.counted().get(**({"pk": lesson.pk} if lesson else {}))
    return lesson.times_right, lesson.times_wrong


def test_one_correction_is_enough_for_the_next_document(workspace):
    first = arrive(workspace, field("invoice_number", "Anna", 0.9))
    teach(first, "invoice_number", "4711")

    second = arrive(workspace, field("invoice_number", "Beispiel", 0.9), number="4790", down=0.1)

    (row,) = (row for row in of_document(second.pk) if row.name == "invoice_number")
    assert (row.value, row.source, row.page, row.in_conflict, row.to_review) == ("4790", "sender", 1, False, False)
    assert row.reason == f"Learned from document {first.pk}, confirmed once."
    assert row.confidence == 0.85
    assert second.sender == first.sender
    assert DocumentField.objects.filter(document=first, source="sender").count() == 0


def test_confirmations_make_it_surer_and_contradictions_less_sure(workspace):
    teach(arrive(workspace), "invoice_number", "4711")
    teach(arrive(workspace, number="4712"), "invoice_number", "4712")
    third = arrive(workspace, number="4713")
    assert given(third) == {"invoice_number": "4713"}
    assert DocumentField.objects.get(document=third, source="sender").confidence == 0.9
    assert DocumentField.objects.get(document=third, source="sender").reason.endswith("confirmed twice.")

    teach(third, "invoice_number", "05.03.2026")

    lesson = SenderLesson.objects.order_by("pk").first()
    assert counts(lesson) == (2, 1)
    value = DocumentField.objects.get(document=arrive(workspace, number="4714"), source="sender")
    assert (value.value, value.confidence) == ("05.03.2026", 0.85)


def test_confidence_and_reason_follow_the_evidence():
    assert [confidence_of(right, 0) for right in (0, 1, 2, 3, 9)] == [0, 0.85, 0.9, 0.925, 0.97]
    assert confidence_of(3, 1) == 0.694
    assert confidence_of(1, 0, 0.3) == 0.425
    assert reason_of(12, 3, 0) == "Learned from document 12, confirmed 3 times."
    assert reason_of(None, 1, 2) == "Learned elsewhere and imported, confirmed once, contradicted twice."


def test_what_is_printed_nowhere_is_recorded_and_never_guessed(workspace):
    teach(arrive(workspace), "order_number", "PO-9-9-9")

    lesson = SenderLesson.objects.get()
    assert (lesson.method, counts()) == ({}, (1, 0))
    assert given(arrive(workspace)) == {}


def test_an_absent_field_contradicts_what_was_learned(workspace):
    teach(arrive(workspace), "invoice_number", "4711")
    teach(arrive(workspace, number="4712"), "invoice_number", "")

    assert counts() == (1, 1)
    assert DocumentField.objects.get(document=arrive(workspace), source="sender").confidence == 0.425


def test_a_withdrawn_correction_takes_back_what_it_taught(workspace):
    first, second = arrive(workspace), arrive(workspace, number="4712")
    teach(first, "invoice_number", "4711")
    teach(second, "invoice_number", "4712")
    third = arrive(workspace, number="4713")

    withdraw(second.pk, "invoice_number", actor="olga")
    assert counts() == (1, 0)
    assert given(third)
    withdraw(first.pk, "invoice_number", actor="olga")

    assert not SenderLesson.objects.exists()
    update_all()
    assert given(third) == {}
    assert given(arrive(workspace)) == {}


def test_another_correction_of_the_same_field_replaces_what_the_first_one_taught(workspace):
    first = arrive(workspace)
    teach(first, "clerk", "4711")
    teach(first, "clerk", "Frau Nord")

    assert given(arrive(workspace, number="4712")) == {"clerk": "Frau Nord"}
    assert LessonEvidence.objects.count() == 1


def test_workspaces_learn_apart(workspace):
    teach(arrive(workspace), "invoice_number", "4711")

    elsewhere = arrive(DocumentFactory().workspace, number="4712")

    assert given(elsewhere) == {}


def test_what_was_learned_survives_processing_again_and_the_purge(workspace):
    write(workspace, document_retention_days=1)
    first = arrive(workspace)
    teach(first, "invoice_number", "4711")
    arrive(workspace, document=first)
    age(first, 2 * DAY)
    assert counts() == (1, 0)

    assert list(retention.purge(workspace, actor="olga"))

    assert Document.objects.get(pk=first.pk).purged_at
    assert not FieldCorrection.objects.exists()
    assert given(arrive(workspace, number="4712")) == {"invoice_number": "4712"}


def test_a_correction_of_who_sent_it_finds_or_creates_the_sender(workspace):
    first = arrive(workspace)
    teach(first, "invoice_number", "4711")
    before = Document.objects.get(pk=first.pk).sender
    teach(first, "seller", "Nordlicht Werkstatt e.K.")
    assert Document.objects.get(pk=first.pk).sender == before
    assert Sender.objects.get().name == "Nordlicht Werkstatt e.K."
    SenderIdentity.objects.create(sender=before, workspace=workspace, kind="vat_id", value="DE123456789")

    teach(first, "vat_id", "DE136695976")
    learned()

    after = Document.objects.get(pk=first.pk).sender
    assert after != before
    assert {lesson.field for lesson in after.lessons.all()} == {"invoice_number", "seller", "vat_id"}
    assert not before.lessons.exists()


def test_nothing_is_learned_without_a_sender_without_words_and_while_it_is_off(workspace, document):
    correct(document.pk, "invoice_number", "4711", actor="olga")
    off = sender_of(workspace, switched_off_at=clock.now(), switched_off_by="olga")
    switched_off = arrive(workspace)
    correct(switched_off.pk, "invoice_number", "4711", actor="olga")

    learned()

    assert switched_off.sender == off
    assert not SenderLesson.objects.exists()
    assert not FieldCorrection.objects.filter(learned_at__isnull=True).exists()


def test_a_document_that_is_published_meanwhile_is_learned_from_later(workspace, monkeypatch):
    first = arrive(workspace)
    correct(first.pk, "invoice_number", "4711", actor="olga")
    load = words.load

    def published_meanwhile(job):
        pages = load(job)
        monkeypatch.undo()
        arrive(workspace, document=first)
        return pages

    monkeypatch.setattr(words, "load", published_meanwhile)

    learned()
    assert not SenderLesson.objects.exists()
    learned()
    assert counts() == (1, 0)


def test_the_least_reliable_of_many_lessons_makes_room(workspace):
    sender = sender_of(workspace)
    method = {"kind": "number", "as": "printed", "ways": []}
    lessons = [SenderLessonFactory(sender=sender, method={**method, "n": n}) for n in range(learning._MOST_LESSONS)]
    for lesson in lessons[1:]:
        LessonEvidenceFactory(lesson=lesson)
    write(lessons[0], imported_right=1, imported_wrong=9)

    teach(arrive(workspace), "invoice_number", "4711")

    left = set(sender.lessons.values_list("pk", flat=True))
    assert len(left) == learning._MOST_LESSONS
    assert lessons[0].pk not in left


def test_a_lesson_that_is_switched_off_is_not_used(workspace):
    teach(arrive(workspace), "invoice_number", "4711")
    write(SenderLesson.objects.get(), switched_off_at=clock.now(), switched_off_by="olga")

    assert given(arrive(workspace, number="4712")) == {}


def test_a_known_sender_costs_a_publication_two_statements(workspace, django_assert_num_queries):
    arrive(workspace)
    teach(arrive(workspace), "invoice_number", "4711")
    sender = Sender.objects.get()

    pages = words.load(Document.objects.latest("pk").words_job)

    with django_assert_num_queries(1):
        assert senders.identify(workspace.pk, [field("iban", IBAN, 0.95)]) == sender.pk
    with django_assert_num_queries(1):
        assert learning.values_for(sender.pk, pages)
    with django_assert_num_queries(0):
        assert learning.values_for(None, pages) == learning.values_for(sender.pk, []) == []


def test_real_documents_teach_each_other(slot):
    workspace = add(pdf("Konto DE89 3704 0044 0532 0130 00\n\nVorgang: 4711\n\nFreitext")).workspace
    process(slot)
    teach(Document.objects.get(), "invoice_number", "4711")
    add(pdf("Konto DE89 3704 0044 0532 0130 00\n\nFreitext\n\nVorgang: 4790"), workspace=workspace, name="b.pdf")
    process(slot)

    first, second = Document.objects.order_by("pk")
    assert given(second) == {"invoice_number": "4790"}
    lifecycle.reprocess(second, actor="olga")
    process(slot)
    assert given(second) == {"invoice_number": "4790"}
    assert not SenderUpdate.objects.exists()
    assert first.sender == second.sender
