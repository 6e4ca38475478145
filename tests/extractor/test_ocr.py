"""Text in images: with rapidocr, with tesseract, and without an engine."""

import pytest
from fpdf import FPDF
from PIL import Image

from tests.extractor.extracting import JPEG, NOBODY, PDF, PNG, TIFF, extract
from tests.extractor.scans import (
    RAPIDOCR,
    TESSERACT,
    image_of,
    images_of,
    letter,
    lies_within,
    needs_rapidocr,
    needs_tesseract,
    pdf_with,
    right,
    share_right,
    words_drawn,
)

pytestmark = [pytest.mark.once, pytest.mark.long]

ENGINES = [
    pytest.param(RAPIDOCR, marks=needs_rapidocr),
    pytest.param(TESSERACT, marks=needs_tesseract),
]
LETTER = letter()
ENOUGH = 0.95


@pytest.fixture
def image(tmp_path):
    return image_of(tmp_path / "letter.pdf", LETTER)


def read_by(engine, file, content_type, *pages):
    return extract(file, content_type, *pages, without=[each for each in NOBODY if each != engine])


def saved(image, path, **options):
    image.save(path, **options)
    return path


@pytest.mark.parametrize("engine", ENGINES)
def test_a_scan_is_read_with_its_words_where_they_were_drawn(tmp_path, image, engine):
    drawn = words_drawn(tmp_path / "drawn.pdf", LETTER)

    outcome = read_by(engine, pdf_with(tmp_path / "scan.pdf", [image], text="This page has a text."), PDF)

    scan, page = outcome.pages
    pairs = right(scan["words"], drawn)
    assert len(pairs) >= ENOUGH * len(drawn), scan["text"]
    assert [pair for pair in pairs if not lies_within(*pair)] == []
    assert scan["text"].split() == [word[0] for word in scan["words"]]
    assert scan["ocr"].pop("confidence") == pytest.approx(0.95, abs=0.05)
    assert scan["ocr"] == {"engine": engine, "whole": True}
    assert (scan["has_text"], scan["images"]) == (True, 1)
    assert (page["text"], page["ocr"]) == ("This page has a text.", None)
    assert (outcome.events[0]["recognised"], outcome.events[0]["scans"], outcome.document["scans"]) == (1, 0, 0)


def test_without_an_engine_scans_stay_without_text_and_are_counted(tmp_path, image):
    file = pdf_with(tmp_path / "scan.pdf", [image, image], text="This page has a text.")

    outcome = extract(file, PDF, without=NOBODY)

    assert [(page["has_text"], page["images"], page["ocr"]) for page in outcome.pages] == [
        (False, 1, None),
        (False, 1, None),
        (True, 0, None),
    ]
    assert (outcome.events[0]["recognised"], outcome.events[0]["scans"], outcome.document["scans"]) == (0, 2, 2)


@needs_rapidocr
def test_whoever_has_scans_read_elsewhere_has_them_left_alone_here(tmp_path, image):
    file = pdf_with(tmp_path / "scan.pdf", [image])

    outcome = extract(file, PDF, options=["--without-ocr"])

    assert [(page["has_text"], page["ocr"]) for page in outcome.pages] == [(False, None)]


@pytest.mark.parametrize("engine", ENGINES)
def test_lines_are_read_from_the_top_and_each_from_the_left(tmp_path, engine):
    text = "\n".join(f"Row {n}      left {n}                    right {n}" for n in range(11, 40))
    file = saved(image_of(tmp_path / "rows.pdf", text), tmp_path / "rows.png")

    (page,) = read_by(engine, file, PNG).pages

    lines = [line.split() for line in page["text"].split("\n") if line]
    assert lines == [line.split() for line in text.split("\n")]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_page_that_is_shown_turned(tmp_path, image, engine, degrees):
    """Scanned sideways, and rotated upright by the program that made the PDF."""
    drawn = words_drawn(tmp_path / "drawn.pdf", LETTER)
    lying = image.rotate(degrees, expand=True)

    (page,) = read_by(engine, pdf_with(tmp_path / "scan.pdf", [lying], rotate=degrees), PDF).pages

    pairs = right(page["words"], drawn)
    assert len(pairs) >= ENOUGH * len(drawn)
    assert all(lies_within(*pair) for pair in pairs)
    assert page["width"] < page["height"]


def turned_back(word, degrees):
    text, left, top, right, bottom = word
    return {
        90: [text, 1 - bottom, left, 1 - top, right],
        180: [text, 1 - right, 1 - bottom, 1 - left, 1 - top],
        270: [text, top, 1 - right, bottom, 1 - left],
    }[degrees]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_page_that_lies_on_its_side_is_read_as_if_it_stood(tmp_path, image, engine, degrees):
    drawn = words_drawn(tmp_path / "drawn.pdf", LETTER)
    file = saved(image.rotate(degrees, expand=True), tmp_path / "lying.png")

    (page,) = read_by(engine, file, PNG).pages

    pairs = right(page["words"], drawn)
    assert len(pairs) >= ENOUGH * len(drawn)
    assert all(lies_within(turned_back(found, degrees), wanted) for found, wanted in pairs)


@needs_rapidocr
@pytest.mark.parametrize("degrees", [-2, 1.5])
def test_a_page_that_is_askew(tmp_path, image, degrees):
    file = saved(image.rotate(degrees, expand=True, fillcolor=255), tmp_path / "askew.png")

    (page,) = read_by(RAPIDOCR, file, PNG).pages

    assert share_right(page["text"], LETTER) >= ENOUGH
    assert page["text"].count("\n") + 1 == len([line for line in lines_of(tmp_path) if line])


def lines_of(tmp_path):
    (page,) = extract(tmp_path / "letter.pdf", PDF, without=NOBODY).pages
    return page["text"].split("\n")


@needs_rapidocr
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photograph_is_read_as_people_see_it(tmp_path, image, orientation):
    """Cameras store the raw image and its orientation separately."""
    held = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}
    stored = image.transpose(Image.Transpose(held[orientation])) if orientation > 1 else image
    exif = Image.Exif()
    exif[274] = orientation
    drawn = words_drawn(tmp_path / "drawn.pdf", LETTER)

    (page,) = read_by(RAPIDOCR, saved(stored, tmp_path / "photo.jpg", exif=exif, quality=85), JPEG).pages

    pairs = right(page["words"], drawn)
    assert len(pairs) >= ENOUGH * len(drawn)
    assert all(lies_within(*pair) for pair in pairs)
    assert (page["width"], page["height"]) == image.size


KINDS = {
    "black and white": (TIFF, "1", {"compression": "group4"}),
    "grey": (TIFF, "L", {"compression": "tiff_lzw"}),
    "jpeg in tiff": (TIFF, "RGB", {"compression": "jpeg"}),
    "colours": (JPEG, "RGB", {"quality": 60}),
    "progressive": (JPEG, "RGB", {"progressive": True}),
    "print colours": (JPEG, "CMYK", {}),
    "palette": (PNG, "P", {}),
    "one bit": (PNG, "1", {}),
    "16 bits": (PNG, "I;16", {}),
    "16 bits in tiff": (TIFF, "I;16", {}),
    "floating": (TIFF, "F", {}),
}
SUFFIXES = {PNG: "png", JPEG: "jpg", TIFF: "tiff"}


@needs_rapidocr
@pytest.mark.parametrize("kind", KINDS)
def test_images_of_all_kinds(tmp_path, image, kind):
    content_type, mode, options = KINDS[kind]
    made = image.convert("I").point(lambda grey: grey * 250).convert("I;16") if mode == "I;16" else image.convert(mode)
    file = saved(made, tmp_path / f"image.{SUFFIXES[content_type]}", **options)

    (page,) = read_by(RAPIDOCR, file, content_type).pages

    assert share_right(page["text"], LETTER) >= ENOUGH
    assert (page["width"], page["height"]) == image.size


@needs_rapidocr
@pytest.mark.parametrize("mode", ["LA", "RGBA", "P"])
def test_what_shines_through_is_white(tmp_path, image, mode):
    """Black letters on a transparent background whose hidden colour is black too."""
    ink = Image.new("RGBA", image.size, (0, 0, 0, 0))
    ink.putalpha(image.point(lambda grey: 255 - grey))
    made = ink.quantize(method=Image.Quantize.FASTOCTREE) if mode == "P" else ink.convert(mode)

    (page,) = read_by(RAPIDOCR, saved(made, tmp_path / "ink.png"), PNG).pages

    assert share_right(page["text"], LETTER) >= ENOUGH


@pytest.mark.parametrize("engine", ENGINES)
def test_a_fax_of_several_pages(tmp_path, engine):
    first, *others = (image_of(tmp_path / f"{n}.pdf", f"This is page number {n}00") for n in (1, 2, 3))
    file = saved(first, tmp_path / "fax.tiff", save_all=True, append_images=others)

    all_of_it = read_by(engine, file, TIFF).pages
    (second,) = read_by(engine, file, TIFF, 2, 2).pages

    assert [page["text"] for page in all_of_it] == [f"This is page number {n}00" for n in (1, 2, 3)]
    assert (second["number"], second["text"]) == (2, "This is page number 200")


@needs_rapidocr
def test_letters_that_are_not_english(tmp_path):
    text = "Müller & Söhne, Straße 5, señor, déjà vu, à l'école"
    file = saved(image_of(tmp_path / "a.pdf", text), tmp_path / "a.png")

    (page,) = read_by(RAPIDOCR, file, PNG).pages

    assert share_right(page["text"], text) >= ENOUGH


@needs_rapidocr
def test_small_print_with_long_lines(tmp_path):
    text = letter(1400).replace("\n", " ")
    file = pdf_with(tmp_path / "scan.pdf", [image_of_small_print(tmp_path, text)])

    outcome = read_by(RAPIDOCR, file, PDF)

    (page,) = outcome.pages
    assert page["ocr"]["whole"]
    assert share_right(page["text"], text) >= ENOUGH


def image_of_small_print(tmp_path, text):
    made = FPDF()
    made.set_font("Helvetica", size=7)
    made.set_auto_page_break(False)
    made.add_page()
    made.multi_cell(0, 3, text)
    made.output(str(tmp_path / "small.pdf"))
    (found,) = images_of(tmp_path / "small.pdf")
    return found


@needs_rapidocr
def test_a_till_receipt_and_a_line_alone(tmp_path):
    image = image_of(tmp_path / "a.pdf", "\n".join(f"Apples {n} pieces {n}.50" for n in range(101, 130)))
    receipt = Image.new("L", (700, 4200), 255)
    receipt.paste(image.crop((0, 0, 700, 1500)), (0, 2500))
    line = image.crop((0, 75, 700, 125))

    (long,) = read_by(RAPIDOCR, saved(receipt, tmp_path / "receipt.png"), PNG).pages
    (short,) = read_by(RAPIDOCR, saved(line, tmp_path / "line.png"), PNG).pages

    assert long["text"].startswith("Apples 101 pieces 101.50\nApples 102 pieces")
    assert all(word[2] > 2400 / 4200 for word in long["words"])
    assert short["text"] == "Apples 101 pieces 101.50"


@pytest.mark.parametrize("engine", ENGINES)
def test_an_image_without_text_was_read_all_the_same(tmp_path, engine):
    outcome = read_by(engine, saved(Image.new("L", (400, 300), 255), tmp_path / "white.png"), PNG)

    (page,) = outcome.pages
    assert (page["has_text"], page["words"]) == (False, [])
    assert page["ocr"] == {"confidence": None, "engine": engine, "whole": True}
    assert outcome.events[0]["scans"] == 0
