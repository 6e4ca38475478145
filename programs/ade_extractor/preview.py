"""Draws one page for a screen as a PNG that any browser shows. Runs in the child that reads documents."""

import importlib
import struct
import zlib
from importlib.util import find_spec
from math import sqrt
from pathlib import Path

from ade_extractor import DRAWN, PREVIEW, READERS, image
from ade_extractor.pages import Picture
from ade_extractor.trouble import Trouble

WIDTH = 1000
# The height of a till receipt; longer pages are drawn smaller.
MOST_HEIGHT = 3000
MOST_PIXELS = 2_000_000
# Keeps small images, such as a stamp, from being drawn as large as a page.
MOST_SCALE = 4.0
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _COLOUR = 0, 2


def write(path: Path, content_type: str, number: int, directory: Path) -> tuple[int, int]:
    """Write the picture and return its size. Raises Trouble."""
    if content_type not in DRAWN:
        raise Trouble("unsupported", f"Only PDFs, XML files and images can be drawn; {content_type} is shown as text.")
    if content_type in ("application/pdf", "application/xml"):
        picture: Picture = importlib.import_module(READERS[content_type]).draw(path, number, fit)
    else:
        # Check that the image is complete and not too large.
        image.read(path, content_type, 1, 1)
        if not find_spec("PIL"):
            message = "Pillow is not installed, so images cannot be drawn. Install requirements/ocr.txt."
            raise Trouble("unsupported", message)
        picture = importlib.import_module("ade_extractor.pictures").in_colour(path, content_type, number - 1, fit)
    (directory / PREVIEW).write_bytes(encode(picture))
    return picture.width, picture.height


def fit(width: float, height: float) -> float:
    """Return the scale for a page of this size."""
    return min(WIDTH / width, MOST_HEIGHT / height, sqrt(MOST_PIXELS / (width * height)), MOST_SCALE)


def encode(picture: Picture) -> bytes:
    """Return a PNG, in grey if the picture has no colour, which takes a third of the size."""
    rows = []
    length = picture.width * picture.channels
    for start in range(0, picture.height * picture.stride, picture.stride):
        # Leave out padding and an unused channel.
        row = picture.data[start : start + length]
        if picture.channels == 4:
            colours = bytearray(len(row) // 4 * 3)
            for channel in range(3):
                colours[channel::3] = row[channel::4]
            row = bytes(colours)
        rows.append(row)
    is_grey = picture.channels == 1 or all(row[0::3] == row[1::3] == row[2::3] for row in rows)
    if is_grey and picture.channels > 1:
        rows = [row[0::3] for row in rows]
    header = struct.pack(">IIBBBBB", picture.width, picture.height, 8, _GREY if is_grey else _COLOUR, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows), 6)
    return _SIGNATURE + _part(b"IHDR", header) + _part(b"IDAT", body) + _part(b"IEND", b"")


def _part(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
