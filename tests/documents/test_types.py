"""The types of documents: which one ADE recognises, what people choose, and what a changed type means."""

import pytest

from documents import fields, retyping, type_recognition, types
from documents.embedding.outcome import pack
from documents.models import Document, DocumentField, DocumentProblem, Retyping
from documents.type_recognition import UnknownType, choose, recognise
from tests.factories import (
    DocumentFactory,
    DocumentFieldFactory,
    DocumentTypeFactory,
    DocumentTypeFieldFactory,
    events_of,
    write,
)

pytestmark = pytest.mark.django_db

INVOICE = {"name": "invoice", "confidence": 0.97, "reason": "It has an invoice number."}
NORTH, NORTHEAST, EAST = pack([0, 1]), pack([0.3, 1]), pack([1, 0])


def recognised(workspace, read=INVOICE, text="", vector=NORTH, model="m"):
    return recognise(workspace.pk, types.of_workspace(workspace.pk), read, text, vector, model)


def test_an_own_type_replaces_the_built_in_one_of_the_same_name(workspace):
    own = DocumentTypeFactory(workspace=workspace, name="letter", label="Our letter", threshold=0.6)
    DocumentTypeFieldFactory(type=own, name="subject", position=2, required=True)
    DocumentTypeFieldFactory(type=own, name="from", position=1, threshold=0.9)
    DocumentTypeFactory(name="of others")

    known = types.of_workspace(workspace.pk)

    letter = known.get("letter")
    assert (letter.label, letter.is_built_in, [each.name for each in letter.fields]) == (
        "Our letter",
        False,
        ["from", "subject"],
    )
    assert (letter.threshold_of("from"), letter.threshold_of("subject")) == (0.9, 0.6)
    assert "of others" not in known
    assert [spec.name for spec in known.all()].count("letter") == 1


def test_the_reader_decides_unless_words_or_a_similar_document_do(workspace):
    assert recognised(workspace)[:2] == ("invoice", 0.97)
    assert recognised(workspace, read={**INVOICE, "name": "something"}) == ("", None, "")
    assert recognised(workspace, read=None) == ("", None, "")

    DocumentTypeFactory(workspace=workspace, name="reminder", words="Second Reminder\n\nfee\n")
    assert recognised(workspace, text="a second\n reminder").name == "invoice"
    assert recognised(workspace, text="A SECOND\n reminder with a fee")[:2] == ("reminder", 0.9)

    document = write(DocumentFactory(workspace=workspace), embedding=NORTHEAST, embedding_model="m")
    choose(document.pk, "contract", actor="olga")
    similar = recognised(workspace, text="A second reminder with a fee")
    assert similar.name == "contract"
    assert similar.reason == f"Like document {document.pk}, whose type olga chose."
    assert recognised(workspace, vector=EAST).name == "invoice"
    assert recognised(workspace, model="another").name == "invoice"
    assert recognised(DocumentFactory().workspace).name == "invoice"


def test_an_e_invoice_says_its_type_itself(workspace):
    document = write(DocumentFactory(workspace=workspace), embedding=NORTH, embedding_model="m")
    choose(document.pk, "contract", actor="olga")

    assert recognised(workspace, read={**INVOICE, "confidence": 1}).name == "invoice"


def test_a_person_chooses_the_type_and_its_fields_follow(document):
    DocumentFieldFactory(document=document, name="phone", confidence=0.5, kind="phone")

    assert choose(document.pk, "receipt", actor="olga") is True
    assert choose(document.pk, "receipt", actor="paul") is False

    document.refresh_from_db()
    assert (document.type, document.type_confidence, document.type_chosen_by) == ("receipt", None, "olga")
    assert {row.field for row in DocumentProblem.objects.all()} == {"seller", "date", "gross_total"}
    (event,) = (event for event in events_of(document) if event.kind == "DOCUMENT_TYPE_CHOSEN")
    assert (event.actor, event.data) == ("olga", {"before": "", "type": "receipt"})

    assert choose(document.pk, "order", actor="paul") is True
    assert not DocumentField.objects.get().also_found
    assert choose(document.pk, "statement", actor="paul") is True
    assert choose(document.pk, "", actor="paul") is True
    document.refresh_from_db()
    assert (document.type, document.type_chosen_by) == ("", "")
    assert not DocumentProblem.objects.exists()
    assert choose(document.pk, "", actor="paul") is False


def test_an_unknown_type_and_a_document_that_is_gone_change_nothing(document):
    with pytest.raises(UnknownType, match=r"Unknown type 'bill'\. Known types: invoice, .*, other\."):
        choose(document.pk, "bill", actor="olga")
    assert choose(10**9, "letter", actor="olga") is None
    write(document, status="processed", file="", text="", purged_at=document.created_at)
    assert choose(document.pk, "letter", actor="olga") is None
    assert [event.kind for event in events_of(document)] == ["DOCUMENT_ADDED"]


def test_the_documents_of_a_changed_type_are_judged_again_in_batches(workspace, monkeypatch):
    monkeypatch.setattr(retyping, "BATCH", 2)
    documents = [DocumentFactory(workspace=workspace, type="move") for _ in range(5)]
    other = DocumentFactory(workspace=workspace, type="letter")
    for document in (*documents, other, DocumentFactory(type="move")):
        fields.keep(document.pk, [{"name": "grund", "value": "Umzug", "confidence": 0.5}], types.UNKNOWN)
    DocumentTypeFieldFactory(type=DocumentTypeFactory(workspace=workspace, name="move"), name="grund")

    retyping.begin(workspace.pk, "move")
    reviewed = []
    while Retyping.objects.exists():
        retyping.advance()
        reviewed.append(set(DocumentField.objects.filter(to_review=True).values_list("document_id", flat=True)))

    ids = [document.pk for document in documents]
    assert reviewed == [set(ids[3:]), set(ids[1:]), set(ids)]
    retyping.advance()


def test_a_type_that_changes_meanwhile_is_begun_again(workspace, monkeypatch):
    monkeypatch.setattr(retyping, "BATCH", 1)
    for _ in range(2):
        DocumentFactory(workspace=workspace, type="move")
    retyping.begin(workspace.pk, "move")
    retyping.advance()

    retyping.begin(workspace.pk, "move")

    assert Retyping.objects.get().below > Document.objects.latest("pk").pk


def test_similarity_is_the_cosine():
    assert type_recognition._similarity([1, 0], [2, 0]) == 1
    assert type_recognition._similarity([1, 0], [0, 3]) == 0
    assert type_recognition._similarity([0, 0], [1, 1]) == 0
