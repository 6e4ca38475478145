"""Finds the ruling lines of a PDF page: drawn lines, thin boxes, and the edges of boxes and coloured areas."""

import ctypes
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

# A page with more objects or rulings is a drawing. It has no tables with rulings then, and takes no longer.
MOST_OBJECTS = 20_000
MOST_RULINGS = 3_000
# A path with more points is a drawing.
MOST_POINTS = 64
MOST_NESTED_FORMS = 3
# In points: the width of the thickest ruling, and the length of the shortest.
THICKEST = 4.0
SHORTEST = 5.0
_WHITE = 250

# Left, top, right and bottom, upwards from any origin: a line has no width or no height.
Ruling = tuple[float, float, float, float]
_Matrix = tuple[float, float, float, float, float, float]
_SAME: _Matrix = (1, 0, 0, 1, 0, 0)


def find(page: pypdfium2.PdfPage) -> list[Ruling]:
    """Return the horizontal and vertical rulings, or none if the page has too many."""
    rulings: list[Ruling] = []
    for path, matrix in _paths(page):
        rulings += _of_path(path, matrix)
        if len(rulings) > MOST_RULINGS:
            return []
    return rulings


def _paths(page: pypdfium2.PdfPage) -> Iterator[tuple[Any, _Matrix]]:
    budget = MOST_OBJECTS
    groups: list[tuple[Any, int, _Matrix]] = [(page, 0, _SAME)]
    while groups:
        group, depth, matrix = groups.pop()
        count_objects = pdfium.FPDFFormObj_CountObjects if depth else pdfium.FPDFPage_CountObjects
        get_object = pdfium.FPDFFormObj_GetObject if depth else pdfium.FPDFPage_GetObject
        count = count_objects(group)
        budget -= count
        if budget < 0:
            return
        for index in range(count):
            each = get_object(group, index)
            kind = pdfium.FPDFPageObj_GetType(each)
            if kind == pdfium.FPDF_PAGEOBJ_PATH:
                yield each, matrix
            elif kind == pdfium.FPDF_PAGEOBJ_FORM and depth < MOST_NESTED_FORMS:
                groups.append((each, depth + 1, _times(_matrix(each), matrix)))


def _of_path(path: Any, matrix: _Matrix) -> Iterator[Ruling]:
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDFPath_GetDrawMode(path, fill, stroke)
    count = pdfium.FPDFPath_CountSegments(path)
    if not 2 <= count <= MOST_POINTS or not (stroke.value or (fill.value and _has_colour(path))):
        return
    points = _points(path, count, _times(_matrix(path), matrix))
    across, along = [x for x, _, _ in points], [y for _, y, _ in points]
    left, right, bottom, top = min(across), max(across), min(along), max(along)
    # A thin box is a line along its middle.
    if top - bottom <= THICKEST:
        if right - left >= SHORTEST:
            yield left, (top + bottom) / 2, right, (top + bottom) / 2
        return
    if right - left <= THICKEST:
        if top - bottom >= SHORTEST:
            yield (left + right) / 2, top, (left + right) / 2, bottom
        return
    for (x, y, _), (next_x, next_y, is_drawn) in pairwise(points):
        if not is_drawn:
            continue
        if abs(y - next_y) <= 1 and abs(x - next_x) >= SHORTEST:
            yield min(x, next_x), (y + next_y) / 2, max(x, next_x), (y + next_y) / 2
        elif abs(x - next_x) <= 1 and abs(y - next_y) >= SHORTEST:
            yield (x + next_x) / 2, max(y, next_y), (x + next_x) / 2, min(y, next_y)


def _points(path: Any, count: int, matrix: _Matrix) -> list[tuple[float, float, bool]]:
    """Return the points of a path, and whether a straight line leads to each. A closed part returns to its start."""
    a, b, c, d, e, f = matrix
    points: list[tuple[float, float, bool]] = []
    start = (0.0, 0.0)
    x, y = ctypes.c_float(), ctypes.c_float()
    for index in range(count):
        segment = pdfium.FPDFPath_GetPathSegment(path, index)
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        at = (a * x.value + c * y.value + e, b * x.value + d * y.value + f)
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_MOVETO:
            start = at
        points.append((*at, kind == pdfium.FPDF_SEGMENT_LINETO))
        if pdfium.FPDFPathSegment_GetClose(segment):
            points.append((*start, True))
    return points


def _has_colour(path: Any) -> bool:
    """Return whether the area differs from white paper."""
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    if not pdfium.FPDFPageObj_GetFillColor(path, red, green, blue, alpha):
        return True
    return alpha.value > 0 and min(red.value, green.value, blue.value) < _WHITE


def _matrix(each: Any) -> _Matrix:
    matrix = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(each, matrix):
        return _SAME
    return matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f


def _times(one: _Matrix, other: _Matrix) -> _Matrix:
    """Return the matrix that applies one matrix and then the other."""
    a, b, c, d, e, f = one
    p, q, r, s, t, u = other
    return a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s, e * p + f * r + t, e * q + f * s + u
