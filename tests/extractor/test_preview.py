"""The image renderer without its child process. tests/documents/test_previews.py covers PDFs, because pdfium sets
limits for its whole process, which must not be the one of the tests.
"""

import io
import struct

import pytest

from ade_extractor import preview
from ade_extractor.pages import Picture
from ade_extractor.trouble import Trouble
from tests.documents.samples import TXT
from tests.extractor.extracting import JPEG, PNG, TIFF, written

pytestmark = [pytest.mark.once, pytest.mark.long]

image = pytest.importorskip("PIL.Image")

TYPES = {PNG: "PNG", JPEG: "JPEG", TIFF: "TIFF"}


def picture(path, content_type, number=1):
    preview.write(path, content_type, number, path.parent)
    return seen((path.parent / "preview.png").read_bytes())


def seen(drawn):
    return image.open(io.BytesIO(drawn))


def file_of(tmp_path, content_type, picture, **options):
    file = io.BytesIO()
    picture.save(file, TYPES[content_type], **options)
    return written(tmp_path / "file", file.getvalue())


def test_what_has_no_colour_is_grey():
    grey = seen(preview.encode(Picture(2, 1, 6, 3, b"\1\1\1\2\2\2")))
    colour = seen(preview.encode(Picture(2, 1, 8, 3, b"\xff\0\0\0\0\xff--")))

    assert (grey.mode, [grey.getpixel((x, 0)) for x in (0, 1)]) == ("L", [1, 2])
    assert (colour.mode, [colour.getpixel((x, 0)) for x in (0, 1)]) == ("RGB", [(255, 0, 0), (0, 0, 255)])


def test_rows_may_be_filled_up_and_have_a_channel_that_means_nothing():
    drawn = seen(preview.encode(Picture(2, 2, 9, 4, b"\1\2\3x\4\5\6x-" + b"\7\7\7x\x08\x08\x08x-")))

    assert [drawn.getpixel((x, y)) for y in (0, 1) for x in (0, 1)] == [(1, 2, 3), (4, 5, 6), (7, 7, 7), (8, 8, 8)]


@pytest.mark.parametrize("content_type", TYPES)
@pytest.mark.parametrize("mode", ["RGB", "L", "1"])
def test_images_are_made_as_wide_as_a_screen(tmp_path, content_type, mode):
    if content_type == JPEG and mode == "1":
        mode = "L"
    wide = file_of(tmp_path, content_type, image.new(mode, (2000, 600)))

    assert picture(wide, content_type).size == (1000, 300)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "I;16", "CMYK", "F"])
def test_images_of_any_kind_of_colour_are_shown(tmp_path, mode):
    kind = TIFF if mode in ("CMYK", "F") else PNG

    assert picture(file_of(tmp_path, kind, image.new(mode, (50, 20))), kind).size == (200, 80)


def test_an_image_that_lies_on_its_side_is_turned(tmp_path):
    marked = image.new("RGB", (400, 200))
    exif = image.Exif()
    exif[274] = 6

    assert picture(file_of(tmp_path, JPEG, marked, exif=exif), JPEG).size == (500, 1000)


def test_each_image_of_a_file_is_a_page(tmp_path):
    pages = [image.new("RGB", (100, 100), colour) for colour in ("red", "blue")]
    file = file_of(tmp_path, TIFF, pages[0], save_all=True, append_images=pages[1:])

    assert picture(file, TIFF, 2).getpixel((5, 5)) == (0, 0, 255)
    with pytest.raises(Trouble, match="has no image 3"):
        preview.write(file, TIFF, 3, tmp_path)


@pytest.mark.parametrize("size", [(1, 1), (10, 100_000), (1e6, 0.001), (595, 842), (5000, 5000)])
def test_no_picture_is_larger_than_a_screen_needs(size):
    scale = preview.fit(*size)

    assert size[0] * scale <= 1000.5
    assert size[1] * scale <= 3000.5
    assert size[0] * size[1] * scale**2 <= preview.MOST_PIXELS * 1.01


def test_what_is_text_is_not_drawn(tmp_path):
    with pytest.raises(Trouble, match="is shown as text"):
        preview.write(written(tmp_path / "a.txt", TXT), "text/plain", 1, tmp_path)


def test_an_image_that_claims_to_be_huge_is_not_unpacked(tmp_path):
    data = bytearray(file_of(tmp_path, PNG, image.new("L", (9, 9))).read_bytes())
    data[16:24] = struct.pack(">II", 100_000, 100_000)

    with pytest.raises(Trouble, match=r"100,000 by 100,000 pixels \(limit: 200,000,000"):
        preview.write(written(tmp_path / "huge", bytes(data)), PNG, 1, tmp_path)
