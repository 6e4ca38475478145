"""Unpacks images with Pillow, which comes with rapidocr: as people see them, and no larger than useful."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from PIL.Image import Resampling

from ade_extractor.ocr import Picture, scale_for
from ade_extractor.pages import Drawn
from ade_extractor.trouble import Trouble, reading, too_large

FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/tiff": "TIFF"}
# Memory for one image: A3 in colour at 600 dpi, or A4 in grey at 1200.
MOST_BYTES = 320 << 20
# Other modes use four bytes.
_BYTES_PER_PIXEL = {"1": 1, "L": 1, "P": 1}
_ORIENTATION = 274
_ON_ITS_SIDE = (5, 6, 7, 8)
# MOST_BYTES replaces Pillow's own limit.
Image.MAX_IMAGE_PIXELS = None

Size = tuple[int, int]


def decode(path: Path, content_type: str, index: int) -> tuple[Picture, bool]:
    """Return an image in grey, and whether its metadata swaps width and height. Raises Trouble."""
    name = FORMATS[content_type]
    with reading(f"This {name} image"), Image.open(path, formats=[name]) as image:
        image.seek(index)
        is_on_its_side = image.getexif().get(_ORIENTATION) in _ON_ITS_SIDE
        scale = scale_for(*image.size, 1)
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        # This decodes a JPEG at a reduced size.
        image.draft("L", size)
        _look_at(image)
        seen = ImageOps.exif_transpose(_grey(image, size))
        return Picture(seen.width, seen.height, seen.width, seen.tobytes()), is_on_its_side


def in_colour(path: Path, content_type: str, index: int, fit: Callable[[float, float], float]) -> Drawn:
    """Return an image as people see it, scaled by what `fit` returns for its size. Raises Trouble."""
    name = FORMATS[content_type]
    with reading(f"This {name} image"), Image.open(path, formats=[name]) as image:
        if not 0 <= index < getattr(image, "n_frames", 1):
            raise Trouble("no_such_page", f"The file has no image {index + 1}.")
        image.seek(index)
        scale = fit(*image.size)
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        image.draft("RGB", size)
        _look_at(image)
        seen = ImageOps.exif_transpose(_coloured(image, size))
        return Drawn(seen.width, seen.height, seen.width * 3, 3, seen.tobytes())


def _look_at(image: Image.Image) -> None:
    pixels, each = image.width * image.height, _BYTES_PER_PIXEL.get(image.mode, 4)
    if pixels * (4 if image.has_transparency_data else each) > MOST_BYTES:
        limit = f"limit for its kind of colour: {MOST_BYTES // each:,}"
        found = f"it has {image.width:,} by {image.height:,} pixels ({limit})"
        raise too_large("This image", found, "Save it in a smaller size or in grey.")


def _grey(image: Image.Image, size: Size) -> Image.Image:
    if image.mode.startswith(("I", "F")):
        return _stretched(image, size)
    if image.has_transparency_data:
        small = image.convert("RGBA").resize(size, Resampling.BOX)
        return Image.alpha_composite(Image.new("RGBA", size, "white"), small).convert("L")
    return image.convert("L").resize(size, Resampling.BOX)


def _coloured(image: Image.Image, size: Size) -> Image.Image:
    if image.mode.startswith(("I", "F")):
        return _stretched(image, size).convert("RGB")
    if image.has_transparency_data:
        small = image.convert("RGBA").resize(size, Resampling.BOX)
        return Image.alpha_composite(Image.new("RGBA", size, "white"), small).convert("RGB")
    return image.convert("RGB").resize(size, Resampling.BOX)


def _stretched(image: Image.Image, size: Size) -> Image.Image:
    """Map the range of an image with more than 256 greys to 0–255, because its ends can be anywhere."""
    small = image.convert("F").resize(size, Resampling.BOX)
    values = np.nan_to_num(np.asarray(small), posinf=0, neginf=0)
    low, high = float(values.min()), float(values.max())
    return Image.fromarray(((values - low) * (255 / ((high - low) or 1))).astype(np.uint8))
