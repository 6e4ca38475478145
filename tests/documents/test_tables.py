import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from documents import cell_corrections, tables
from documents.cell_corrections import Place
from documents.models import DocumentTable, TableRows
from tests.factories import DocumentFactory, DocumentTableFactory, table_of

pytestmark = pytest.mark.django_db

PRICE = {"name": "price", "label": "Price", "kind": "amount"}
NAME = {"name": "article", "label": "Article", "kind": "text"}


def cell(text, value=None, **more):
    return {"text": text, "value": value, "page": 1, "box": [0, 0.25, 1, 0.5]} | more


def table(*rows, **more):
    return {"name": "table_1", "page": 1, "box": None, "columns": [NAME, PRICE], "rows": list(rows)} | more


def keep(document, *each):
    tables.keep(document.pk, tables.lines(each))


def texts(document, *window, name="table_1"):
    found = DocumentTable.objects.get(document=document, name=name)
    return [[cell.text for cell in row.cells] for row in tables.rows_of(found, *window)]


def test_what_was_read_is_kept_with_kinds_values_and_places(document):
    keep(document, table([cell("Apples"), cell("1,50 €", "1.50 EUR", page=2)], rows_left_out=7, box=[0, 0, 1, 1]))

    kept = DocumentTable.objects.get()
    assert (kept.name, kept.page, kept.box, kept.row_count) == ("table_1", 1, [0, 0, 1, 1], 1)
    assert (kept.rows_left_out, kept.columns_left_out) == (7, 0)
    (row,) = tables.rows_of(kept)
    apples, price = row.cells
    assert (row.number, apples.text, apples.value, apples.kind) == (1, "Apples", None, "text")
    assert (price.text, price.value, price.kind) == ("1,50 €", "1.50 EUR", "amount")
    assert (price.page, price.box, price.correction) == (2, [0, 0.25, 1, 0.5], None)


def test_a_short_row_and_an_empty_cell_have_empty_texts(document):
    keep(document, table([{"text": "Apples"}], [{"text": ""}, {"text": "2"}]))

    assert texts(document) == [["Apples", ""], ["", "2"]]


def test_a_part_of_a_long_table_is_read_alone(document):
    size = tables.BLOCK_CELLS // 2
    keep(document, table(*([cell(f"a{n}"), cell(str(n))] for n in range(1, 3 * size + 5))))
    assert TableRows.objects.count() == 4

    for first, most in ((1, 3), (size, 2), (size + 1, 1), (3 * size + 3, 9), (3 * size + 5, 9), (2, 2 * size)):
        found = texts(document, first, most)
        last = min(first + most - 1, 3 * size + 4)
        assert found == [[f"a{n}", str(n)] for n in range(first, last + 1)]

    with CaptureQueriesContext(
        connection,
    ) as queries:
        texts(document, size, 2)
    # The table, the corrections and the rows.
    assert len(queries) == 3


def test_processing_again_replaces_tables_and_leaves_corrections(document):
    keep(document, table([cell("Apples"), cell("1")], [cell("Pears"), cell("2")]), table(name="table_2"))
    cell_corrections.correct(document.pk, Place("table_1", 2, "article"), "Plums", actor="olga")

    keep(document, table([cell("Apples"), cell("1")], [cell("Peaxs"), cell("2")]))

    kept = DocumentTable.objects.get()
    _, row = tables.rows_of(kept)
    assert (row.cells[0].text, row.cells[0].machine_text) == ("Plums", "Peaxs")
    assert (row.cells[0].is_read_anew, row.cells[1].is_read_anew) == (True, False)
    assert TableRows.objects.count() == 1


def test_other_documents_keep_theirs(document):
    other = DocumentTableFactory()

    keep(document, table())

    assert DocumentTable.objects.filter(pk=other.pk).exists()


def test_a_corrected_cell_has_the_value_of_the_new_text(document):
    keep(document, table([cell("Apples"), cell("1,50 €", "1.50 EUR")]))
    place = Place("table_1", 1, "price")

    for text, value in (
        ("1.234,56 €", "1234.56 EUR"),
        ("2.5", "2.5"),
        ("free", None),
        ("1,50 €", "1.50 EUR"),
        ("", None),
    ):
        cell_corrections.correct(document.pk, place, text, actor="olga")
        assert cell_corrections.find(document.pk, place).value == value


def test_texts_are_cut_and_cleaned(document):
    keep(document, table([cell("a\0b\ud800" + "x" * 3000), cell("1")]))

    ((text, _),) = texts(document)
    assert (text[:3], len(text)) == ("abx", tables.LONGEST_TEXT)


@pytest.mark.parametrize(
    "broken",
    [
        table(columns=[NAME, NAME]),
        table(columns=[]),
        table(columns=[NAME | {"name": " "}]),
        table(columns=[NAME | {"kind": "colour"}]),
        table(columns=[{"name": f"c{n}", "label": "", "kind": "text"} for n in range(tables.MOST_COLUMNS + 1)]),
        table(name=""),
        table(name="a/b"),
        table(name="a" * 101),
        table(name=None),
        table(page=0),
        table(page=True),
        table(page="1"),
        table(box=[0, 0, 1]),
        table(box=[0, 0, 1, 2]),
        table(box=[0, 0, 1, float("nan")]),
        table(rows_left_out=-1),
        table([cell("x", page=0)]),
        table([cell("x", box="abcd")]),
    ],
)
def test_what_no_document_can_cause_is_an_error(document, broken):
    with pytest.raises(ValueError, match=r"must|too many"), transaction.atomic():
        keep(document, broken)

    assert not DocumentTable.objects.exists()


def test_too_many_cells_and_two_tables_of_a_name_are_an_error(document):
    with pytest.raises(ValueError, match="two tables are named"), transaction.atomic():
        keep(document, table(), table())
    with pytest.raises(ValueError, match="too many tables or cells"), transaction.atomic():
        keep(document, table(rows=[[]] * (tables.MOST_CELLS // 2 + 1)))


def test_corrected_tables_can_be_listed(document):
    corrected = table_of(document)
    table_of(DocumentFactory())
    cell_corrections.correct(document.pk, Place("table_1", 1, "article"), "Plums", actor="olga")

    assert list(DocumentTable.objects.corrected()) == [corrected]
