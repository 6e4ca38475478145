import pytest

from tests import effort
from tests.extractor.extracting import CSV, extract, written

pytestmark = [pytest.mark.once, pytest.mark.long]


def rows_of(tmp_path, content):
    (page,) = extract(written(tmp_path / "a.csv", content), CSV).pages
    return page["tables"][0]["rows"]


ROWS = [["name", "amount"], ["Müller, Hans", "1,5"], ['say "hi"', "2"], ["two\nlines", "3"]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_values_whatever_stands_between_them(tmp_path, delimiter, end):
    quoted = [['"' + value.replace('"', '""') + '"' for value in row] for row in ROWS]

    assert rows_of(tmp_path, end.join(delimiter.join(row) for row in quoted)) == ROWS


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "utf-32"])
def test_values_in_whatever_encoding(tmp_path, encoding):
    text = "Straße;Größe;Ärger\nKöln;Übermut;süß\nDüsseldorf;Öl;Fuß\n" * 5

    rows = rows_of(tmp_path, text.encode(encoding))

    assert rows[:2] == [["Straße", "Größe", "Ärger"], ["Köln", "Übermut", "süß"]]


def test_commas_within_values_are_no_delimiter_when_semicolons_fit_better(tmp_path):
    assert rows_of(tmp_path, "a;1,5;x\nb;2,5;y\nc;3,5;z\n") == [["a", "1,5", "x"], ["b", "2,5", "y"], ["c", "3,5", "z"]]


def test_one_column_is_one_column(tmp_path):
    assert rows_of(tmp_path, "alpha\nbeta\n") == [["alpha"], ["beta"]]


def test_the_text_is_one_page_with_tabs(tmp_path):
    (page,) = extract(written(tmp_path / "a.csv", "a,b\n\nc,d\n"), CSV).pages

    assert page["text"] == "a\tb\nc\td"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"a" * 5_000_000, id="a line without end"),
        pytest.param(b'"' + b"a,b\n" * 1_000_000, id="a quotation without end"),
        pytest.param(b"," * 2_000_000, id="a million values in a line"),
        pytest.param(b"a,b\n" * 700_000, id="a million values"),
        pytest.param(b"a,b\n" * (17 << 20), id="a file of 68 MB"),
    ],
)
def test_too_much(tmp_path, content):
    outcome = extract(written(tmp_path / "a.csv", content), CSV)

    assert outcome.code == "too_large"
    assert effort.usual(outcome.ended.cpu_seconds) < 10


@pytest.mark.parametrize("content", [bytes(range(256)) * 50, b"\x89PNG\r\n" + bytes(5000), b""])
def test_what_is_no_text(tmp_path, content):
    assert extract(written(tmp_path / "a.csv", content), CSV).code == "malformed"


def test_nul_and_halves_of_characters_are_left_out(tmp_path):
    assert rows_of(tmp_path, b"name,value\nlong enough to be text\0,\xed\xa0\x80x\n")[1][0] == "long enough to be text"
