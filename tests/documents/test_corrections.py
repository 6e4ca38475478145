import pytest

from documents import corrections, fields
from documents.corrections import InvalidCorrection, correct, withdraw
from documents.models import DocumentField, FieldCorrection
from documents.types import UNKNOWN
from tests.factories import DocumentFieldFactory, events_of, force_status, told, write
from work import clock

pytestmark = pytest.mark.django_db


@pytest.fixture
def total(document):
    return DocumentFieldFactory(document=document, name="total", value="12")


def last_event(document):
    return events_of(document).last()


def test_a_correction_stands_beside_what_was_read(document, total):
    made = correct(document.pk, "total", "13", actor="olga")

    assert str(made) == "Corrected total from “12” to “13”."
    (row,) = fields.of_document(document.pk)
    assert (row.machine_value, row.value, row.is_corrected, row.agrees) == ("12", "13", True, False)
    assert (row.correction.by, row.correction.at <= clock.now()) == ("olga", True)
    assert DocumentField.objects.get().value == "12"


def test_it_is_in_the_history_of_the_document(document, total):
    correct(document.pk, "total", "13", actor="olga")
    correct(document.pk, "total", "14", actor="ravi")

    assert told(document) == ["DOCUMENT_ADDED", "FIELD_CORRECTED", "FIELD_CORRECTED"]
    event = last_event(document)
    assert (event.actor, event.message) == ("ravi", "Corrected total from “13” to “14”.")
    assert event.data == {"name": "total", "machine_value": "12", "before": "13", "value": "14"}
    assert event.from_status == event.to_status == ""


def test_to_say_the_same_is_to_confirm(document, total):
    made = correct(document.pk, "total", " 12\n", actor="olga")

    assert (made.is_confirmed, str(made)) == (True, "Confirmed total: “12”.")
    (row,) = fields.of_document(document.pk)
    assert (row.is_corrected, row.agrees) == (True, True)


def test_a_person_may_find_what_no_machine_has(document):
    made = correct(document.pk, " contract\n number ", "V-1", actor="olga")

    assert (made.name, made.machine_value, made.before) == ("contract number", None, None)
    (row,) = fields.of_document(document.pk)
    assert (row.name, row.id, row.machine_value, row.value) == ("contract number", None, None, "V-1")


def test_there_may_be_no_such_value(document, total):
    made = correct(document.pk, "total", "", actor="olga")

    assert str(made) == "Corrected total from “12” to nothing."
    (row,) = fields.of_document(document.pk)
    assert (row.value, row.is_corrected, row.agrees) == ("", True, False)


def test_what_cannot_be_seen_is_left_out(document):
    made = correct(document.pk, "a\x00b", "x\0y\x1b[31mz\ud800\r\nnext", actor="olga")

    assert (made.name, made.value) == ("ab", "xy[31mz\nnext")
    assert FieldCorrection.objects.get().value == "xy[31mz\nnext"


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [("", "x", "bad_name"), (" \n", "x", "bad_name"), ("n" * 101, "x", "bad_name"), ("n", "x" * 5001, "too_long")],
)
def test_what_cannot_be_kept_is_refused(document, name, value, code):
    with pytest.raises(
        InvalidCorrection, match=r"^The (name of a field|value) must have .*, (not|but) .*\. (Choose|Shorten) .*\.$"
    ) as refused:
        correct(document.pk, name, value, actor="olga")

    assert refused.value.code == code
    assert told(document) == ["DOCUMENT_ADDED"]


def test_the_longest_that_is_kept(document):
    correct(document.pk, "n" * 100, "x" * 5000, actor="o" * 300)

    assert FieldCorrection.objects.get().corrected_by == "o" * 150
    assert len(last_event(document).message) < 1000


def test_a_document_that_does_not_exist_has_no_fields(db):
    assert correct(999_999, "a", "b", actor="olga") is None
    assert withdraw(999_999, "a", actor="olga") is False


def test_a_purged_document_takes_nothing(document):
    write(force_status(document, "processed"), file="", purged_at=clock.now())

    with pytest.raises(InvalidCorrection, match="has been purged"):
        correct(document.pk, "a", "b", actor="olga")
    assert not FieldCorrection.objects.exists()


def test_what_was_read_holds_again_when_a_correction_is_withdrawn(document, total):
    correct(document.pk, "total", "13", actor="olga")

    assert withdraw(document.pk, "total", actor="ravi") is True

    (row,) = fields.of_document(document.pk)
    assert (row.value, row.is_corrected) == ("12", False)
    event = last_event(document)
    assert (event.kind, event.actor) == ("FIELD_CORRECTION_WITHDRAWN", "ravi")
    assert event.data == {"name": "total", "machine_value": "12", "before": "13", "value": None}
    assert event.message == "Withdrew the correction of total: from “13” back to “12”."


def test_what_nobody_has_corrected_cannot_be_withdrawn(document, total):
    assert withdraw(document.pk, "total", actor="olga") is False
    assert told(document) == ["DOCUMENT_ADDED"]


def test_a_correction_without_its_event_is_not_kept(document, total, monkeypatch):
    def fail(*args, **options):
        raise OSError("the database went away")

    monkeypatch.setattr("documents.history.record_correction", fail)

    with pytest.raises(OSError, match="went away"):
        correct(document.pk, "total", "13", actor="olga")
    assert not FieldCorrection.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_people_at_once_the_last_wins_and_both_are_in_the_history(threads, document, total):
    first = threads.hold(lambda: correct(document.pk, "total", "13", actor="olga"))
    second = threads.start(lambda: correct(document.pk, "total", "14", actor="ravi"))
    assert second.waits()
    first.commit()

    # The second correction has seen the first one.
    assert second.answer().before == "13"
    assert (FieldCorrection.objects.get().value, FieldCorrection.objects.get().corrected_by) == ("14", "ravi")
    assert [(event.actor, event.data["before"]) for event in events_of(document)[1:]] == [
        ("olga", None),
        ("ravi", "13"),
    ]


@pytest.mark.django_db(transaction=True)
def test_many_people_at_once_correct_one_field(threads, document, total):
    threads.together([lambda n=n: correct(document.pk, "total", str(n), actor=f"person {n}") for n in range(8)])

    events = [event.data for event in events_of(document) if event.kind == "FIELD_CORRECTED"]
    assert len(events) == 8
    assert [event["before"] for event in events] == [None, *(event["value"] for event in events[:-1])]
    assert FieldCorrection.objects.get().value == events[-1]["value"]


@pytest.mark.django_db(transaction=True)
def test_a_correction_waits_for_whoever_publishes_the_document(threads, document, total):
    def publish():
        type(document).objects.filter(pk=document.pk).update(text="new")
        fields.keep(document.pk, [{"name": "total", "value": "12.5"}], UNKNOWN)

    publishing = threads.hold(publish)
    correcting = threads.start(lambda: correct(document.pk, "total", "13", actor="olga"))
    assert correcting.waits()
    publishing.commit()

    assert correcting.answer().machine_value == "12.5"
    (row,) = fields.of_document(document.pk)
    assert (row.machine_value, row.value) == ("12.5", "13")


def test_a_long_value_is_told_in_short():
    assert corrections.quote("a\nb" * 200).endswith("…”")
    assert len(corrections.quote("x" * 5000)) == 202
