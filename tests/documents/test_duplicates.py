"""The same invoice in two files is noticed."""

import pytest
from django.db import transaction

from documents import corrections, fields, types
from documents.models import DocumentProblem
from documents.purging import EMPTY
from tests.factories import DocumentFactory, force_status, write
from work import clock

pytestmark = pytest.mark.django_db

VALUES = {"vat_id": "DE123456789", "invoice_number": "RE-17", "gross_total": "119.00 EUR", "seller": "Aster GmbH"}


def read(document, **values):
    rows = [{"name": name, "value": value, "confidence": 0.95} for name, value in (VALUES | values).items() if value]
    with transaction.atomic():
        fields.keep(document.pk, rows, types.BUILT_IN["invoice"])


def said(document):
    found = DocumentProblem.objects.filter(document=document, code="same_invoice").open()
    return list(found.values_list("message", flat=True))


@pytest.fixture
def first(workspace):
    document = DocumentFactory(workspace=workspace, name="first.pdf")
    read(document)
    return document


@pytest.fixture
def second(first):
    return DocumentFactory(workspace=first.workspace, name="second.pdf")


@pytest.mark.parametrize(
    ("values", "is_same"),
    [
        ({}, True),
        ({"invoice_number": "re 17", "gross_total": "119.0", "vat_id": "DE 123 456 789"}, True),
        ({"seller": "Another spelling"}, True),
        ({"invoice_number": "RE-18"}, False),
        ({"gross_total": "118.99 EUR"}, False),
        ({"vat_id": "DE987654321"}, False),
        ({"invoice_number": ""}, False),
    ],
)
def test_the_same_seller_number_and_total_are_the_same_invoice(first, second, values, is_same):
    read(second, **values)

    message = f"Document {first.pk} (first.pdf) has the same seller, invoice number and total."
    assert said(second) == ([message] if is_same else [])
    assert said(first) == []


def test_reading_the_first_again_says_nothing_about_the_second(first, second):
    read(second)
    read(first)

    assert said(first) == []


def test_other_workspaces_and_purged_documents_do_not_count(first, second):
    stranger = DocumentFactory()
    read(stranger)
    assert said(stranger) == []

    write(force_status(first, "processed"), purged_at=clock.now(), **EMPTY)
    read(second)
    assert said(second) == []


def test_a_correction_finds_the_same_invoice_and_its_withdrawal_forgets_it(first, second):
    read(second, invoice_number="RE-1T")
    assert said(second) == []

    corrections.correct(second.pk, "invoice_number", "RE-17", actor="olga")
    assert len(said(second)) == 1

    corrections.withdraw(second.pk, "invoice_number", actor="olga")
    assert said(second) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.only_on("postgresql")
def test_of_two_that_are_published_at_the_same_moment_the_second_is_noticed(threads, first, second):
    third = DocumentFactory(workspace=first.workspace)
    number = {"invoice_number": "RE-99"}

    publishing = threads.hold(lambda: read(second, **number))
    later = threads.start(lambda: read(third, **number))
    assert later.waits()
    publishing.commit()
    later.answer()

    assert len(said(third)) == 1
