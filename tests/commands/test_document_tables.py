import json

import pytest

from documents import cell_corrections
from documents.cell_corrections import Place
from tests.factories import table_of

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def table(document):
    return table_of(document, ["Article", "Price"], *([f"a{n}", str(n)] for n in range(1, 61)), rows_left_out=3)


def test_tables_are_listed(manage, table):
    ended = manage("document", "tables", table.document_id, "--json")

    assert (ended.code, ended.json["id"]) == (0, table.document_id)
    (row,) = ended.json["tables"]
    assert (row["name"], row["rows"], row["rows_left_out"], len(row["columns"])) == ("table_1", 60, 3, 2)
    assert "table_1" in manage("document", "tables", table.document_id).out


def test_rows_are_shown_with_corrections(manage, table):
    cell_corrections.correct(table.document_id, Place("table_1", 3, "price"), "3.50", actor="olga")

    ended = manage("document", "tables", table.document_id, "table_1", "--first", "3", "--rows", "2", "--json")

    assert ended.json["shown"] == [
        {"row": 3, "article": "a3", "price": "3.50"},
        {"row": 4, "article": "a4", "price": "4"},
    ]
    shown = manage("document", "tables", table.document_id, "table_1").out
    assert (shown.splitlines()[0].split(), len(shown.splitlines())) == (["ROW", "ARTICLE", "PRICE"], 51)


@pytest.mark.parametrize(("form", "start"), [("csv", b"\xef\xbb\xbfArticle"), ("xlsx", b"PK"), ("json", b"{")])
def test_a_table_is_written_to_a_file_that_is_not_there_yet(manage, table, tmp_path, form, start):
    path = tmp_path / f"goods.{form}"

    ended = manage("document", "tables", table.document_id, "table_1", "--export", path, "--json")
    again = manage("document", "tables", table.document_id, "table_1", "--export", path, "--json")

    assert (ended.code, ended.json["size_bytes"]) == (0, path.stat().st_size)
    assert path.read_bytes().startswith(start)
    assert (again.code, again.error["code"]) == (1, "not_written")


def test_the_json_file_has_all_rows(manage, table, tmp_path):
    manage("document", "tables", table.document_id, "table_1", "--export", tmp_path / "goods.json")

    assert len(json.loads((tmp_path / "goods.json").read_text())["rows"]) == 60


def test_what_cannot_be_shown(manage, table, tmp_path):
    id = table.document_id

    assert manage("document", "tables", 999_999).code == 6
    assert manage("document", "tables", id, "table_9").code == 6
    assert manage("document", "tables", id, "--export", tmp_path / "x.csv").code == 2
    assert manage("document", "tables", id, "table_1", "--export", tmp_path / "x.pdf").code == 2
    assert manage("document", "tables", id, "table_1", "--rows", "0").code == 2
