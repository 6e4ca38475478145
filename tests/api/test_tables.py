import io

import pytest
from openpyxl import load_workbook

from documents.models import CellCorrection
from tests.factories import CellCorrectionFactory, DocumentFactory, force_status, table_of, told, write
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def document(workspace):
    document = DocumentFactory(workspace=workspace)
    force_status(document, "processed")
    return document


@pytest.fixture
def table(document):
    price = {"text": "1,50 €", "value": "1.50 EUR", "page": 2, "box": [0, 0.25, 1, 0.5]}
    columns = [
        {"name": "article", "label": "Article", "kind": "text"},
        {"name": "price", "label": "Price", "kind": "amount"},
    ]
    rows = [["Apples", price], *([f"a{n}", str(n)] for n in range(2, 6))]
    return table_of(document, [], *rows, columns=columns, page=2, rows_left_out=7)


@pytest.fixture
def path(table):
    return f"/api/v1/documents/{table.document_id}/tables/table_1"


@pytest.fixture
def put(operator, path):
    def put(text, at="1/price", client=operator, more=None):
        return client.put(f"{path}/rows/{at}", {"text": text} | (more or {}), content_type="application/json")

    return put


def test_the_tables_of_a_document_are_listed(viewer, document, path):
    found = viewer.get(f"/api/v1/documents/{document.pk}/tables").json()

    assert (found["document_id"], [row["name"] for row in found["items"]]) == (document.pk, ["table_1"])
    assert viewer.get(path).json() == found["items"][0]
    assert found["items"][0]["columns"][1] == {"name": "price", "label": "Price", "kind": "amount"}
    assert [found["items"][0][name] for name in ("page", "row_count", "rows_left_out")] == [2, 5, 7]


def test_rows_come_in_their_order_with_what_people_say(viewer, document, path):
    CellCorrectionFactory(document=document, row=1, column="price", text="1,75 €", machine_text="1,50 €")

    first = viewer.get(f"{path}/rows", {"limit": 2}).json()
    rest = viewer.get(f"{path}/rows", {"cursor": first["next"], "limit": 3}).json()

    cell = first["items"][0]["cells"][1]
    assert (cell["text"], cell["value"], cell["machine_text"]) == ("1,75 €", "1.75 EUR", "1,50 €")
    assert (cell["page"], cell["box"], cell["correction"]["by"]) == (2, [0, 0.25, 1, 0.5], "olga")
    assert [row["number"] for row in (*first["items"], *rest["items"])] == [1, 2, 3, 4, 5]
    assert (first["next"], rest["next"]) == ("2", None)
    assert viewer.get(f"{path}/rows", {"cursor": 5}).json() == {"items": [], "next": None}


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 201}, {"cursor": -1}, {"cursor": "x"}, {"after": 1}])
def test_an_impossible_window_is_refused(viewer, path, query):
    assert viewer.get(f"{path}/rows", query).status_code == 400


def test_a_table_is_exported_in_three_forms(viewer, path):
    answers = {form: viewer.get(f"{path}/export", {"format": form}) for form in ("csv", "xlsx", "json")}

    assert answers["csv"].content.decode("utf-8-sig").splitlines()[:2] == ["Article,Price", "Apples,1.50 EUR"]
    assert load_workbook(io.BytesIO(answers["xlsx"].content)).active["B2"].value == 1.5
    assert answers["json"].json()["rows"][0][1]["value"] == "1.50 EUR"
    for form, answer in answers.items():
        assert answer["Content-Disposition"].endswith(f'-table_1.{form}"')
    assert viewer.get(f"{path}/export", {"format": "pdf"}).status_code == 400


def test_a_correction_holds_until_it_is_withdrawn(operator, put, document, path):
    corrected = put("2,00 €").json()
    withdrawn = operator.delete(f"{path}/rows/1/price").json()

    assert (corrected["text"], corrected["value"]) == ("2,00 €", "2.00 EUR")
    assert corrected["correction"]["by"] == "olga (token of olga)"
    assert (withdrawn["text"], withdrawn["correction"]) == ("1,50 €", None)
    assert operator.delete(f"{path}/rows/1/price").status_code == 404
    assert told(document)[-2:] == ["CELL_CORRECTED", "CELL_CORRECTION_WITHDRAWN"]


@pytest.mark.parametrize("at", ["1/colour", "6/price", "0/price", "99999999999999/price"])
def test_a_cell_that_is_not_there_is_not_found(put, at):
    assert put("x", at).status_code == 404
    assert not CellCorrection.objects.exists()


@pytest.mark.parametrize("body", [{"text": "x" * 2001}, {"text": 43}, {"text": None}, {"more": 1}])
def test_what_is_no_text_is_refused(put, body):
    assert put("x", more=body).status_code == 400
    assert not CellCorrection.objects.exists()


def test_only_operators_correct_and_only_what_is_kept(put, viewer, client, ravi, document):
    client.force_login(ravi)
    refused = [put("x", client=who).status_code for who in (viewer, client)]
    write(document, purged_at=clock.now(), file="")

    assert refused == [403, 403]
    assert (put("x").status_code, put("x").json()["code"]) == (410, "gone")


def test_a_table_of_others_is_not_there(operator):
    other = table_of(DocumentFactory())
    path = f"/api/v1/documents/{other.document_id}/tables"

    for below in ("", "/table_1", "/table_1/rows", "/table_1/export"):
        assert operator.get(f"{path}{below}").status_code == 404
    answer = operator.put(f"{path}/table_1/rows/1/article", {"text": "x"}, content_type="application/json")
    assert answer.status_code == 404
    assert operator.delete(f"{path}/table_1/rows/1/article").status_code == 404
