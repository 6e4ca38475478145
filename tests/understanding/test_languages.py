import pytest

from ade_understanding.recognition.labels import at_start
from ade_understanding.recognition.languages import KINDS, LANGUAGES, MONTHS

pytestmark = pytest.mark.once


def test_every_language_has_the_same_parts():
    first, *others = LANGUAGES

    assert len(LANGUAGES) >= 8
    for other in others:
        assert set(other) == set(first), other["language"]
        for part in ("things", "sections", "columns", "titles", "signs", "words"):
            assert set(other[part]) == set(first[part]), (other["language"], part)


def test_every_label_belongs_to_a_field():
    assert all(name in KINDS for language in LANGUAGES for part in ("labels", "weak") for name in language[part])


def test_every_language_names_twelve_months():
    assert [len(language["months"].split(",")) for language in LANGUAGES] == [12] * len(LANGUAGES)
    assert (MONTHS["marz"], MONTHS["fevrier"], MONTHS["pazdziernika"]) == (3, 2, 10)


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("Rechnungs-Nr.: 17", "invoice_number", "17"),
        ("N° de facture : 17", "invoice_number", "17"),
        ("NUMERO DE FACTURE 17", "invoice_number", "17"),
        ("Numer faktury: 17", "invoice_number", "17"),
        ("Date d’échéance 1.2.2026", "due_date", "1.2.2026"),
        ("zzgl. 19 % MwSt. 241,30 €", "tax_total", "241,30 €"),
        ("Rechnungssumme Netto (excl. USt.) 5,00", "net_total", "5,00"),
        ("P.IVA 01234567890", "vat_id", "01234567890"),
        ("Liefer- und Leistungsdatum: 1.2.2026", "delivery_date", "1.2.2026"),
    ],
)
def test_a_label_is_known_however_it_is_written(text, name, rest):
    label = at_start(text)

    assert name in label.names()
    assert text[label.end :].strip() == rest


@pytest.mark.parametrize("text", ["INV58655", "recall was a film", "12 rue de la Paix", ""])
def test_other_texts_are_no_labels(text):
    assert at_start(text) is None
