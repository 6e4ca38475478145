"""What ADE has understood of a document, as the worker writes it and the steps of a run read it."""

import json

import pytest

from ade_engine import Document as SeenDocument
from documents import tables, words
from runs import scratch, understanding
from runs.understanding import Parts
from tests.factories import (
    CellCorrectionFactory,
    DocumentFactory,
    DocumentFieldFactory,
    FieldCorrectionFactory,
    write,
)

pytestmark = pytest.mark.django_db

DATA = {"name": "a", "content_type": "text/plain", "size_bytes": 1, "sha256": "0"}
COLUMNS = [
    {"name": "article", "label": "Artikel", "kind": "text"},
    {"name": "amount", "label": "Betrag", "kind": "amount"},
]


def line_items(*rows, **more):
    return {"name": "line_items", "page": 1, "box": [0, 0, 1, 1], "columns": COLUMNS, "rows": list(rows)} | more


def row(article, amount, value=None):
    return [{"text": article}, {"text": amount, "value": value, "page": 2, "box": [0, 0.5, 1, 0.6]}]


@pytest.fixture
def document(workspace):
    return DocumentFactory(workspace=workspace, status="processed", file="", type="invoice", type_confidence=0.9)


@pytest.fixture
def seen(tmp_path, document):
    """Return a function that lays out the document and returns what a step sees of it."""

    def seen():
        understood = understanding.write(tmp_path, document.pk, Parts(fields=True, tables=True))
        scratch.lay_out(tmp_path, document, 7, understood)
        return SeenDocument(tmp_path, json.loads((tmp_path / "input.json").read_bytes())["document"])

    return seen


def test_a_step_sees_the_fields_of_its_document(seen, document):
    box = [0.1, 0.2, 0.3, 0.4]
    values = {"confidence": 0.95, "page": 1, "box": box, "reason": "Right of the label ‘Nr.’."}
    DocumentFieldFactory(document=document, name="invoice_number", value="A-1", kind="number", **values)

    found = seen()

    (number,) = found.fields.values()
    assert (number.name, number.value, number.kind, number.confidence) == ("invoice_number", "A-1", "number", 0.95)
    assert (number.page, number.box, number.source, number.reason) == (1, box, "page", "Right of the label ‘Nr.’.")
    assert found.fields is found.fields
    assert (found.type.name, found.type.confidence) == ("invoice", 0.9)


def test_of_several_sources_the_chosen_value_is_seen(seen, document):
    DocumentFieldFactory(document=document, name="date", value="2026-11-18", source="e-invoice")
    DocumentFieldFactory(document=document, name="date", value="2026-11-19", source="page", chosen=False)

    assert seen().fields["date"].value == "2026-11-18"


def test_a_correction_applies_to_steps_too(seen, document):
    DocumentFieldFactory(document=document, name="date", value="2026-11-18", confidence=0.5, page=3)
    FieldCorrectionFactory(document=document, name="date", value="2026-11-19", corrected_by="olga")
    FieldCorrectionFactory(document=document, name="order", value="4711", corrected_by="ravi")

    fields = seen().fields

    date = fields["date"]
    assert (date.value, date.source, date.confidence, date.page) == ("2026-11-19", "person", 1.0, 3)
    assert date.reason == "Corrected by olga."
    assert (fields["order"].value, fields["order"].source, fields["order"].kind) == ("4711", "person", "text")


def test_a_step_sees_the_tables_of_its_document(seen, document):
    items = line_items(row("Äpfel", "1,50 €", "1.50 EUR"), row("Birnen", "2"), [], rows_left_out=3)
    tables.keep(document.pk, tables.lines([items, line_items(name="table_1")]))
    correction = {"table": "line_items", "row": 2, "column": "amount", "text": "2,00 €", "machine_text": "2"}
    CellCorrectionFactory(document=document, **correction)

    found = seen().tables

    assert list(found) == ["line_items", "table_1"]
    items = found["line_items"]
    assert [(column.name, column.label, column.kind) for column in items.columns][1] == ("amount", "Betrag", "amount")
    assert [[cell.text for cell in row.values()] for row in items.rows] == [
        ["Äpfel", "1,50 €"],
        ["Birnen", "2,00 €"],
        ["", ""],
    ]
    amount = items.rows[0]["amount"]
    assert (amount.value, amount.page, amount.box) == ("1.50 EUR", 2, [0, 0.5, 1, 0.6])
    assert items.rows[1]["amount"].value == "2.00 EUR"
    assert (items.page, items.box, items.rows_left_out) == (1, [0, 0, 1, 1], 3)
    assert found["table_1"].rows == []


def test_a_step_sees_the_words_of_its_document(settings, tmp_path, document):
    settings.MEDIA_ROOT = tmp_path / "media"
    words.store(7, [{"number": 2, "words": [["Äpfel", 0.1, 0.2, 0.3, 0.4], ["7", 0.5, 0.2, 0.6, 0.4]]}])

    names = understanding.write(tmp_path, document.pk, understanding.Parts(False, False, 7))

    assert set(names) == {"words"}
    found = SeenDocument(tmp_path, DATA | names).words
    assert [(word.text, word.box) for word in found[2]] == [
        ("Äpfel", [0.1, 0.2, 0.3, 0.4]),
        ("7", [0.5, 0.2, 0.6, 0.4]),
    ]
    assert list(found) == [2]


def test_words_that_are_gone_are_none(tmp_path, document):
    assert understanding.write(tmp_path, document.pk, understanding.Parts(False, False, 999)) == {}


def test_rows_beyond_the_limit_are_left_out(seen, document, monkeypatch):
    tables.keep(document.pk, tables.lines([line_items(*(row(f"{n}", "1") for n in range(20)), rows_left_out=1)]))
    monkeypatch.setattr(understanding, "MOST_CHARACTERS", 500)

    items = seen().tables["line_items"]

    assert 0 < len(items.rows) < 20
    assert items.rows_left_out == 21 - len(items.rows)


def test_a_document_of_which_nothing_is_known_has_nothing(seen, document):
    write(document, type="", type_confidence=None)

    found = seen()

    assert (found.fields, found.tables, found.type) == ({}, {}, None)


def test_without_files_there_is_nothing(tmp_path):
    found = SeenDocument(tmp_path, DATA)

    assert (found.fields, found.tables, found.words, found.type) == ({}, {}, {}, None)


def test_a_check_sees_the_surest_values_that_the_reader_has_found(tmp_path):
    digest = {
        "fields": [
            {"name": "date", "value": "2026-11-18", "kind": "date", "confidence": 0.9, "page": 1, "box": None},
            {"name": "date", "value": "2026-11-19", "kind": "date", "confidence": 0.4, "page": 1, "box": None},
        ],
        "tables": [line_items(row("Apples", "1"), [{"text": "Pears"}])],
        "words": [{"number": 1, "words": [["Apples", 0, 0, 1, 1]]}],
    }
    names = understanding.write_digest(tmp_path, digest)
    found = SeenDocument(tmp_path, DATA | names)

    assert found.words[1][0].text == "Apples"
    assert found.fields["date"].value == "2026-11-18"
    rows = found.tables["line_items"].rows
    assert [[cell.text for cell in row.values()] for row in rows] == [["Apples", "1"], ["Pears", ""]]
