"""Images that are slow, huge, or not what they claim to be. Each must end soon: with text, without text, or with a
reason.
"""

import io
import json
import random
import struct
import zlib
from dataclasses import dataclass

import pytest
from PIL import Image, ImageDraw

from documents.extraction import ExtractionFailed
from documents.extraction.local import extract as judged
from tests import effort
from tests.extractor.extracting import JPEG, PDF, PNG, TIFF, written
from tests.extractor.pdfs import by_hand, stream
from tests.extractor.scans import image_of, letter, needs_rapidocr, pdf_with

pytestmark = [pytest.mark.once, pytest.mark.long, needs_rapidocr]

# The longest, a page full of small print, takes 10 to 20. The limit for recognising a page is 60.
SECONDS = 45
A4 = (1654, 2339)
SUFFIXES = {PNG: "png", JPEG: "jpeg", TIFF: "tiff", PDF: "pdf"}


@dataclass
class End:
    code: str = ""
    page: dict[str, object] | None = None


def end_of(tmp_path, content, content_type):
    """Return the end of the child and the failure, as a worker sees them."""
    file, directory = written(tmp_path / f"hostile.{SUFFIXES[content_type]}", content), tmp_path / "out"
    directory.mkdir()
    ended, failures = {}, []
    options = {"wall_seconds": 600, "on_start": lambda child: ended.update(child=child)}
    try:
        found = judged(file, content_type, 1, 25, directory, **options)
    except ExtractionFailed as failed:
        failures.append(failed)
    assert effort.usual(ended["child"].ended.cpu_seconds) < SECONDS
    assert all(failed.permanent for failed in failures), failures
    if failures:
        return End(failures[0].code)
    (page,) = json.loads(found.path.read_bytes())["pages"]
    return End(page=page)


def encoded(image, kind="PNG", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def png_of(width, height, data, *, colour=0, bits=8):
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)), (b"IDAT", data), (b"IEND", b"")]
    sums = (struct.pack(">I", zlib.crc32(name + body)) for name, body in parts)
    packed = (struct.pack(">I", len(body)) + name + body + end for (name, body), end in zip(parts, sums, strict=True))
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def zeros(size):
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(min(1 << 24, size - at))) for at in range(0, size, 1 << 24)) + packer.flush()


def tiff_of(data, **tags):
    """Return a little-endian TIFF with one strip."""
    known = {"width": 256, "height": 257, "bits": 258, "compression": 259, "colour": 262, "start": 273, "samples": 277}
    known |= {"rows": 278, "length": 279, "tile_width": 322, "tile_height": 323}
    values = {"bits": 8, "compression": 1, "colour": 1, "start": 8, "length": len(data), "samples": 1, **tags}
    entries = sorted((known[name], value) for name, value in values.items())
    table = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries)
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + struct.pack("<H", len(entries)) + table + bytes(4)


def test_one_that_says_it_is_huge(tmp_path):
    assert end_of(tmp_path, png_of(50_000, 50_000, zlib.compress(b"")), PNG).code == "too_large"


@pytest.mark.parametrize("content_type", SUFFIXES)
def test_one_that_says_it_is_large_and_is_not_there(tmp_path, content_type):
    small = encoded(Image.new("RGB", (16, 16)), "JPEG")
    content = {
        PNG: png_of(14_000, 14_000, zlib.compress(bytes(100))),
        JPEG: small.replace(struct.pack(">HH", 16, 16), struct.pack(">HH", 12_000, 16_000)),
        TIFF: tiff_of(bytes(100), width=14_000, height=14_000, rows=14_000),
        PDF: pdf_of_image(stream(zlib.compress(bytes(100)), picture(14_000, 14_000))),
    }[content_type]

    end = end_of(tmp_path, content, content_type)

    assert end.code in ("malformed", "too_large") or not end.page["has_text"]


def test_one_that_unpacks_to_much_colour(tmp_path):
    content = png_of(14_000, 14_000, zeros(14_000 * (3 * 14_000 + 1)), colour=2)

    assert end_of(tmp_path, content, PNG).code == "too_large"


@pytest.mark.parametrize("content_type", [PNG, TIFF, PDF])
def test_one_that_unpacks_to_much_black(tmp_path, content_type):
    side = 14_000
    content = {
        PNG: lambda: png_of(side, side, zeros(side * (side + 1))),
        TIFF: lambda: tiff_of(zeros(side * side), width=side, height=side, rows=side, compression=8),
        PDF: lambda: pdf_of_image(bomb_image(side)),
    }[content_type]()

    end = end_of(tmp_path, content, content_type)

    assert end.code == "too_large" or (end.page["text"], end.page["ocr"]["confidence"]) == ("", None)


def picture(width, height):
    kind = "/Type/XObject/Subtype/Image/ColorSpace/DeviceGray/BitsPerComponent 8/Filter/FlateDecode"
    return f"{kind}/Width {width}/Height {height}"


def bomb_image(side):
    return stream(zeros(side * side), picture(side, side))


def pdf_of_image(image, *, box="0 0 595 842", content="500 0 0 500 0 0 cm /I Do"):
    page = f"<</Type/Page/Parent 2 0 R/MediaBox[{box}]/Contents 4 0 R/Resources<</XObject<</I 5 0 R>>>>>>"
    tree = ["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", page]
    return by_hand([*tree, stream(content), image])


@pytest.mark.parametrize("box", ["0 0 14400 14400", "0 0 1 14400", "0 0 14400 1", "0 0 0.001 0.001", "0 0 1e9 1e9"])
def test_pages_of_strange_sizes(tmp_path, box):
    side = 100
    image = stream(zlib.compress(bytes(side * side)), picture(side, side))

    end = end_of(tmp_path, pdf_of_image(image, box=box), PDF)

    assert end.code == "malformed" or end.page["text"] == ""


def test_a_page_that_draws_its_image_again_and_again(tmp_path):
    content = "q 500 0 0 800 0 0 cm /I Do Q\n" * 20_000

    end = end_of(tmp_path, pdf_of_image(bomb_image(3000), content=content), PDF)

    assert end.code in ("too_slow", "too_large")


@pytest.mark.parametrize("size", [(1, 100_000), (100_000, 1), (12, 100_000), (100_000, 30), (30, 60_000), (7, 7)])
def test_strips(tmp_path, size):
    noise = Image.effect_noise(size, 90)

    end = end_of(tmp_path, encoded(noise), PNG)

    assert end.page["ocr"]["engine"] == "rapidocr"


def black():
    return Image.new("L", A4)


def noise():
    return Image.effect_noise(A4, 128)


def noise_in_colour():
    return Image.merge("RGB", [Image.effect_noise((3000, 4000), 128) for _ in range(3)])


def dots():
    return Image.effect_noise(A4, 128).convert("1")


def bars():
    image = Image.new("L", A4, 255)
    image.paste(0, (0, 0, *A4), Image.linear_gradient("L").resize(A4).point(lambda grey: 255 * (grey % 2)))
    return image


def board(side=12):
    image = Image.new("L", A4, 255)
    draw = ImageDraw.Draw(image)
    for x in range(0, A4[0], side):
        for y in range(x // side % 2 * side, A4[1], 2 * side):
            draw.rectangle((x, y, x + side, y + side), fill=0)
    return image


def letters(step=(26, 26), size=18, *, shuffled=False):
    """Return an image filled with as many separate letters as fit."""
    chance = random.Random(1)
    image = Image.new("L", A4, 255)
    draw = ImageDraw.Draw(image)
    for x in range(0, A4[0], step[0]):
        for y in range(0, A4[1], step[1]):
            place = (chance.randrange(A4[0]), chance.randrange(A4[1])) if shuffled else (x, y)
            draw.text(place, chance.choice("abcdefgh@#%&WMQ"), fill=0, font_size=size)
    return image


def scribbles():
    chance = random.Random(1)
    image = Image.new("L", A4, 255)
    draw = ImageDraw.Draw(image)
    for _ in range(4000):
        x, y = chance.randrange(A4[0]), chance.randrange(A4[1])
        there = (x + chance.randrange(-90, 90), y + chance.randrange(-14, 14))
        draw.line((x, y, *there), fill=0, width=chance.randrange(1, 4))
    return image


def words_everywhere():
    chance = random.Random(1)
    image = Image.new("L", A4, 255)
    draw = ImageDraw.Draw(image)
    for y in range(0, A4[1], 13):
        line = " ".join("".join(chance.choice("aeinorstul0123456789") for _ in range(7)) for _ in range(60))
        draw.text((0, y), line, fill=0, font_size=11)
    return image


@pytest.mark.parametrize(
    "draw",
    [black, noise, noise_in_colour, dots, bars, board, letters, scribbles, words_everywhere],
    ids=lambda draw: draw.__name__,
)
def test_what_is_no_text_or_far_too_much(tmp_path, draw):
    end = end_of(tmp_path, encoded(draw()), PNG)

    assert end.page["ocr"]["engine"] == "rapidocr"


def test_letters_one_over_the_other(tmp_path):
    end = end_of(tmp_path, encoded(letters(shuffled=True)), PNG)

    assert end.page["ocr"]["engine"] == "rapidocr"


def test_a_page_of_noise_keeps_nobody_from_reading_the_next(tmp_path):
    file = pdf_with(tmp_path / "a.pdf", [scribbles(), image_of(tmp_path / "letter.pdf", letter())])
    directory = tmp_path / "out"
    directory.mkdir()

    found = judged(file, PDF, 1, 25, directory, wall_seconds=100)

    _, page = json.loads(found.path.read_bytes())["pages"]
    assert "To the customer" in page["text"]


@pytest.mark.parametrize("share", [0.3, 0.9])
@pytest.mark.parametrize(("content_type", "mark"), [(PNG, b"IDAT"), (JPEG, b"\xff\xda")])
def test_one_that_is_damaged_within(tmp_path, content_type, mark, share):
    whole = bytearray(encoded(noise(), SUFFIXES[content_type].upper()))
    start = whole.index(mark)
    place = start + int((len(whole) - start) * share)
    whole[place : place + 400] = bytes(400)

    end = end_of(tmp_path, bytes(whole), content_type)

    assert end.code == "malformed" or end.page["ocr"]["engine"] == "rapidocr"


@pytest.mark.parametrize(
    "tags",
    [
        {"compression": 50_000},
        {"compression": 7},
        {"compression": 34_712},
        {"samples": 60_000},
        {"bits": 64},
        {"colour": 9},
        {"rows": 1},
        {"tile_width": 1 << 30, "tile_height": 1 << 30},
    ],
    ids=str,
)
def test_a_tiff_in_an_encoding_of_its_own(tmp_path, tags):
    end = end_of(tmp_path, tiff_of(bytes(40_000), width=200, height=200, **{"rows": 200, **tags}), TIFF)

    assert end.code in ("malformed", "too_large") or end.page["ocr"]["engine"] == "rapidocr"
