"""Unpacks images with Pillow, which comes with rapidocr: as people see them, and no larger than useful."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from PIL.Image import Resampling

from ade_extractor.ocr import GreyPicture, scale_for
from ade_extractor.pages import Picture
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


def decode(path: Path, content_type: str, index: int) -> tuple[GreyPicture, bool]:
    """Return an image in grey, and whether its metadata swaps width and height. Raises Trouble."""
    name = FORMATS[content_type]
    with reading(f"This {name} image"), Image.open(path, formats=[name]) as image:
        image.seek(index)
        is_on_its_side = image.getexif().get(_ORIENTATION) in _ON_ITS_SIDE
        scale = scale_for(*image.size, 1)
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        # This decodes a JPEG at a reduced size.
        image.draft("L", size)
        _check_size(image)
        upright = ImageOps.exif_transpose(_convert(image, size, "L"))
        return GreyPicture(upright.width, upright.height, upright.width, upright.tobytes()), is_on_its_side


def in_colour(path: Path, content_type: str, index: int, fit: Callable[[float, float], float]) -> Picture:
    """Return an image as people see it, scaled by what `fit` returns for its size. Raises Trouble."""
    name = FORMATS[content_type]
    with reading(f"This {name} image"), Image.open(path, formats=[name]) as image:
        if not 0 <= index < getattr(image, "n_frames", 1):
            raise Trouble("no_such_page", f"The file has no image {index + 1}.")
        image.seek(index)
        scale = fit(*image.size)
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        image.draft("RGB", size)
        _check_size(image)
        upright = ImageOps.exif_transpose(_convert(image, size, "RGB"))
        return Picture(upright.width, upright.height, upright.width * 3, 3, upright.tobytes())


def _check_size(image: Image.Image) -> None:
    pixels, each = image.width * image.height, _BYTES_PER_PIXEL.get(image.mode, 4)
    if pixels * (4 if image.has_transparency_data else each) > MOST_BYTES:
        limit = f"limit for its kind of colour: {MOST_BYTES // each:,}"
        problem = f"it has {image.width:,} by {image.height:,} pixels ({limit})"
        raise too_large("This image", problem, "Save it in a smaller size or in grey.")


def _convert(image: Image.Image, size: Size, mode: str) -> Image.Image:
    if image.mode.startswith(("I", "F")):
        # Map the range of an image with more than 256 greys to 0–255, because its ends can be anywhere.
        small = image.convert("F").resize(size, Resampling.BOX)
        values = np.nan_to_num(np.asarray(small), posinf=0, neginf=0)
        low, high = float(values.min()), float(values.max())
        return Image.fromarray(((values - low) * (255 / ((high - low) or 1))).astype(np.uint8)).convert(mode)
    if image.has_transparency_data:
        small = image.convert("RGBA").resize(size, Resampling.BOX)
        return Image.alpha_composite(Image.new("RGBA", size, "white"), small).convert(mode)
    return image.convert(mode).resize(size, Resampling.BOX)
