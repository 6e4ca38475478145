import json
import re
import time

import pypdfium2
import pytest

from tests.extractor.extracting import NOBODY, PDF, extract
from tests.extractor.pdfs import by_hand, long_pdf, pdf_of, says, stream, with_content

pytestmark = [pytest.mark.once, pytest.mark.long]


def words_of(page):
    return [word[0] for word in page["words"]]


def boxes_of(page):
    """Return the box of each word by its text, in points from the top left corner."""
    width, height = page["width"], page["height"]
    return {word: (x0 * width, y0 * height, x1 * width, y1 * height) for word, x0, y0, x1, y1 in page["words"]}


def written_pdf(tmp_path, content):
    path = tmp_path / "by hand.pdf"
    path.write_bytes(content)
    return path


def test_text_words_and_size_of_each_page(tmp_path):
    file = pdf_of(tmp_path / "a.pdf", "Invoice 4711\nTotal: 12,50 é", 'Second «page» \\ "quoted"')

    document = extract(file, PDF).document

    assert (document["version"], document["pages_total"]) == (2, 2)
    first, second = document["pages"]
    assert first["text"] == "Invoice 4711\nTotal: 12,50 é"
    assert words_of(first) == ["Invoice", "4711", "Total:", "12,50", "é"]
    assert words_of(second) == second["text"].split() == ["Second", "«page»", "\\", '"quoted"']
    assert (first["number"], second["number"]) == (1, 2)
    assert (first["width"], first["height"]) == (595.28, 841.89)
    assert (first["has_text"], first["images"], first["tables"]) == (True, 0, [])


TURNS = [0, 90, 180, 270]


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("area", ["/MediaBox[0 0 600 800]", "/MediaBox[-50 -70 700 900]/CropBox[50 30 650 830]"])
def test_boxes_cover_the_ink_of_their_words_however_the_page_is_turned(tmp_path, turn, area):
    content = stream("BT /F1 24 Tf 90 700 Td (Hxpg) Tj 0 -300 Td (ajl) Tj ET BT /F1 12 Tf 400 90 Td (low) Tj ET")
    file = written_pdf(tmp_path, with_content(content, page=f"{area}/Rotate {turn}"))

    (page,) = extract(file, PDF).pages

    assert sorted(words_of(page)) == ["Hxpg", "ajl", "low"]
    for word, box in boxes_of(page).items():
        others = [each for other, each in boxes_of(page).items() if other != word]
        assert ink_within(file, box) > 20
        assert all(apart(box, other) for other in others)
    covered = sum(ink_within(file, box) for box in boxes_of(page).values())
    assert covered == pytest.approx(ink_within(file, (0, 0, page["width"], page["height"])), rel=0.01)


def ink_within(file, box):
    """Return how many dark points a renderer has drawn inside the box, independent of word detection."""
    with pypdfium2.PdfDocument(file) as document:
        page = document[0]
        bitmap = page.render(scale=1, grayscale=True)
        rows = [
            bytes(bitmap.buffer)[y * bitmap.stride : y * bitmap.stride + bitmap.width] for y in range(bitmap.height)
        ]
        page.close()
    x0, y0, x1, y1 = (round(each) for each in box)
    return sum(value < 128 for row in rows[max(0, y0 - 1) : y1 + 1] for value in row[max(0, x0 - 1) : x1 + 1])


def apart(box, other):
    return box[2] <= other[0] or other[2] <= box[0] or box[3] <= other[1] or other[3] <= box[1]


def test_a_word_stands_where_it_was_put(tmp_path):
    file = written_pdf(tmp_path, with_content(says("Here it is")))

    boxes = boxes_of(extract(file, PDF).pages[0])

    # In 12 point Helvetica, H is 8.67 wide, and all glyphs lie between 9 points above and 3 below the baseline.
    left, top, right, bottom = boxes["Here"]
    assert left == pytest.approx(72, abs=0.5)
    assert right == pytest.approx(72 + 12 * (0.722 + 0.556 + 0.333 + 0.556), abs=0.5)
    assert (top, bottom) == (pytest.approx(842 - 700 - 9, abs=3), pytest.approx(842 - 700 + 3, abs=2))


def test_shares_have_at_most_four_decimals(tmp_path):
    page = extract(pdf_of(tmp_path / "a.pdf", "some words here"), PDF).pages[0]

    assert all(share == round(share, 4) for word in page["words"] for share in word[1:])


def test_characters_beyond_the_first_plane_keep_words_in_place(tmp_path):
    names = "/Encoding<</Type/Encoding/Differences[97/u1F600]>>"
    to_unicode = stream("begincmap 1 beginbfchar <61> <D83DDE00> endbfchar endcmap")
    font = f"<</Type/Font/Subtype/Type1/BaseFont/Helvetica{names}/ToUnicode 6 0 R>>"
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        stream("BT /F1 12 Tf 72 700 Td (aaaa bbb) Tj ET BT /F1 12 Tf 72 500 Td (below) Tj ET"),
        font,
        to_unicode,
    ]

    page = extract(written_pdf(tmp_path, by_hand(objects)), PDF).pages[0]

    assert words_of(page) == ["😀😀😀😀", "bbb", "below"]
    assert page["text"].split() == words_of(page)
    assert boxes_of(page)["below"][1] - boxes_of(page)["bbb"][1] == pytest.approx(200, abs=3)


@pytest.mark.parametrize(
    ("first", "last", "numbers"), [(1, 2, [1, 2]), (4, 6, [4, 5, 6]), (7, 7, [7]), (6, 99, [6, 7])]
)
def test_only_the_pages_that_are_asked_for(tmp_path, first, last, numbers):
    file = long_pdf(tmp_path / "a.pdf", 7, words=5)

    outcome = extract(file, PDF, first, last)

    assert [page["number"] for page in outcome.pages] == numbers
    assert [page["text"].split(".")[0] for page in outcome.pages] == [f"Page {number}" for number in numbers]
    assert outcome.document["pages_total"] == 7


@pytest.mark.parametrize(("first", "last"), [(8, 9), (0, 3), (-2, 1), (3, 2)])
def test_pages_that_do_not_exist_are_refused(tmp_path, first, last):
    assert extract(long_pdf(tmp_path / "a.pdf", 7, words=5), PDF, first, last).code == "no_such_page"


def test_damaged_pages_that_nobody_asks_for_are_not_loaded(tmp_path):
    page = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>"
    kids = "<</Type/Pages/Kids[3 0 R 9 0 R 4 0 R]/Count 3>>"
    file = written_pdf(tmp_path, by_hand(["<</Type/Catalog/Pages 2 0 R>>", kids, page, page]))

    assert [page["number"] for page in extract(file, PDF, 3, 3).pages] == [3]
    assert extract(file, PDF, 1, 3, directory=tmp_path).code == "malformed"


def test_parts_are_the_same_as_the_whole(tmp_path):
    file = long_pdf(tmp_path / "a.pdf", 9, words=40)

    parts = [page for first in (1, 4, 7) for page in extract(file, PDF, first, first + 2).pages]

    assert parts == extract(file, PDF).pages


def test_the_same_file_gives_the_same_bytes(tmp_path):
    file = long_pdf(tmp_path / "a.pdf", 3)

    outputs = [extract(file, PDF, directory=tmp_path / name).output for name in ("one", "two")]

    assert outputs[0] == outputs[1]
    assert json.loads(outputs[0])["pages"] != []


def test_keys_are_in_order(tmp_path):
    document = extract(pdf_of(tmp_path / "a.pdf", "x"), PDF).document

    assert list(document) == sorted(document)
    assert list(document["pages"][0]) == sorted(document["pages"][0])


def test_what_is_told_is_what_was_extracted(tmp_path):
    events = extract(pdf_of(tmp_path / "a.pdf", "12345", "678"), PDF).events

    assert [event["kind"] for event in events] == ["extracted", "done"]
    assert {**events[0], "seconds": 0} == {
        "kind": "extracted", "pages_total": 2, "pages": 2, "characters": 8, "recognised": 0, "scans": 0, "seconds": 0,
    }  # fmt: skip


def test_a_scan_has_no_text_but_an_image(tmp_path):
    picture = stream(bytes(3), "/Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceRGB/BitsPerComponent 8")
    page = "/MediaBox[0 0 595 842]/Resources<</XObject<</X 6 0 R>>>>"
    wrapped = stream("/X Do /X Do", "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 7 0 R>>>>")

    direct = extract(
        written_pdf(tmp_path, with_content(stream("/X Do"), page=page, more=[picture])), PDF, without=NOBODY
    ).pages[0]
    within = extract(
        written_pdf(tmp_path, with_content(stream("/X Do"), page=page, more=[wrapped, picture])), PDF, without=NOBODY
    ).pages[0]

    assert (direct["has_text"], direct["text"], direct["words"], direct["images"]) == (False, "", [], 1)
    assert (within["has_text"], within["images"]) == (False, 2)


def test_forms_and_notes_are_no_text(tmp_path):
    note = "<</Type/Annot/Subtype/FreeText/Contents(A note)/Rect[9 9 99 99]/DA(/F1 9 Tf)>>"
    field = "<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(Typed in)/Rect[9 9 99 99]>>"
    file = written_pdf(tmp_path, with_content(says("Printed"), page=f"/MediaBox[0 0 595 842]/Annots[{note}{field}]"))

    assert extract(file, PDF).pages[0]["text"] == "Printed"


def test_a_hyphen_at_the_end_of_a_line_is_one(tmp_path):
    content = stream("BT /F1 12 Tf 72 700 Td (exam-) Tj 0 -14 Td (ple) Tj ET")

    page = extract(written_pdf(tmp_path, with_content(content)), PDF).pages[0]

    assert page["text"] == "exam-\nple"
    assert words_of(page) == ["exam-", "ple"]


PAGES = 300


def test_hundreds_of_pages_take_little_longer_than_the_library_does(tmp_path):
    """Compare with pypdfium2 alone: for text with positions, and for text without."""
    file = long_pdf(tmp_path / "long.pdf", PAGES)

    ours = min(extract(file, PDF).ended.cpu_seconds for _ in range(3))
    with_places = min(cpu_seconds(file, text_and_places) for _ in range(2))
    without = min(cpu_seconds(file, lambda text_page: text_page.get_text_range()) for _ in range(3))

    told = f"ours {ours:.2f} s, with places {with_places:.2f} s, text alone {without:.2f} s"
    assert ours < 1.5 * with_places, told
    # Positions are most of the work; this limit shows when they become more.
    assert ours < 4.5 * without, told


def cpu_seconds(file, read):
    before = time.process_time()
    with pypdfium2.PdfDocument(file) as document:
        for page in document:
            text_page = page.get_textpage()
            read(text_page)
            text_page.close()
            page.close()
    return time.process_time() - before


def text_and_places(text_page):
    for word in re.finditer(r"\S+", text_page.get_text_range()):
        text_page.get_charbox(word.start(), loose=True)
        text_page.get_charbox(word.end() - 1, loose=True)
