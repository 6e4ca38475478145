"""Recognises text with rapidocr: where the lines of a page are, their direction, and their text.

The models get one piece of a line at a time. They accept whole lines, but return random letters for long ones and need
more time and memory.
"""

from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from rapidocr import RapidOCR

from ade_extractor import limits, pictures, strips
from ade_extractor.lines import Fragment, Word, order, text_of, words_of
from ade_extractor.ocr import GreyPicture, OcrResult
from ade_extractor.strips import Grey, Quad, height_of, overlap, strip_of, width_of

# Sizes are chosen here, because the defaults of the library take gigabytes for a narrow image.
_CHOICES = {
    "Global.log_level": "critical",
    "Global.max_side_len": 100_000,
    "Global.min_side_len": 1,
    "Global.use_vertical_padding": False,
    "Det.limit_type": "max",
    "Det.limit_side_len": 100_000,
    # Lower than the default: a false line yields no text and is dropped.
    "Det.box_thresh": 0.3,
    # The smallest width to compute, for a height of 48.
    "Rec.rec_img_shape": [3, 48, 96],
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}
# Lines are searched for in two reduced sizes: the larger one separates close lines, the smaller one finds single words.
FINDING_PIXELS = (1_800_000, 400_000)
LEAST_FINDING_SIDE = 64
# Letters on a screenshot are half as large as on a scan.
MOST_ENLARGED = 2.0
# A line this much higher than wide runs vertically.
DOWN = 1.5
# The number of lines that decide which way up a page is.
VOTERS = 9
# Text below this confidence is dropped.
LEAST_CONFIDENCE = 0.5
# Limit for the total length of a page's lines, in multiples of their heights. 1500 words in small print take 2700.
MOST_OF_LINES = 4000
# The same limit for lines without text: pictures and noise.
MOST_IN_VAIN = 1000

# Its results have different types, depending on the request.
_engine: Any = RapidOCR(params=_CHOICES)
cv2.setNumThreads(1)


def read_image(path: Path, content_type: str, index: int) -> OcrResult:
    with limits.apart(limits.DRAWN_CPU_SECONDS):
        picture, is_on_its_side = pictures.decode(path, content_type, index)
    return read_picture(picture)._replace(is_on_its_side=is_on_its_side)


def read_picture(picture: GreyPicture) -> OcrResult:
    with limits.apart(limits.RECOGNISED_CPU_SECONDS):
        page = np.frombuffer(picture.data, np.uint8).reshape(picture.height, picture.stride)[:, : picture.width]
        quads = _find_lines(page)
        # Vertical lines are detected badly if there are many.
        is_turned = sum(width_of(quad) - height_of(quad) for quad in quads) < 0
        if is_turned:
            page = np.ascontiguousarray(np.rot90(page))
            quads = _find_lines(page)
        across = [quad for quad in quads if height_of(quad) < DOWN * width_of(quad)]
        down = [np.roll(quad, -1, axis=0) for quad in quads if height_of(quad) >= DOWN * width_of(quad)]
        reading = _Reading(page, is_turned=is_turned)
        rows = order(list(reading.fragments([*_turn_upright(page, across), *_turn_upright(page, down)])))
        return OcrResult("rapidocr", text_of(rows), words_of(rows), reading.confidence, reading.is_whole)


def _find_lines(page: Grey) -> list[Quad]:
    height, width = page.shape
    lines: list[Quad] = []
    scales = {min(MOST_ENLARGED, sqrt(pixels / (width * height))) for pixels in FINDING_PIXELS}
    for scale in sorted(scales, reverse=True):
        interpolation = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
        small = cv2.resize(page, None, fx=scale, fy=scale, interpolation=interpolation)
        below, beside = (max(0, LEAST_FINDING_SIDE - side) for side in small.shape)
        small = cv2.copyMakeBorder(small, 0, below, 0, beside, cv2.BORDER_REPLICATE)
        boxes = _engine(small, use_det=True, use_cls=False, use_rec=False).boxes
        quads = [] if boxes is None else [np.asarray(box, np.float64) / scale for box in boxes]
        lines += [quad for quad in quads if not any(overlap(quad, other) for other in lines)]
    return lines


def _turn_upright(page: Grey, quads: list[Quad]) -> list[Quad]:
    """Turn all lines upright. A few of them decide for the others."""
    votes = 0.0
    for quad in sorted(quads, key=width_of)[-VOTERS:]:
        ((label, score),) = _engine(strip_of(page, quad), use_det=False, use_cls=True, use_rec=False).cls_res
        votes += float(-score if label == "180" else score)
    return [np.roll(quad, 2, axis=0) for quad in quads] if votes < 0 else quads


class _Reading:
    """Recognises one page, line by line."""

    def __init__(self, page: Grey, *, is_turned: bool) -> None:
        self._page = page
        self._is_turned = is_turned
        self._left = float(MOST_OF_LINES)
        self._left_in_vain = float(MOST_IN_VAIN)
        self._characters = 0
        self._sure = 0.0

    @property
    def is_whole(self) -> bool:
        return min(self._left, self._left_in_vain) > 0

    @property
    def confidence(self) -> float | None:
        return round(self._sure / self._characters, 4) if self._characters else None

    def fragments(self, quads: list[Quad]) -> Iterator[Fragment]:
        along = np.zeros(2)
        if quads:
            # The direction of most text, which may be skewed.
            edges = [quad[1] - quad[0] for quad in quads]
            first = max(edges, key=lambda edge: float(np.linalg.norm(edge)))
            total = sum(edge for edge in edges if edge @ first > 0.9 * np.linalg.norm(edge) * np.linalg.norm(first))
            along = np.asarray(total / np.linalg.norm(total))
        downwards = np.array([-along[1], along[0]])
        for quad in quads:
            if self.is_whole and (words := list(self._words(quad))):
                middles = quad @ downwards
                yield Fragment(float((quad @ along).min()), float(middles.mean()), float(np.ptp(middles)), words)

    def _words(self, quad: Quad) -> Iterator[Word]:
        strip = strip_of(self._page, quad)
        ink = strips.ink_of(strip)
        if not ink.any():
            return
        height, width = strip.shape
        for start, end in strips.pieces(ink, height):
            length = end - start
            self._left -= length / height
            result = _engine(strip[:, start:end], use_det=False, use_cls=False, use_rec=True, return_word_box=True)
            texts = result.txts[0].split() if result.txts else []
            if not texts or result.scores[0] < LEAST_CONFIDENCE:
                self._left_in_vain -= length / height
                continue
            self._characters += len(result.txts[0])
            self._sure += len(result.txts[0]) * result.scores[0]
            info = result.word_results[0]
            centers = [(column + 0.5) * length / info.line_txt_len for columns in info.word_cols for column in columns]
            places = strips.places(texts, centers, ink[start:end])
            for text, (left, right) in zip(texts, places, strict=True):
                box = strips.box_of(quad, (start + left) / width, (start + right) / width, self._page)
                if self._is_turned:
                    box = 1 - box[3], box[0], 1 - box[1], box[2]
                yield Word(text, box)
