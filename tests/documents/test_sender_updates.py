"""When what is known about a sender changes, its past documents follow in batches that survive any worker."""

import pytest

from documents import sender_updates, senders, words
from documents.corrections import correct
from documents.lesson_previews import preview
from documents.models import Document, DocumentField, Sender, SenderLesson, SenderUpdate
from tests.documents.taught import arrive, field, given, learned, sender_of, state_of, update_all
from tests.factories import SenderUpdateFactory, write
from work import clock

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def files(places):
    """Keep the stored words of each test apart."""


@pytest.fixture
def five(workspace, monkeypatch):
    """Five documents of one sender, the first of which has taught its number."""
    monkeypatch.setattr(sender_updates, "BATCH", 2)
    documents = [arrive(workspace, field("invoice_number", "Anna"), number=str(4711 + n)) for n in range(5)]
    correct(documents[0].pk, "invoice_number", "4711", actor="olga")
    learned()
    return documents


def numbers(documents):
    return [given(document).get("invoice_number") for document in documents]


def test_past_documents_get_values_when_somebody_applies_the_lessons(five):
    assert numbers(five) == [None] * 5

    senders.update_documents(five[0].sender_id, applied_by="olga")
    sender_updates.advance()
    assert numbers(five) == [None, None, None, "4714", "4715"]
    update_all()

    assert numbers(five) == ["4711", "4712", "4713", "4714", "4715"]
    assert not SenderUpdate.objects.exists()


def test_switching_off_restores_the_state_before(five):
    before = state_of(*five)
    senders.update_documents(five[0].sender_id, applied_by="olga")
    update_all()
    assert state_of(*five) != before

    write(Sender.objects.get(), switched_off_at=clock.now(), switched_off_by="olga")
    senders.update_documents(five[0].sender_id)
    update_all()

    assert state_of(*five) == before


def test_a_change_that_nobody_applies_gives_no_values_to_documents_that_had_none(five, workspace):
    latest = arrive(workspace, number="4716")

    senders.update_documents(latest.sender_id)
    update_all()

    assert numbers([*five, latest]) == [*[None] * 5, "4716"]


def test_a_forgotten_sender_leaves_no_value_and_no_row(five, workspace):
    latest = arrive(workspace, number="4716")
    write(Sender.objects.get(), forgotten_at=clock.now())

    senders.update_documents(latest.sender_id)
    update_all()

    assert not DocumentField.objects.filter(source="sender").exists()
    assert not Sender.objects.exists()
    assert not SenderLesson.objects.exists()
    assert set(Document.objects.values_list("sender", flat=True)) == {None}


def test_a_change_in_the_middle_of_an_update_begins_it_again(five):
    senders.update_documents(five[0].sender_id, applied_by="olga")
    sender_updates.advance()

    senders.update_documents(five[0].sender_id)

    update = SenderUpdate.objects.get()
    assert update.below > five[-1].pk
    assert update.applied_by == "olga"


def test_a_document_that_is_published_meanwhile_is_updated_by_the_next_call(five, workspace, monkeypatch):
    senders.update_documents(five[0].sender_id, applied_by="olga")
    load = sender_updates.words.load

    def published_meanwhile(job):
        monkeypatch.setattr(sender_updates.words, "load", load)
        arrive(workspace, document=five[4], number="5000")
        return load(job)

    monkeypatch.setattr(sender_updates.words, "load", published_meanwhile)

    sender_updates.advance()
    assert SenderUpdate.objects.get().below > five[4].pk
    update_all()
    assert numbers(five) == ["4711", "4712", "4713", "4714", "5000"]


def test_documents_of_nobody_turn_out_to_be_of_the_sender(five):
    Document.objects.filter(pk__in=[five[1].pk, five[2].pk]).update(sender=None)
    stranger = Document.objects.get(pk=five[2].pk)
    words.store(stranger.words_job + 1000, [{"number": 1, "words": [["Hello", 0.1, 0.1, 0.2, 0.12]]}])
    write(stranger, words_job=stranger.words_job + 1000)

    assert preview(five[0].sender).documents == 4
    senders.update_documents(five[0].sender_id, applied_by="olga")
    update_all()

    assert numbers(five) == ["4711", "4712", None, "4714", "4715"]
    assert Document.objects.get(pk=five[1].pk).sender == five[0].sender
    assert Document.objects.get(pk=five[2].pk).sender is None


def test_without_work_nothing_happens(workspace):
    assert sender_updates.advance("w1") == 0
    SenderUpdateFactory(sender=sender_of(workspace))
    assert sender_updates.advance("w1") == 0
    assert not SenderUpdate.objects.exists()
