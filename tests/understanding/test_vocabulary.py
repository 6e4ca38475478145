import pytest

from ade_understanding.vocabulary import FIELDS, OF_E_INVOICES, label_of

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("invoice_number", "Invoice number"),
        ("iban", "IBAN"),
        ("buyer_vat_id", "Buyer VAT id"),
        ("debited_iban", "Debited IBAN"),
        ("tax_base_19", "Tax base 19 %"),
        ("tax_amount_7_7", "Tax amount 7.7 %"),
        # Chosen by people, or printed on the page.
        ("cost_centre", "cost_centre"),
        ("Ihr Zeichen", "Ihr Zeichen"),
        ("ids", "ids"),
    ],
)
def test_people_read_the_names_of_fields_as_words(name, label):
    assert label_of(name) == label


def test_no_two_fields_have_the_same_label():
    labels = [label_of(name) for name in {**FIELDS, **OF_E_INVOICES}]

    assert len(set(labels)) == len(labels)
    assert not any("_" in label for label in labels)
