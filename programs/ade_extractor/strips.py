"""Cuts lines of text out of a page, levels them, and finds the ink and the gaps in them."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import cv2
import numpy as np

from ade_extractor.pages import Box

# In multiples of the height. Longer lines are cut between words.
LONGEST_PIECE = 16
# The difference between writing and paper, of 256 greys.
LEAST_CONTRAST = 24
# A column with less than this share of the line's contrast is a gap.
INK_SHARE = 0.25
# In multiples of the line's height. Narrower gaps are inside words.
GAP_SHARE = 0.1

Grey = np.ndarray[Any, np.dtype[np.uint8]]
Ink = np.ndarray[Any, np.dtype[np.bool_]]
# The corners of a line in clockwise order, starting where the text starts.
Quad = np.ndarray[Any, np.dtype[np.float64]]


def width_of(quad: Quad) -> float:
    return max(float(np.linalg.norm(quad[1] - quad[0])), float(np.linalg.norm(quad[2] - quad[3])))


def height_of(quad: Quad) -> float:
    return max(float(np.linalg.norm(quad[3] - quad[0])), float(np.linalg.norm(quad[2] - quad[1])))


def overlap(one: Quad, other: Quad) -> bool:
    """Return whether the upright bounding boxes overlap, which may also be true for skewed neighbours."""
    within = (one.min(axis=0) < other.max(axis=0)) & (other.min(axis=0) < one.max(axis=0))
    return bool(within.all())


def strip_of(page: Grey, quad: Quad) -> Grey:
    width, height = max(1, round(width_of(quad))), max(1, round(height_of(quad)))
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    transform = cv2.getPerspectiveTransform(quad.astype(np.float32), corners)
    return np.asarray(
        cv2.warpPerspective(page, transform, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE),
        np.uint8,
    )


def ink_of(strip: Grey) -> Ink:
    """Return for each column whether it contains ink."""
    contrast = np.ptp(strip, axis=0)
    most = float(np.percentile(contrast, 95))
    return np.asarray(contrast > max(INK_SHARE * most, LEAST_CONTRAST))


def pieces(ink: Ink, height: int) -> Iterator[tuple[int, int]]:
    """Yield pieces of a line, cut at the widest gap in the second half of each, or at its end without a gap."""
    longest = LONGEST_PIECE * height
    gaps = list(_gaps(ink, GAP_SHARE * height))
    start = 0
    while len(ink) - start > longest:
        near = [(end - begin, (begin + end) // 2) for begin, end in gaps]
        near = [gap for gap in near if start + longest // 2 < gap[1] <= start + longest]
        cut = max(near)[1] if near else start + longest
        yield start, cut
        start = cut
    yield start, len(ink)


def _gaps(ink: Ink, narrowest: float) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[True], ink, [True]]).astype(np.int8)))
    for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if end - begin >= narrowest:
            yield begin, end


def places(words: list[str], centers: list[float], ink: Ink) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each word: its first and last ink between the gaps to its neighbours."""
    borders = [0]
    for first in np.cumsum([len(word) for word in words])[:-1].tolist():
        # The widest gap between the centres of two letters, otherwise their middle.
        start, end = round(centers[first - 1]), round(centers[first])
        gaps = [(stop - begin, begin + stop) for begin, stop in _gaps(ink[start:end], 1)]
        borders.append(start + max(gaps)[1] // 2 if gaps else (start + end) // 2)
    for left, right in pairwise([*borders, len(ink)]):
        inked = np.flatnonzero(ink[left:right]).tolist()
        yield (left + inked[0], left + inked[-1] + 1) if inked else (left, right)


def box_of(quad: Quad, start: float, end: float, page: Grey) -> Box:
    """Return the box around a part of a line, given as fractions of the line, in fractions of the page."""
    above, below = quad[1] - quad[0], quad[2] - quad[3]
    corners = [quad[0] + start * above, quad[0] + end * above, quad[3] + start * below, quad[3] + end * below]
    height, width = page.shape
    shares = np.array(corners) / (width, height)
    (left, top), (right, bottom) = shares.min(axis=0).tolist(), shares.max(axis=0).tolist()
    return left, top, right, bottom
