import pytest
from django.db import transaction

from documents import corrections, fields, problems
from documents.choosing import Problem
from documents.models import DocumentField, DocumentProblem
from documents.types import BUILT_IN, UNKNOWN, FieldSpec, TypeSpec
from tests.factories import DocumentFieldFactory, FieldCorrectionFactory, events_of, force_status, write
from work import clock
from work.operations.outcomes import Outcome

pytestmark = pytest.mark.django_db


def field(name, value="42", **more):
    return {"name": name, "value": value, "kind": "text", "confidence": 0.7, "page": 1, "box": None} | more


def of(document):
    return {row.name: row for row in fields.of_document(document.pk)}


def keep(document, *values, spec=UNKNOWN):
    fields.keep(document.pk, values, spec)


def test_known_fields_come_first_then_others_and_last_what_was_also_found(document):
    keep(
        document,
        field("grund", "Umzug"),
        field("total", source="service"),
        field(
            "gross_total", "12.00 EUR", kind="amount", confidence=0.95, page=2, box=[0, 0.25, 1, 0.5], reason="Because."
        ),
        field("date", confidence=None, page=None),
    )

    date, gross, total, grund = fields.of_document(document.pk)
    assert (gross.name, gross.value, gross.machine_value, gross.kind) == (
        "gross_total",
        "12.00 EUR",
        "12.00 EUR",
        "amount",
    )
    assert (gross.confidence, gross.page, gross.box, gross.source) == (0.95, 2, [0.0, 0.25, 1.0, 0.5], "page")
    assert (gross.reason, gross.is_corrected, gross.also_found) == ("Because.", False, False)
    assert (date.confidence, date.page, date.box, date.correction, date.agrees) == (None,) * 5
    # A service was asked for its fields, so they count although ADE does not know their names.
    assert (total.name, total.also_found, grund.name, grund.also_found) == ("total", False, "grund", True)


def test_reading_again_replaces_all_values_but_those_of_runs_and_people(document):
    keep(document, field("gross_total", "12"), field("date", "today"))
    fields.publish_run(document.pk, "run 7", [], [field("number", "7"), field("number", "8", confidence=0.9)])
    corrections.correct(document.pk, "gross_total", "13", actor="olga")
    corrections.correct(document.pk, "date", "today", actor="olga")

    keep(document, field("gross_total", "12.5"))

    rows = of(document)
    assert list(rows) == ["gross_total", "number", "date"]
    total, number, date = rows.values()
    assert (total.machine_value, total.value, total.agrees, total.correction.by) == ("12.5", "13", False, "olga")
    assert (number.value, number.source, number.is_corrected) == ("8", "run 7", False)
    # Only the correction has a value for this field now.
    assert (date.id, date.value, date.agrees) == (None, "today", None)


def test_a_later_run_replaces_the_findings_of_the_runs_that_it_names(document):
    fields.publish_run(document.pk, "run 7", [], [field("number", "7"), field("old", "1")])
    fields.publish_run(document.pk, "run 8", [], [field("number", "8")])

    fields.publish_run(document.pk, "run 9", ["run 7"], [field("number", "9")])

    assert {(row.name, row.source, row.chosen) for row in DocumentField.objects.all()} == {
        ("number", "run 8", False),
        ("number", "run 9", True),
    }


def test_a_sure_e_invoice_applies_and_the_page_that_differs_is_a_conflict(document):
    keep(
        document,
        field("invoice_number", "471102", confidence=1, source="e-invoice"),
        field("invoice_number", "471 103", confidence=0.95, page=1),
        field("due_date", "2026-01-02", kind="date", confidence=1, source="e-invoice"),
        field("due_date", "2026-01-02", kind="date", confidence=0.95),
        spec=BUILT_IN["invoice"],
    )

    number, due = (of(document)[name] for name in ("invoice_number", "due_date"))
    assert (number.value, number.source, number.in_conflict, number.to_review) == ("471102", "e-invoice", True, True)
    assert [(each.source, each.value, each.page) for each in number.others] == [("page", "471 103", 1)]
    assert (due.in_conflict, due.to_review, len(due.others)) == (False, False, 1)


def test_a_type_decides_what_is_a_field_and_which_ones_are_missing(document):
    keep(document, field("grund", "Umzug"), field("phone", "+49 1", confidence=0.5))
    assert not DocumentProblem.objects.exists()

    spec = TypeSpec(
        "move",
        "Move",
        [FieldSpec("grund", threshold=0.6), FieldSpec("date", "date", is_required=True)],
        is_built_in=False,
    )
    fields.refresh(document.pk, spec)

    rows = of(document)
    assert (rows["grund"].also_found, rows["grund"].to_review) == (False, False)
    assert (rows["phone"].also_found, rows["phone"].to_review) == (True, False)
    problem = DocumentProblem.objects.get()
    assert (problem.code, problem.field) == ("field_missing", "date")
    corrections.correct(document.pk, "date", "2026-01-02", actor="olga")
    assert not DocumentProblem.objects.open().exists()


def test_a_problem_that_is_found_again_stays_dismissed(document):
    sums, dates = Problem("sum_is_wrong", "", "Wrong."), Problem("date_is_wrong", "date", "Late.")
    fields.keep(document.pk, [], UNKNOWN, [sums, dates])
    problem = DocumentProblem.objects.get(code=sums.code)
    assert problems.dismiss(problem, actor="olga") == Outcome.DISMISSED
    assert problems.dismiss(problem, actor="olga") == Outcome.WAS_DISMISSED

    fields.keep(document.pk, [], UNKNOWN, [sums, Problem("new", "", "New.")])

    assert {row.code: row.dismissed_by for row in DocumentProblem.objects.all()} == {"sum_is_wrong": "olga", "new": ""}
    assert [(event.actor, event.data) for event in events_of(document) if event.kind == "PROBLEM_DISMISSED"] == [
        ("olga", {"code": "sum_is_wrong", "field": ""})
    ]


def test_other_documents_keep_theirs(document):
    other = DocumentFieldFactory()

    keep(document)

    assert DocumentField.objects.get() == other


def test_texts_are_cut_and_cleaned_for_a_document_makes_them(document):
    keep(
        document,
        field("n" * 101, "\0 a\x1bb\r\nc\ud800 " + "v" * 6000, kind="k" * 40, source="s" * 200, reason="r" * 600),
    )

    row = DocumentField.objects.get()
    assert (len(row.name), len(row.kind), len(row.source), len(row.reason)) == (100, 32, 100, 500)
    assert row.value == ("ab\nc " + "v" * 6000)[: fields.LONGEST_VALUE]


def test_of_two_with_one_name_the_surer_is_kept(document):
    keep(document, field("a", "1"), field("a", "2", confidence=0.9), field(" a\n", "3"))

    assert [row.value for row in fields.of_document(document.pk)] == ["2"]


def test_no_more_than_so_many_are_kept(document):
    keep(document, *(field(f"field {n}") for n in range(fields.MOST + 5)))

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
    keep(document, field("a"))

    with pytest.raises(ValueError, match=r" must (be|have) .*, not .*\.$"), transaction.atomic():
        keep(document, field("b"), field("c") | wrong)

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


def needs_review(document):
    document.refresh_from_db()
    return document.to_review


def test_a_document_needs_review_until_every_field_and_problem_is_settled(document):
    problem = Problem("sum_is_wrong", "", "Wrong.")
    fields.keep(document.pk, [field("date", confidence=0.5), field("phone", confidence=0.9)], UNKNOWN, [problem])
    assert needs_review(document)
    assert document.touched_at is None

    corrections.correct(document.pk, "date", "2026-01-02", actor="olga")
    assert needs_review(document)
    assert document.touched_at is not None

    problems.dismiss(DocumentProblem.objects.get(), actor="olga")
    assert not needs_review(document)

    corrections.withdraw(document.pk, "date", actor="olga")
    assert needs_review(document)

    keep(document, field("date", confidence=0.9))
    assert not needs_review(document)
