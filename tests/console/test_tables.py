import pytest

from documents import cell_corrections, previews
from documents.cell_corrections import Place
from documents.models import CellCorrection
from tests.factories import DocumentFactory, WorkspaceFactory, force_status, table_of, told, write
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

HOSTILE = "<script>alert(1)</script>{{7*7}}"
CELL = {"text": "1,50 €", "value": "1.50 EUR", "page": 2, "box": [0.1, 0.2, 0.3, 0.4]}
COLUMNS = [
    {"name": "article", "label": "Article", "kind": "text"},
    {"name": "price", "label": "Price", "kind": "amount"},
]


@pytest.fixture
def document(workspace):
    return force_status(DocumentFactory(workspace=workspace), "processed", pages=2)


@pytest.fixture
def table(document):
    rows = [["Apples", CELL], *([f"a{n}", str(n)] for n in range(2, 121))]
    return table_of(document, [], *rows, columns=COLUMNS, page=2, box=[0, 0, 1, 0.5], rows_left_out=7)


@pytest.fixture
def path(table):
    return f"/documents/{table.document_id}/tables/table_1/"


def cell(text, row=1, column="price", table="table_1"):
    return {"table": table, "row": row, "column": column, "text": text}


def numbers_in(page):
    return [number for number, _ in page.context["rows"]]


def test_the_document_lists_its_tables(seen_by, ravi, table, path):
    page = seen_by(ravi, f"/documents/{table.document_id}/")

    assert page.content.decode().count(f'href="{path}"') == 1
    assert "Article, Price" in page.content.decode()


def test_a_document_with_very_many_tables_lists_the_first(seen_by, ravi, table, monkeypatch):
    monkeypatch.setattr("console.pages.documents.MOST_TABLES", 0)

    page = seen_by(ravi, f"/documents/{table.document_id}/")

    assert (page.context["tables"], page.context["more_tables"]) == ([], True)


def test_rows_are_shown_in_groups(seen_by, ravi, path):
    first, second, last, beyond = (
        seen_by(ravi, f"{path}{query}") for query in ("", "?first=51", "?first=120", "?first=999")
    )

    assert (numbers_in(first), numbers_in(second)) == (list(range(1, 51)), list(range(51, 101)))
    assert numbers_in(last) == numbers_in(beyond) == list(range(101, 121))
    assert [page.context["after"] for page in (first, second, last)] == [51, 101, 0]
    assert [page.context["before"] for page in (first, second, last)] == [0, 1, 51]
    assert "120 rows; 7 more rows" in first.content.decode()


def test_an_operator_chooses_a_cell_and_corrects_it(seen_by, pressed_by, olga, table, path):
    page = seen_by(olga, f"{path}?row=77&column=price")
    assert numbers_in(page)[0] == 51
    assert page.content.decode().count('name="text"') == 1

    page = pressed_by(olga, f"/documents/{table.document_id}/cells/correct/", **cell("7,70 €", row=77))

    assert page.said == ["Corrected price in row 77 of table_1 from “77” to “7,70 €”."]
    shown = seen_by(olga, f"{path}?first=51").content.decode()
    assert "read as “77”" in shown
    assert 'title="7.70 EUR"' in shown


def test_a_correction_is_withdrawn(pressed_by, olga, table):
    path = f"/documents/{table.document_id}/cells/withdraw/"
    cell_corrections.correct(table.document_id, Place("table_1", 1, "price"), "2 €", actor="olga")

    said = [pressed_by(olga, path, **cell("")).said for _ in range(2)]

    assert said == [
        ["Withdrew the correction of price in row 1 of table_1."],
        ["There is no correction of price in row 1 of table_1 to withdraw."],
    ]


@pytest.mark.parametrize(
    "sent", [cell("x", table="table_9"), cell("x", row=121), cell("x", row="many"), cell("x", column="colour")]
)
def test_a_cell_that_is_not_there_is_said_to_be_missing(pressed_by, olga, table, sent):
    page = pressed_by(olga, f"/documents/{table.document_id}/cells/correct/", **sent)

    assert page.said[0].startswith("The correction was not saved: there is no cell ")
    assert not CellCorrection.objects.exists()


def test_a_text_that_is_too_long_is_refused_with_the_reason(pressed_by, olga, table):
    page = pressed_by(olga, f"/documents/{table.document_id}/cells/correct/", **cell("x" * 2001))

    assert "at most 2,000 characters" in page.said[0]
    assert told(table.document) == ["DOCUMENT_ADDED"]


def test_who_may_only_look_gets_no_links_and_no_form(seen_by, ravi, path):
    page = seen_by(ravi, f"{path}?row=1&column=price").content.decode()

    assert 'name="text"' not in page
    assert "column=article" not in page


def test_nothing_of_a_table_is_executed(seen_by, olga, document):
    columns = [{"name": "article", "label": HOSTILE, "kind": "text"}]
    table_of(document, [], [{"text": HOSTILE, "value": HOSTILE}], columns=columns)
    cell_corrections.correct(document.pk, Place("table_1", 1, "article"), f"{HOSTILE}2", actor="olga")

    for query in ("", "?row=1&column=article"):
        page = seen_by(olga, f"/documents/{document.pk}/tables/table_1/{query}").content.decode()
        assert "<script>alert" not in page
        assert "{{7*7}}" in page


def test_a_cell_that_was_read_anew_says_so(seen_by, olga, document, table, path):
    cell_corrections.correct(document.pk, Place("table_1", 1, "article"), "Pears", actor="olga")
    CellCorrection.objects.update(machine_text="Appels")

    assert "when corrected: “Appels”" in seen_by(olga, path).content.decode()


def test_the_chosen_cell_is_marked_on_the_picture_of_its_page(seen_by, olga, document, path, monkeypatch):
    write(document, content_type="application/pdf", file="documents/2026/01/" + "0" * 32)
    monkeypatch.setattr(previews, "failure_reason", lambda document, number: "")

    page = seen_by(olga, f"{path}?row=1&column=price")

    assert page.context["picture"] == f"/documents/{document.pk}/pages/2.png"
    assert [(mark.number, mark.tone) for mark in page.context["marks"]] == [(1, "busy"), (2, "warn")]


def test_a_table_is_downloaded_in_each_form(seen_by, ravi, table):
    files = {
        form: seen_by(ravi, f"/documents/{table.document_id}/tables/table_1.{form}") for form in ("csv", "json", "xlsx")
    }

    assert files["csv"].content.decode("utf-8-sig").splitlines()[1] == "Apples,1.50 EUR"
    assert files["xlsx"].content.startswith(b"PK")
    assert files["json"]["Content-Disposition"] == f'attachment; filename="document-{table.document_id}-table_1.json"'
    assert seen_by(ravi, f"{path}.pdf").status_code == 404


def test_tables_that_are_not_there_are_not_found(seen_by, ravi, document, table):
    other = table_of(DocumentFactory(workspace=WorkspaceFactory()))

    for path in (
        f"{document.pk}/tables/table_2/",
        f"{other.document_id}/tables/table_1/",
        f"{document.pk}/tables/x.csv",
    ):
        assert seen_by(ravi, f"/documents/{path}").status_code == 404


def test_what_is_purged_is_not_corrected(pressed_by, olga, document, table):
    write(document, purged_at=clock.now(), file="")

    page = pressed_by(olga, f"/documents/{document.pk}/cells/correct/", **cell("x"))

    assert "has been purged" in page.said[0]


def test_a_table_costs_few_queries(asks_at_most, olga, document, path):
    for row in range(1, 40):
        cell_corrections.correct(document.pk, Place("table_1", row, "price"), "1", actor="olga")

    asks_at_most(15, olga, f"{path}?row=2&column=price")
    asks_at_most(15, olga, f"/documents/{document.pk}/")
