"""What looks a little like a table, and what wants to take long."""

import time

import pypdfium2
import pytest

from ade_extractor import rulings
from ade_understanding.tables import data
from ade_understanding.tables.data import Tables, may_have
from ade_understanding.tables.find import find
from tests import effort
from tests.extractor.pdfs import stream, with_content
from tests.understanding.table_pages import LINE, Page, look, tables
from tests.understanding.test_tables import PROSE

pytestmark = pytest.mark.once

A4 = 595, 842
# On an idle machine; what is slow without a limit takes minutes.
SECONDS = 5
WORDS = PROSE.split()


@pytest.fixture
def page(tmp_path):
    return Page(tmp_path / "page.pdf")


def column(page, left, lines=30, per_line=6):
    for line in range(lines):
        words = [WORDS[(7 * line + word) % len(WORDS)] for word in range(per_line)]
        page.text(left, 60 + LINE * line, " ".join(words))


def test_a_letter_has_no_table(page):
    for top, line in (
        (60, "Aldergate Ltd"),
        (74, "14 Orchard Lane"),
        (130, "Dear Ms Baker,"),
        (500, "Yours faithfully"),
    ):
        page.text(60, top, line)
    page.right(530, 100, "York, 3 May 2026")
    column(page, 60, lines=20, per_line=14)

    assert tables(page.save()) == []


def test_a_page_printed_in_two_columns_has_no_table(page):
    column(page, 50)
    column(page, 320)

    assert tables(page.save()) == []


def test_a_list_of_labels_and_values_is_not_a_table(page):
    rows = (("Invoice no.:", "AO-117"), ("Date:", "18.11.2026"), ("Customer:", "30417"), ("Order:", "5512"))
    for number, (label, value) in enumerate(rows):
        page.text(300, 80 + LINE * number, label)
        page.text(420, 80 + LINE * number, value)

    assert tables(page.save()) == []


def test_a_chart_is_not_a_table(page):
    page.grid([100, 150, 200, 250, 300, 350, 400], [100, 130, 160, 190, 220, 250])
    for number in range(6):
        page.right(95, 95 + 30 * number, str(100 - 20 * number))
        page.centred(125 + 50 * number, 255, str(2020 + number))
    page.centred(225, 110, "41")
    page.centred(325, 170, "22")

    assert tables(page.save()) == []


def test_a_line_above_footnotes_is_not_a_table(page):
    column(page, 60, lines=40, per_line=14)
    page.across(640, 60, 200)
    page.text(60, 650, "1 See the report of 2025, page 12.")
    page.across(700, 60, 530)
    page.text(60, 710, "Chapter 3")
    page.right(530, 710, "17")

    assert tables(page.save()) == []


def test_a_page_with_a_hundred_thousand_lines_is_a_drawing(page):
    page.pdf._out("\n".join(f"{n % 500} {n / 130:.2f} m {n % 500 + 60} {n / 130:.2f} l S" for n in range(100_000)))
    page.text(60, 60, "Elevation")

    ((_, words, found, size),) = look(page.save())

    assert (found, find(words, found, *size)) == ([], [])


def test_a_path_of_a_hundred_thousand_points_is_a_drawing(page):
    page.pdf._out("0 0 m " + " ".join(f"{n % 590} {n % 840} l" for n in range(100_000)) + " S")
    page.text(60, 60, "Elevation")

    ((_, _, found, _),) = look(page.save())

    assert found == []


@pytest.mark.parametrize(("depth", "found"), [(1, 1), (3, 1), (4, 0)])
def test_lines_in_forms_are_found_at_their_place_but_not_at_any_depth(tmp_path, depth, found):
    extra = "/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Matrix[1 0 0 1 10 20]"
    forms = [
        stream(f"/X{number + 1} Do", f"{extra}/Resources<</XObject<</X{number + 1} {6 + number} 0 R>>>>")
        for number in range(1, depth)
    ]
    forms.append(stream("100 100 m 300 100 l S", extra))
    content = stream("/X1 Do")
    objects = with_content(content, page="/MediaBox[0 0 595 842]/Resources<</XObject<</X1 6 0 R>>>>", more=forms)
    path = tmp_path / "form.pdf"
    path.write_bytes(objects.replace(b"/Resources<</Font<</F1 5 0 R>>>>", b""))

    lines = rulings.find(pypdfium2.PdfDocument(path)[0])

    assert [tuple(map(round, line)) for line in lines] == [
        (100 + 10 * depth, 100 + 20 * depth, 300 + 10 * depth, 100 + 20 * depth)
    ] * found


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [[0.0, n / 3000, 1.0, n / 3000] for n in range(3000)],
        [[0.0, n / 600, 1.0, n / 600] for n in range(600)] + [[n / 600, 0.0, n / 600, 1.0] for n in range(600)],
        [[0.0, n / 140, 1.0, n / 140] for n in range(140)] + [[n / 140, 0.0, n / 140, 1.0] for n in range(140)],
        [[n / 3000, n / 3000, n / 3000 + 0.1, n / 3000] for n in range(3000)],
    ],
    ids=["no lines", "high stack", "fine grid", "coarse grid", "stairs"],
)
def test_the_densest_page_takes_seconds_at_most(lines):
    places = [(n % 80 / 80, n // 80 / 100) for n in range(8000)]
    words = [[str(n), x, y, x + 0.006, y + 0.006] for n, (x, y) in enumerate(places)]
    began = time.process_time()

    find(words, lines, *A4)

    assert effort.since(began) < SECONDS


def test_more_words_than_a_page_can_hold_are_not_examined():
    words = [
        [str(n), n % 100 / 100, n // 100 / 900, n % 100 / 100 + 0.005, n // 100 / 900 + 0.001] for n in range(90_000)
    ]

    assert find(words, [], *A4) == []


@pytest.mark.parametrize(("columns", "found"), [(300, 1), (600, 0)])
def test_a_page_with_very_many_columns_is_no_table(columns, found):
    words = [[str(n), n / columns, y, (n + 0.5) / columns, y + 0.01] for n in range(columns) for y in (0.1, 0.12, 0.14)]

    assert len(find(words, [], 14_400, 842)) == found


def test_a_text_with_lines_of_numbers_may_have_a_table():
    assert may_have("Apples 12 1,250.00\n" * 5)
    assert may_have("Kingfisher\nGrade level\n" * 4)
    assert not may_have("On 3 May 2026 the committee met.\n" + f"{PROSE}\n" * 50)
    for hostile in ("x", "1", "1 ", "1.", " ", "1\n"):
        began = time.process_time()
        may_have(hostile * 1_000_000)
        assert effort.since(began) < SECONDS


def test_the_tables_of_a_document_are_limited():
    found = Tables()
    for number in range(1, 601):
        found.add_page(number, [], [], (None, None), [{"rows": [["Name", "Count"], [f"a{number}", "1"]], "box": None}])

    assert len(found.result()) == data.MOST_TABLES
