"""Who sent a document: found by what names the sender, and created if it is new."""

import json
from io import BytesIO

import pytest

from documents import publication, senders
from documents.models import Document, FieldCorrection, Sender, SenderIdentity
from documents.senders import Identity, identities_of
from tests.factories import (
    DocumentFactory,
    FieldCorrectionFactory,
    SenderIdentityFactory,
    SenderLessonFactory,
    write,
)
from tests.understanding.printed import page
from work import clock

VAT_ID, OTHER_VAT_ID, IBAN = "DE136695976", "DE123456789", "DE89370400440532013000"


def field(name, value, confidence=0.9):
    return {"name": name, "value": value, "confidence": confidence}


def test_the_surest_value_of_each_kind_names_the_sender():
    found = identities_of(
        [
            field("seller", " Muster-Werk\nGmbH & Co. "),
            field("email", "office@Muster-Werk.example"),
            field("iban", "DE12 1234", 0.5),
            field("vat_id", "de 136695976", 0.7),
            field("vat_id", "DE123456789", 0.9),
            field("tax_number", "201/113/40209", None),
            field("buyer_vat_id", "DE999999999"),
        ]
    )

    assert found == [
        Identity("vat_id", "DE123456789"),
        Identity("tax_number", "20111340209"),
        Identity("domain", "muster-werk.example"),
        Identity("name", "muster werk gmbh co"),
    ]


@pytest.mark.parametrize(
    "nobody",
    [field("email", "anna@gmail.com"), field("email", "anna"), field("tax_number", "12/3"), field("seller", "AB")],
    ids=lambda each: each["value"],
)
def test_what_many_have_names_nobody(nobody):
    assert identities_of([nobody]) == []


@pytest.mark.django_db
def test_a_sender_is_created_once_and_gathers_identities(workspace, django_assert_num_queries):
    first = senders.identify(workspace.pk, [field("vat_id", VAT_ID), field("seller", "Muster GmbH")])
    second = senders.identify(workspace.pk, [field("vat_id", VAT_ID), field("iban", IBAN)])
    with django_assert_num_queries(1):
        third = senders.identify(workspace.pk, [field("iban", IBAN)])

    assert first == second == third
    assert Sender.objects.get().name == "Muster GmbH"
    assert set(SenderIdentity.objects.values_list("kind", "value")) == {
        ("vat_id", VAT_ID),
        ("name", "muster gmbh"),
        ("iban", IBAN),
    }
    assert senders.identify(workspace.pk, [field("date", "2026-01-01")]) is None


@pytest.mark.django_db
def test_an_account_that_two_companies_share_keeps_them_apart(workspace):
    one = senders.identify(workspace.pk, [field("vat_id", VAT_ID), field("iban", IBAN)])
    other = senders.identify(workspace.pk, [field("vat_id", OTHER_VAT_ID), field("iban", IBAN)])

    assert one != other
    assert senders.identify(workspace.pk, [field("vat_id", OTHER_VAT_ID), field("iban", IBAN)]) == other
    assert SenderIdentity.objects.get(kind="iban").sender_id == one


@pytest.mark.django_db
def test_senders_never_cross_workspaces(workspace):
    elsewhere = SenderIdentityFactory(kind="vat_id", value=VAT_ID)

    assert senders.identify(workspace.pk, [field("vat_id", VAT_ID)]) != elsewhere.sender_id


@pytest.mark.django_db
def test_who_loses_the_race_to_create_a_sender_takes_the_one_that_is_there(workspace, monkeypatch):
    winner = SenderIdentityFactory(sender__workspace=workspace, kind="vat_id", value=VAT_ID).sender_id
    look, seen = senders._owners, []

    def look_too_early(*arguments):
        seen.append(arguments)
        return {} if len(seen) == 1 else look(*arguments)

    monkeypatch.setattr(senders, "_owners", look_too_early)

    assert senders.identify(workspace.pk, [field("vat_id", VAT_ID)]) == winner
    assert Sender.objects.count() == 1


def printed(*texts):
    return [page(*((0.1 + 0.05 * n, (text, 0.1)) for n, text in enumerate(texts)))]


@pytest.mark.django_db
def test_a_sender_that_is_known_is_recognised_by_what_is_printed(workspace):
    known = senders.identify(workspace.pk, [field("vat_id", VAT_ID), field("seller", "Muster-Werk GmbH & Co.")])
    other = senders.identify(workspace.pk, [field("vat_id", OTHER_VAT_ID)])

    def found(*texts, fields=()):
        return senders.identify(workspace.pk, list(fields), pages=printed(*texts))

    assert found("Muster-Werk GmbH", "& Co.", "Dear Sir") == known
    assert found("USt-IdNr. DE 136 695 976") == known
    assert found("USt-IdNr. DE 123 456 789", "Muster-Werk GmbH & Co.") == other
    assert found("DE136695976", "DE123456789") is None
    assert found("DE136695976", "DE123456789", fields=[field("buyer_vat_id", VAT_ID)]) == other
    assert found("Dear Sir") is None
    # A further identity is added to the sender that is printed.
    assert found("DE136695976", fields=[field("iban", IBAN)]) == known
    assert SenderIdentity.objects.get(value=IBAN).sender_id == known


@pytest.mark.django_db
def test_two_senders_that_turn_out_to_be_one_are_merged_unless_something_was_taught(workspace):
    one = senders.identify(workspace.pk, [field("vat_id", VAT_ID)])
    mail = senders.identify(workspace.pk, [field("email", "a@muster.example")])
    document = write(DocumentFactory(workspace=workspace), sender_id=mail)

    both = senders.identify(workspace.pk, [field("vat_id", VAT_ID), field("email", "b@muster.example")])

    assert both == one
    document.refresh_from_db()
    assert document.sender_id == one
    assert list(Sender.objects.all()) == [Sender.objects.get(pk=one)]
    assert senders.identify(workspace.pk, [field("email", "c@muster.example")]) == one

    taught = senders.identify(workspace.pk, [field("seller", "Taught Ltd")])
    SenderLessonFactory(sender_id=taught)
    assert senders.identify(workspace.pk, [field("vat_id", VAT_ID), field("seller", "Taught Ltd")]) == one
    assert Sender.objects.filter(pk=taught).exists()


def published(*fields):
    head = {"chunks": 0, "fields": list(fields), "mean": "", "model": "m", "pages": 1, "problems": [], "text": "A"}
    return BytesIO(json.dumps(head | {"type": None}).encode() + b"\n")


@pytest.mark.django_db
def test_publication_sets_the_sender_and_keeps_it_if_nothing_names_one(document):
    publication.publish(document.pk, published(field("vat_id", VAT_ID)))
    sender = Document.objects.get().sender
    publication.publish(document.pk, published())

    assert sender.name == VAT_ID
    assert Document.objects.get().sender == sender
    other = DocumentFactory()
    publication.publish(other.pk, published(field("vat_id", VAT_ID)))
    assert Document.objects.get(pk=other.pk).sender not in (None, sender)


@pytest.mark.django_db
def test_corrections_teach_again_when_the_document_turns_out_to_be_of_another_sender(document):
    before = SenderIdentityFactory(sender__workspace=document.workspace, kind="vat_id", value=OTHER_VAT_ID).sender
    write(document, sender=before)
    FieldCorrectionFactory(document=document, learned_at=clock.now())

    publication.publish(document.pk, published(field("vat_id", VAT_ID)))

    assert FieldCorrection.objects.get().learned_at is None
