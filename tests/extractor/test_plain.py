import pytest

from tests import effort
from tests.extractor.extracting import TXT, extract, written

pytestmark = [pytest.mark.once, pytest.mark.long]

CONTROL = "\x01\x02\x03\x04"


def texts_of(tmp_path, content):
    return [page["text"] for page in extract(written(tmp_path / "a.txt", content), TXT).pages]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("one\r\ntwo\rthree\n", "one\ntwo\nthree"),
        ("a\0b", "ab"),
        ("  indented\n\ttoo", "  indented\n\ttoo"),
        ("one\n\n\n \n\ntwo", "one\n\ntwo"),
        ("Cafe\u0301 Caf\u00e9", "Cafe\u0301 Caf\u00e9"),
        ("😀 beyond", "😀 beyond"),
        (" \n\t\n", ""),
    ],
)
def test_text_as_it_is_kept(tmp_path, content, text):
    assert texts_of(tmp_path, content) == [text]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "cp1251"]
)
def test_encodings(tmp_path, encoding):
    text = {
        "cp1251": "Уважаемый читатель, это письмо написано по-русски, и его надо прочитать.",
    }.get(encoding, "Sehr geehrte Damen und Herren, für die Grüße aus Köln danken wir schön.")

    assert texts_of(tmp_path, text.encode(encoding)) == [text]


def test_utf8_with_a_damaged_byte_is_still_utf8(tmp_path):
    text = "Größe und Übermut in Köln, süße Äpfel, schöne Öfen"

    assert texts_of(tmp_path, text.encode() + b" \xff. Ende")[0] == f"{text} \ufffd. Ende"


def test_utf8_that_ends_within_a_character(tmp_path):
    assert texts_of(tmp_path, "drei Euro: €".encode()[:-1]) == ["drei Euro: "]


def test_pages_end_with_paragraphs(tmp_path):
    paragraphs = [f"{n} " + "word " * 150 for n in range(30)]

    pages = texts_of(tmp_path, "\n\n".join(paragraphs))

    assert len(pages) == 10
    assert [page.count("\n\n") for page in pages] == [2] * 10
    assert max(map(len, pages)) <= 3000


@pytest.mark.parametrize("text", ["x" * 10_000, "word " * 2000, "A sentence. " * 900, "line\n" * 2000])
def test_a_paragraph_longer_than_a_page_loses_nothing(tmp_path, text):
    pages = texts_of(tmp_path, text)

    assert max(map(len, pages)) <= 3000
    assert "".join("".join(pages).split()) == "".join(text.split())
    assert len(pages) <= 1.2 * len(text) / 3000 + 1


def test_form_feeds_begin_pages(tmp_path):
    assert texts_of(tmp_path, "one\ftwo\f\fthree") == ["one", "two", "three"]


def test_ranges(tmp_path):
    file = written(tmp_path / "a.txt", "\f".join("abcde"))

    outcome = extract(file, TXT, 2, 4)

    assert [(page["number"], page["text"]) for page in outcome.pages] == [(2, "b"), (3, "c"), (4, "d")]
    assert extract(file, TXT, 6, 7, directory=tmp_path).code == "no_such_page"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "malformed"),
        (bytes(range(256)) * 100, "malformed"),
        (b"\x7fELF" + bytes(10_000), "malformed"),
        (CONTROL.encode() * 1000, "malformed"),
        (b"word " * (14 << 20), "too_large"),
        (b"word " * 5_000_000, "too_large"),
    ],
    ids=range(6),
)
def test_what_is_refused(tmp_path, content, code):
    outcome = extract(written(tmp_path / "a.txt", content), TXT)

    assert outcome.code == code
    assert effort.usual(outcome.ended.cpu_seconds) < 10


def test_a_megabyte_takes_less_than_a_second(tmp_path):
    for number, text in enumerate(["\n" + " " * 99, " " * 999_999, "\n \n" * 300_000, "a" * 999_999, ". " * 500_000]):
        content = (text * (1_000_000 // len(text) + 1)).encode()

        assert effort.usual(extract(written(tmp_path / f"{number}.txt", content), TXT).ended.cpu_seconds) < 1, repr(
            text[:9]
        )
