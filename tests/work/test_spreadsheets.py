import csv
import io

import pytest

from work.operations import spreadsheets


@pytest.mark.parametrize("first", "=+-@\t\r\n＝＋－＠")
def test_what_a_spreadsheet_would_compute_is_text(first):
    assert spreadsheets.cell(f"{first}1+1") == f"'{first}1+1"


@pytest.mark.parametrize("text", ["", "a=b", "1", "'=1", "ä", "<b>"])
def test_other_texts_are_as_they_are(text):
    assert spreadsheets.cell(text) == text


def test_a_nul_before_a_formula_hides_nothing():
    assert spreadsheets.cell("\0=1") == "'=1"


def test_everything_is_quoted_and_can_be_read_again():
    rows = [['a"b', "c,d", "e\nf"], [1, None, "=1"]]

    answer = spreadsheets.table("rows", ["one", "two", "three"], rows)

    text = answer.content.decode()
    assert text.startswith('"one","two","three"\r\n"a""b","c,d","e\nf"\r\n"1"')
    assert list(csv.reader(io.StringIO(text))) == [["one", "two", "three"], rows[0], ["1", "None", "'=1"]]
    assert answer["Content-Disposition"] == 'attachment; filename="rows.csv"'
