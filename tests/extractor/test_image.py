import io
import struct

import pytest
from PIL import Image

from tests.extractor.extracting import JPEG, NOBODY, PNG, TIFF, extract, written

pytestmark = [pytest.mark.once, pytest.mark.long]

KINDS = {"PNG": PNG, "JPEG": JPEG, "TIFF": TIFF}


def image(kind, size=(40, 30), **options):
    file = io.BytesIO()
    Image.effect_noise(size, 50).save(file, kind, **options)
    return file.getvalue()


def outcome_of(tmp_path, content, content_type):
    return extract(written(tmp_path / "image", content), content_type, without=NOBODY)


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_is_a_page_without_text(tmp_path, kind):
    (page,) = outcome_of(tmp_path, image(kind), KINDS[kind]).pages

    assert (page["has_text"], page["text"], page["words"], page["images"]) == (False, "", [], 1)
    assert (page["width"], page["height"]) == (40, 30)


@pytest.mark.parametrize(
    "options", [{"progressive": True}, {"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0"}, {"comment": b"hi"}]
)
def test_kinds_of_jpeg(tmp_path, options):
    (page,) = outcome_of(tmp_path, image("JPEG", **options), JPEG).pages

    assert (page["width"], page["height"]) == (40, 30)


def test_a_fax_of_several_pages(tmp_path):
    others = [Image.new("L", (10, n)) for n in (20, 30)]
    content = image("TIFF", save_all=True, append_images=others)

    outcome = outcome_of(tmp_path, content, TIFF)

    assert [(page["number"], page["height"]) for page in outcome.pages] == [(1, 30), (2, 20), (3, 30)]
    assert [page["number"] for page in extract(tmp_path / "image", TIFF, 2, 2, without=NOBODY).pages] == [2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.01, 0.2, 0.6, 0.95])
def test_one_that_is_cut_off(tmp_path, kind, share):
    whole = image(kind, (200, 200))

    assert outcome_of(tmp_path, whole[: int(len(whole) * share)], KINDS[kind]).code == "malformed"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "content", [b"", b"not an image" * 99, b"%PDF-1.7", b"\x89PNG", b"II*\0", b"\xff\xd8\xff", b"MM\0*" + bytes(99)]
)
def test_one_that_is_none(tmp_path, kind, content):
    assert outcome_of(tmp_path, content, KINDS[kind]).code == "malformed"


def test_one_that_unpacks_to_gigabytes(tmp_path):
    bomb = image("PNG").replace(struct.pack(">II", 40, 30), struct.pack(">II", 100_000, 100_000))

    assert outcome_of(tmp_path, bomb, PNG).code == "too_large"


def test_pages_that_follow_each_other_without_end(tmp_path):
    entries = struct.pack("<HHIIHHII", 256, 3, 1, 5, 257, 3, 1, 5)
    loop = b"II*\0" + struct.pack("<IH", 8, 2) + entries + struct.pack("<I", 8)

    assert outcome_of(tmp_path, loop, TIFF).code == "malformed"
