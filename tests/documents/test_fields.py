import pytest
from django.db import transaction

from documents import corrections, fields
from documents.models import DocumentField
from tests.factories import (
    DocumentFieldFactory,
    FieldCorrectionFactory,
    force_status,
    write,
)
from work import clock

pytestmark = pytest.mark.django_db


def field(name, value="42", **more):
    return {"name": name, "value": value, "kind": "text", "confidence": 0.7, "page": 1, "box": None} | more


def of(document):
    return {row.name: row for row in fields.of_document(document.pk)}


def test_what_was_read_is_kept_in_its_order(document):
    fields.keep(
        document.pk,
        [
            field("total", "12.00 EUR", kind="amount", confidence=0.95, page=2, box=[0, 0.25, 1, 0.5], source="local"),
            field("date", confidence=None, page=None),
        ],
    )

    total, date = fields.of_document(document.pk)
    assert (total.name, total.value, total.machine_value, total.kind) == ("total", "12.00 EUR", "12.00 EUR", "amount")
    assert (total.confidence, total.page, total.box, total.source) == (0.95, 2, [0.0, 0.25, 1.0, 0.5], "local")
    assert (date.confidence, date.page, date.box, date.correction, date.agrees) == (None,) * 5
    assert not total.is_corrected


def test_reading_again_replaces_what_was_read_and_leaves_what_people_said(document):
    fields.keep(document.pk, [field("total", "12"), field("date", "today")])
    corrections.correct(document.pk, "total", "13", actor="olga")
    corrections.correct(document.pk, "date", "today", actor="olga")

    fields.keep(document.pk, [field("total", "12.5"), field("number", "7")])

    rows = of(document)
    assert list(rows) == ["total", "number", "date"]
    assert (rows["total"].machine_value, rows["total"].value, rows["total"].agrees) == ("12.5", "13", False)
    assert (rows["total"].correction.by, rows["number"].is_corrected) == ("olga", False)
    # Only the correction has a value for this field now.
    assert (rows["date"].id, rows["date"].value, rows["date"].agrees) == (None, "today", None)


def test_other_documents_keep_theirs(document):
    other = DocumentFieldFactory()

    fields.keep(document.pk, [])

    assert DocumentField.objects.get() == other


def test_texts_are_cut_and_cleaned_for_a_document_makes_them(document):
    fields.keep(document.pk, [field("n" * 101, "\0 a\x1bb\r\nc\ud800 " + "v" * 6000, kind="k" * 40, source="s" * 200)])

    row = DocumentField.objects.get()
    assert (len(row.name), len(row.kind), len(row.source)) == (100, 32, 100)
    assert row.value == ("ab\nc " + "v" * 6000)[: fields.LONGEST_VALUE]


def test_of_two_with_one_name_the_surer_is_kept(document):
    fields.keep(document.pk, [field("a", "1"), field("a", "2", confidence=0.9), field(" a\n", "3")])

    assert [row.value for row in fields.of_document(document.pk)] == ["2"]


def test_no_more_than_so_many_are_kept(document):
    fields.keep(document.pk, [field(f"field {n}") for n in range(fields.MOST + 5)])

    assert DocumentField.objects.count() == fields.MOST


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": " "},
        {"confidence": 1.01},
        {"confidence": -0.1},
        {"confidence": float("nan")},
        {"confidence": "0.5"},
        {"confidence": True},
        {"page": 0},
        {"page": 2**31},
        {"page": 1.5},
        {"box": [0, 0, 1]},
        {"box": [0, 0, 1, 2]},
        {"box": "abcd"},
    ],
)
def test_what_no_document_can_be_the_cause_of_is_refused_and_leaves_all_as_it_was(document, wrong):
    fields.keep(document.pk, [field("a")])

    with pytest.raises(ValueError, match=r" must (be|have) .*, not .*\.$"), transaction.atomic():
        fields.keep(document.pk, [field("b"), field("c") | wrong])

    assert [row.name for row in fields.of_document(document.pk)] == ["a"]


def to_look_at():
    return {row.name for row in DocumentField.objects.to_look_at()}


def test_to_look_at_is_what_is_unsure_and_uncorrected(document):
    force_status(document, "processed")
    for name, confidence in {"sure": 0.8, "unsure": 0.79, "unsaid": None, "seen": 0.5}.items():
        DocumentFieldFactory(document=document, name=name, confidence=confidence)
    FieldCorrectionFactory(document=document, name="seen")
    # Corrections of another document and of another field do not count.
    FieldCorrectionFactory(name="unsure")
    FieldCorrectionFactory(document=document, name="other")

    assert to_look_at() == {"unsure"}
    assert {row.name for row in DocumentField.objects.corrected()} == {"seen"}


def test_documents_that_may_change_or_hold_nothing_are_not_to_be_looked_at(document):
    DocumentFieldFactory(document=document, name="a", confidence=0.5)

    for status, expected in (("processing", set()), ("failed", set()), ("processed", {"a"})):
        force_status(document, status)
        assert to_look_at() == expected
    write(document, file="", purged_at=clock.now())
    assert to_look_at() == set()


def test_each_field_comes_with_its_correction(document):
    DocumentFieldFactory(document=document, name="a")
    DocumentFieldFactory(document=document, name="b")
    FieldCorrectionFactory(document=document, name="b", value="")

    said = {row.name: (row.correction, row.corrected_by) for row in DocumentField.objects.with_corrections()}

    assert said == {"a": (None, None), "b": ("", "olga")}
