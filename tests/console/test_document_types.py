"""Types, problems and sources on the page of a document."""

from datetime import UTC, date, datetime

import pytest

from documents import fields, types
from documents.models import DocumentField, DocumentProblem
from tests.factories import (
    DocumentFactory,
    DocumentFieldFactory,
    DocumentProblemFactory,
    DocumentTypeFactory,
    FieldCorrectionFactory,
    events_of,
    force_status,
    write,
)
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

HOSTILE = "<script>alert(1)</script>{{7*7}}"


@pytest.fixture
def document(workspace):
    return force_status(DocumentFactory(workspace=workspace), "processed")


def path(document, *below):
    return f"/documents/{document.pk}/" + "".join(f"{each}/" for each in below)


def value(name, text, source="page", confidence=0.95, **more):
    return {"name": name, "value": text, "source": source, "confidence": confidence, "kind": "text"} | more


def test_a_field_shows_where_its_value_comes_from_and_what_others_say(seen_by, olga, document):
    page = value("invoice_number", "17", page=2, reason="Right of the label “No.”.", kind="number")
    invoice = value("invoice_number", "18", "e-invoice", 1, reason="From the XML.", kind="number")
    fields.keep(document.pk, [page, invoice, value("reason", "Moved")], types.BUILT_IN["invoice"])

    seen = seen_by(olga, path(document))

    text = " ".join(seen.content.decode().split())
    assert "From: e-invoice and 1 more" in text
    assert "page: “17”" in text
    assert "Right of the label “No.”." in text
    assert "conflict" in text
    assert [line.row.name for line in seen.context["also_found"]] == ["reason"]
    assert "Also found (1)" in text
    assert 'title="invoice_number">Invoice number</td>' in text


def test_hostile_values_and_reasons_are_text(seen_by, olga, document):
    document = write(document, type_reason=HOSTILE, to_review=True)
    DocumentProblemFactory(document=document, message=HOSTILE)
    DocumentTypeFactory(workspace=document.workspace, label=HOSTILE)
    fields.keep(document.pk, [value("x", HOSTILE, "service", reason=HOSTILE), value("x", "y" + HOSTILE)], types.UNKNOWN)

    text = seen_by(olga, path(document)).content.decode()

    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{{7*7}}" in text


def test_an_operator_chooses_the_type_and_a_viewer_does_not(seen_by, pressed_by, olga, ravi, document):
    DocumentTypeFactory(workspace=document.workspace, name="move", label="Moving notice")

    assert "Moving notice" in seen_by(olga, path(document)).content.decode()
    chosen = pressed_by(olga, path(document, "type"), type="move")
    again = pressed_by(olga, path(document, "type"), type="move")
    unknown = pressed_by(olga, path(document, "type"), type="bill")

    assert chosen.said == ["The type is 'move' now."]
    assert again.said == ["The document has this type already."]
    assert unknown.said[0].startswith("The type was not changed. Unknown type 'bill'. Known types: move, invoice,")
    document.refresh_from_db()
    assert (document.type, document.type_chosen_by) == ("move", "olga")
    assert "Choose another type" not in seen_by(ravi, path(document)).content.decode()
    assert pressed_by(olga, path(document, "type"), type="").said == ["ADE decides the type again."]


def test_a_problem_is_shown_until_it_is_dismissed_or_its_field_is_corrected(seen_by, pressed_by, olga, document):
    write(document, to_review=True)
    sums, date = (DocumentProblemFactory(document=document, field=field) for field in ("", "date"))
    shown = seen_by(olga, path(document)).context["problems"]
    assert set(shown) == {sums, date}

    FieldCorrectionFactory(document=document, name="date")
    dismissed = pressed_by(olga, f"/problems/{sums.pk}/dismiss/")

    assert dismissed.said == ["Dismissed 1 document problem."]
    assert not dismissed.context["problems"]
    assert DocumentProblem.objects.get(pk=sums.pk).dismissed_by == "olga"
    assert [event.kind for event in events_of(document)][-1] == "PROBLEM_DISMISSED"


def test_while_a_document_is_processed_its_type_cannot_be_chosen(seen_by, olga, workspace):
    document = DocumentFactory(workspace=workspace, type="invoice")

    page = seen_by(olga, path(document)).content.decode()

    assert "Invoice" in page
    assert "Choose another type" not in page


def test_confirming_a_conflict_solves_it(pressed_by, olga, document):
    row = DocumentFieldFactory(document=document, name="date", in_conflict=True, to_review=True)
    assert set(DocumentField.objects.to_look_at()) == {row}

    pressed_by(olga, path(document, "correct"), name="date", value=row.value)

    assert not DocumentField.objects.to_look_at().exists()


def test_the_list_is_filtered_by_type_and_by_what_needs_review(seen_by, olga, workspace):
    invoice, letter = (
        write(force_status(DocumentFactory(workspace=workspace), "processed"), **values)
        for values in ({"type": "invoice", "to_review": True}, {"type": "letter"})
    )
    stranger = write(force_status(DocumentFactory(), "processed"), type="invoice", to_review=True)

    def listed(query):
        return {row.pk for row in seen_by(olga, f"/documents/?{query}").context["slice"].rows}

    assert listed("type=invoice") == listed("status=to_review") == {invoice.pk}
    assert listed("type=letter&status=processed") == {letter.pk}
    assert listed("type=letter&status=to_review") == listed("type=nothing") == set()
    assert stranger.pk not in listed("")
    assert "Filtered by type <strong>Credit note" in seen_by(olga, "/documents/?type=credit_note").content.decode()


def test_the_share_without_review_is_counted_by_week_and_type(seen_by, olga, workspace, monkeypatch):
    def processed(**values):
        return write(force_status(DocumentFactory(workspace=workspace), "processed"), **values)

    for _ in range(2):
        processed(type="invoice")
    processed(type="invoice", to_review=True)
    processed(type="invoice", touched_at=clock.now(), to_review=True)
    processed(type="letter", created_at=datetime(2026, 1, 7, tzinfo=UTC))
    DocumentFactory(workspace=workspace)
    force_status(DocumentFactory(), "processed")

    quality = seen_by(olga, "/documents/quality/").context["quality"]

    invoices = quality.by_type["invoice"]
    assert (invoices.documents, invoices.touched, invoices.to_review, invoices.share) == (4, 1, 1, 0.5)
    assert (quality.total.documents, quality.is_cut) == (5, False)
    assert quality.by_week[date(2026, 1, 5)].documents == 1
    assert seen_by(olga, f"/documents/quality/?workspace={workspace.pk + 1}").context["quality"].total.documents == 0
    monkeypatch.setattr("documents.quality.MOST", 3)
    cut = seen_by(olga, "/documents/quality/").context["quality"]
    assert (cut.total.documents, cut.is_cut) == (3, True)
