"""What people do with the lessons of a sender: preview, apply, switch off and on, forget, export, import."""

import json

import pytest

from documents import lesson_files, lessons, words
from documents.corrections import correct
from documents.lesson_files import InvalidFile
from documents.lesson_previews import preview
from documents.models import (
    Document,
    DocumentField,
    FieldCorrection,
    Sender,
    SenderIdentity,
    SenderLesson,
    SenderUpdate,
)
from tests.documents.taught import IBAN, arrive, field, given, learned, state_of, update_all
from tests.factories import SenderFactory, SenderLessonFactory, WorkspaceFactory
from work.operations.outcomes import Outcome

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def files(places):
    """Keep the stored words of each test apart."""


@pytest.fixture
def three(workspace):
    """Three documents whose number was misread; the first has taught where it is."""
    documents = [
        arrive(workspace, field("invoice_number", text, sure), number=str(4711 + n))
        for n, (text, sure) in enumerate([("Anna", 0.9), ("Beispiel", 0.5), ("4713", 0.6)])
    ]
    correct(documents[0].pk, "invoice_number", "4711", actor="olga")
    learned()
    return documents


def sender():
    return Sender.objects.get()


def test_a_preview_says_what_would_improve_change_and_get_worse(three, workspace):
    fourth = arrive(workspace, field("invoice_number", "Sure", 0.9), number="4714")
    DocumentField.objects.filter(source="sender").delete()
    DocumentField.objects.update(chosen=True)
    fifth = arrive(workspace, field("invoice_number", "5000", 0.9), number="4715")
    DocumentField.objects.filter(document=fifth, source="sender").delete()
    DocumentField.objects.filter(document=fifth).update(chosen=True)
    before = state_of(*three, fourth, fifth)
    correct(fifth.pk, "invoice_number", "5000", actor="olga")

    seen = preview(sender())

    changes = {(each.document_id, each.before, each.after, each.verdict) for each in seen.changes}
    assert changes == {
        (three[0].pk, "Anna", "4711", "improved"),
        (three[1].pk, "Beispiel", "4712", "improved"),
        (three[2].pk, "4713", "4713", "improved"),
        (fourth.pk, "Sure", "4714", "changed"),
        (fifth.pk, "5000", "4715", "worse"),
    }
    assert seen.sentence == "Of the values of 5 documents: 3 improved, 1 changed, 1 worse."
    assert state_of(*three, fourth, fifth) == before


def test_applying_and_switching_off_are_the_whole_way_there_and_back(three):
    before = state_of(*three)

    assert lessons.apply(sender(), actor="olga") is Outcome.APPLIED
    update_all()
    assert [given(document) for document in three] == [{"invoice_number": str(4711 + n)} for n in range(3)]
    assert (sender().applied_by, preview(sender()).changes) == ("olga", [])

    assert lessons.switch_off(sender(), actor="paul") is Outcome.SWITCHED_OFF
    update_all()
    assert state_of(*three) == before
    assert sender().switched_off_by == "paul"
    assert lessons.switch_off(sender(), actor="paul") is Outcome.IS_OFF
    assert lessons.apply(sender(), actor="paul") is Outcome.IS_OFF

    assert lessons.switch_on(sender(), actor="olga") is Outcome.SWITCHED_ON
    assert lessons.switch_on(sender(), actor="olga") is Outcome.IS_ON
    assert state_of(*three) == before


def test_a_single_lesson_is_switched_off_and_on(three, workspace):
    lesson = SenderLesson.objects.get()
    fourth = arrive(workspace, number="4714")

    assert lessons.switch_off(lesson, actor="olga") is Outcome.SWITCHED_OFF
    update_all()
    assert given(fourth) == {}
    assert lessons.switch_off(lesson, actor="olga") is Outcome.IS_OFF

    assert lessons.switch_on(lesson, actor="olga") is Outcome.SWITCHED_ON
    assert given(arrive(workspace, number="4715")) == {"invoice_number": "4715"}


def test_a_forgotten_sender_is_gone_and_a_new_document_has_a_new_one(three, workspace):
    lessons.apply(sender(), actor="olga")
    update_all()
    old = sender()

    assert lessons.forget(old, actor="olga") is Outcome.FORGOTTEN
    assert lessons.forget(old, actor="olga") is Outcome.NOT_FOUND
    assert lessons.switch_off(old, actor="olga") is Outcome.NOT_FOUND
    assert not Sender.objects.kept().exists()
    fourth = arrive(workspace, number="4714")
    update_all()

    assert set(Sender.objects.values_list("pk", flat=True)) == {fourth.sender_id}
    assert not SenderLesson.objects.exists()
    assert [given(document) for document in (*three, fourth)] == [{}] * 4
    assert Document.objects.get(pk=three[0].pk).sender is None


def test_what_is_known_moves_to_another_workspace_only_in_a_file(three, workspace):
    data = json.dumps(lesson_files.export(sender())).encode()
    other = WorkspaceFactory()

    taken, number = lesson_files.take_in(other.pk, lesson_files.read(data), actor="olga")

    assert (taken.workspace, taken.name, number) == (other, sender_name(workspace), 1)
    arrived = arrive(other, number="4790")
    assert given(arrived) == {"invoice_number": "4790"}
    reason = DocumentField.objects.get(document=arrived, source="sender").reason
    assert reason == "Learned elsewhere and imported, confirmed once."
    assert lesson_files.take_in(other.pk, lesson_files.read(data), actor="olga") == (taken, 0)
    assert lesson_files.export(taken) == json.loads(data)


def sender_name(workspace):
    return Sender.objects.get(workspace=workspace).name


def test_a_lesson_that_was_off_is_imported_as_it_was(workspace):
    lesson = exported()["lessons"][0] | {"switched_off": True}

    lesson_files.take_in(workspace.pk, {**exported(), "lessons": [lesson]}, actor="olga")

    assert SenderLesson.objects.get().switched_off_by == "olga"


def exported(**changes):
    way = {
        **{"left": ["vorgang"], "skip": 0, "above": [], "x": [0.1, 0.2], "y": 0.3, "top": 0.29, "text": False},
        **{"front": 0, "back": 0, "inside": False, "end": True, "words": 1, "lines": 1, "length": 4},
        **{"letters": False, "style": "", "from_end": 1, "alike": 1, "fit": 1.0},
    }
    method = {"kind": "number", "as": "normal", "ways": [way | changes.pop("way", {})]}
    lesson = {"field": "invoice_number", "method": method | changes.pop("method", {})}
    lesson |= {"right": 1, "wrong": 0, "switched_off": False} | changes.pop("lesson", {})
    identities = [{"kind": "iban", "value": IBAN}, {"kind": "domain", "value": "nordlicht.example"}]
    return {"version": 1, "name": "Nordlicht", "identities": identities, "lessons": [lesson]} | changes


def test_a_complete_file_is_taken_in(workspace):
    taken, number = lesson_files.take_in(workspace.pk, exported(), actor="olga")

    assert (taken.name, number) == ("Nordlicht", 1)
    assert set(SenderIdentity.objects.values_list("kind", "value")) == {
        ("iban", IBAN),
        ("domain", "nordlicht.example"),
    }


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"version": 2}, "its version is not 1"),
        ({"name": " "}, "name of the sender"),
        ({"identities": [{"kind": "colour", "value": "red"}]}, "Each identity needs"),
        ({"identities": []}, "no identity"),
        ({"lessons": {}}, "list of at most"),
        ({"lessons": [1]}, "Lesson 1 is invalid: It names no field"),
        ({"lesson": {"field": " "}}, "1 to 100 characters"),
        ({"lesson": {"right": -1}}, "“right” must be"),
        ({"lesson": {"wrong": True}}, "“wrong” must be"),
        ({"lesson": {"switched_off": 0}}, "true or false"),
        ({"lesson": {"method": {}}}, "“kind”, “as” and “ways”"),
        ({"method": {"kind": "colour"}}, "Unknown kind 'colour'"),
        ({"method": {"as": 1}}, "Its texts"),
        ({"method": {"ways": [{}] * 5}}, "at most 4"),
        ({"method": {"ways": [{}]}}, "needs exactly"),
        ({"way": {"left": ["a"] * 7}}, "The “left” of a way"),
        ({"way": {"y": "low"}}, "The “y” of a way"),
        ({"way": {"skip": -1}}, "The “skip” of a way"),
        ({"way": {"end": 1}}, "The “end” of a way"),
        ({"way": {"x": [1]}}, "The “x” of a way"),
        ({"way": {"style": 7}}, "The “style” of a way"),
    ],
    ids=lambda each: each if isinstance(each, str) else None,
)
def test_an_invalid_file_is_refused_and_nothing_is_written(changes, problem, workspace):
    with pytest.raises(InvalidFile, match=problem):
        lesson_files.take_in(workspace.pk, lesson_files.read(json.dumps(exported(**changes)).encode()), actor="olga")

    assert not Sender.objects.exists()


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"{", "not JSON"), (b"[" * 100_000, "not JSON"), (b"[]", "version"), (b" " * (2 << 20), "at most 1,048,576")],
    ids=["cut", "deep", "list", "large"],
)
def test_a_file_that_is_none_of_ours_is_refused(data, problem):
    with pytest.raises(InvalidFile, match=problem):
        lesson_files.read(data)


def test_the_workspace_takes_everything_along(workspace):
    SenderLessonFactory(sender=SenderFactory(workspace=workspace))
    SenderUpdate.objects.create(sender=sender(), below=1)

    workspace.delete()

    assert not Sender.objects.exists()
    assert not SenderLesson.objects.exists()


def test_a_correction_that_cannot_be_learned_from_stops_no_other(workspace, monkeypatch):
    first, second = (arrive(workspace, field("invoice_number", "Anna"), number=str(4711 + n)) for n in range(2))
    for document, number in ((first, "4711"), (second, "4712")):
        correct(document.pk, "invoice_number", number, actor="olga")
    load = words.load

    def fail_once(job):
        if job == first.words_job:
            raise OSError("the storage is away")
        return load(job)

    monkeypatch.setattr(words, "load", fail_once)
    learned()
    waiting = FieldCorrection.objects.filter(learned_at=None)
    assert [each.document_id for each in waiting] == [first.pk]

    monkeypatch.setattr(words, "load", load)
    learned()
    assert not waiting.all().exists()
