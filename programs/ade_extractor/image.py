"""Checks images (number, size, completeness) and recognises their text if an OCR engine is installed."""

import struct
from collections.abc import Iterator
from pathlib import Path

from ade_extractor import limits, ocr
from ade_extractor.pages import Page, Reading
from ade_extractor.trouble import Trouble, malformed, too_large

# A page in colour at 1200 dpi. Larger images unpack to gigabytes.
MOST_PIXELS = 200_000_000
MOST_BYTES = 512 << 20
_AGAIN = "Upload it again."
_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_ALONE = frozenset((0x01, *range(0xD0, 0xD8)))
_TIFF_WIDTH, _TIFF_HEIGHT = 256, 257
# Tags with the offsets and the lengths of an image's parts.
_TIFF_PLACES = ((273, 279), (324, 325))
_TIFF_FORMATS = {3: "H", 4: "I"}
MOST_TIFF_PARTS = 100_000

Sizes = list[tuple[int, int]]


def read(path: Path, content_type: str, first: int, last: int) -> Reading:
    if path.stat().st_size > MOST_BYTES:
        raise too_large("This image", f"it has more than {MOST_BYTES:,} bytes", "Save it in a smaller size.")
    measure, what = {
        "image/png": (_measure_png, "This PNG image"),
        "image/jpeg": (_measure_jpeg, "This JPEG image"),
        "image/tiff": (_measure_tiff, "This TIFF image"),
    }[content_type]
    try:
        sizes = measure(path.read_bytes())
    except (struct.error, IndexError, KeyError) as error:
        raise malformed(what, "it is cut off", _AGAIN) from error
    for width, height in sizes:
        if not 0 < width * height <= MOST_PIXELS:
            problem = f"it has {width:,} by {height:,} pixels (limit: {MOST_PIXELS:,})"
            raise too_large(what, problem, "Save it in a smaller size.")

    def read_pages() -> Iterator[Page]:
        start = max(first, 1)
        for number in range(start, min(last, len(sizes)) + 1):
            limits.allow_cpu(number - start)
            width, height = sizes[number - 1]
            page = Page(number, "", width, height, images=1)
            if ocr.engine():
                page = ocr.read_image(path, content_type, number - 1, (width, height)).apply_to(page)
            yield page

    return Reading(len(sizes), read_pages())


def _measure_png(data: bytes) -> Sizes:
    if not data.startswith(_PNG) or data[12:16] != b"IHDR":
        raise malformed("This PNG image", "its header is missing", _AGAIN)
    place = len(_PNG)
    while data[place + 4 : place + 8] != b"IEND":
        (length,) = struct.unpack_from(">I", data, place)
        place += 12 + length
    width, height = struct.unpack_from(">II", data, 16)
    return [(width, height)]


def _measure_jpeg(data: bytes) -> Sizes:
    if not data.startswith(b"\xff\xd8\xff"):
        raise malformed("This JPEG image", "its header is missing", _AGAIN)
    place, size = 2, None
    while data[place + 1] != 0xDA:
        marker = data[place + 1]
        if data[place] != 0xFF or marker == 0xD9:
            raise malformed("This JPEG image", "it is damaged", _AGAIN)
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, place + 5)
            size = (width, height)
        # Padding may precede a marker.
        place += (
            1 if marker == 0xFF else 2 if marker in _JPEG_ALONE else 2 + struct.unpack_from(">H", data, place + 2)[0]
        )
    if size is None or data.find(b"\xff\xd9", place) < 0:
        raise malformed("This JPEG image", "it is cut off", _AGAIN)
    return [size]


def _measure_tiff(data: bytes) -> Sizes:
    order = {b"II": "<", b"MM": ">"}.get(data[:2])
    if order is None:
        raise malformed("This TIFF image", "its header is missing", _AGAIN)
    version, place = struct.unpack_from(f"{order}HI", data, 2)
    if version == 43:
        message = "This image is a BigTIFF, which is not supported. Save it as a TIFF of up to 4 GB."
        raise Trouble("unsupported", message)
    sizes: Sizes = []
    seen: set[int] = set()
    while place:
        if place in seen or len(seen) >= limits.MOST_PAGES:
            raise malformed("This TIFF image", "its list of pages has no end")
        seen.add(place)
        (count,) = struct.unpack_from(f"{order}H", data, place)
        tags = {}
        end = place + 2 + 12 * count
        for entry in range(place + 2, end, 12):
            tag, kind, amount = struct.unpack_from(f"{order}HHI", data, entry)
            if kind not in _TIFF_FORMATS or amount > MOST_TIFF_PARTS:
                continue
            letters = f"{order}{amount}{_TIFF_FORMATS[kind]}"
            at = entry + 8
            if struct.calcsize(letters) > 4:
                (at,) = struct.unpack_from(f"{order}I", data, at)
            tags[tag] = struct.unpack_from(letters, data, at)
        for starts, lengths in _TIFF_PLACES:
            parts = zip(tags.get(starts, ()), tags.get(lengths, ()), strict=False)
            if max((start + length for start, length in parts), default=0) > len(data):
                raise malformed("This TIFF image", "it is cut off", _AGAIN)
        (place,) = struct.unpack_from(f"{order}I", data, end)
        sizes.append((tags[_TIFF_WIDTH][0], tags[_TIFF_HEIGHT][0]))
    if version != 42 or not sizes:
        raise malformed("This TIFF image", "it has no pages")
    return sizes
