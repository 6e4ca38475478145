"""Learns from one value how a sender prints a field, and finds the field on another document of the sender.

A lesson is a JSON object. `kind` says how values are read, `as` how they are written. Each of its `ways` describes one
place where the value was printed: the label to its left, the heading above it, and its place on the page. A value that
is the sender's own, such as its IBAN, is kept as `value`, because it is the same on the next document.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import Any, NamedTuple

from ade_understanding.learning.candidates import Candidate, Document
from ade_understanding.learning.hints import factor
from ade_understanding.learning.layout import Box, sheets_of
from ade_understanding.learning.spellings import NUMBERS, READERS, kind_of, whole

# The sender's own particulars.
OWN = frozenset({"seller", "seller_address", "vat_id", "tax_number", "iban", "bic", "email", "phone", "fax"})
# What is often the same on all documents of a sender in a workspace, but is not the sender's. Only a digest is kept.
OFTEN_SAME = frozenset({"buyer", "buyer_address", "buyer_vat_id", "customer_number"})
MOST_WAYS = 4
# A place counts if it is at least this similar to the one that was learned.
ALIKE_FROM = 0.6
_LABEL_ALIKE = 0.6
_HEADING_ALIKE = 0.8
# Parts of the page by which a place may be off, to the side and in height.
_X_ROOM, _Y_ROOM, _TEXT_ROOM = 0.06, 0.12, 0.03
_NEAR = 0.7
# Part of the length of a number by which it may be longer or shorter.
_LENGTH_ROOM = 0.6
# Words of a label count the less, the further they are from the value.
_FADE = 0.6
# Scores that differ by less than this are equal.
_TIE = 0.05

Method = Mapping[str, Any]


class Found(NamedTuple):
    value: str
    normal: str
    page: int
    box: Box
    # From 0 to 1: how similar the place is, and how much the places agree.
    quality: float


def document_of(pages: Sequence[Mapping[str, Any]]) -> Document:
    """Return a document for `learn` and `find`. `pages` are as `documents/words.py` stores them."""
    return Document(sheets_of(pages))


def learn(document: Document, field: str, value: str, kind: str) -> dict[str, Any] | None:
    """Return how the document prints a value, or None if it is printed nowhere."""
    value = value.strip()
    kind = kind_of(value, kind)
    read = whole(value, kind) if kind in READERS else None
    places = document.with_value(kind, value, read.normal if read else "")
    if not value or not places:
        return None
    method: dict[str, Any] = {"kind": kind, "as": "normal" if _is_normal(value, kind) else "printed"}
    if kind in ("amount", "decimal") and read:
        method["currency"] = read.currency
    if field in OWN:
        method["value"] = value
    elif field in OFTEN_SAME:
        method["digest"] = _digest(places[0].normal)
    ways: list[dict[str, Any]] = []
    for place in sorted(places, key=partial(_worth, field), reverse=True):
        way = _way(document, kind, place) | {"fit": factor(field, _label(place))}
        if len(ways) < MOST_WAYS and way not in ways:
            ways.append(way)
    return {**method, "ways": ways}


def find(document: Document, method: Method) -> Found | None:
    """Return the value of the lesson's field on this document, or None if the lesson finds none."""
    kind = str(method["kind"])
    if own := method.get("value"):
        read = whole(own, kind) if kind in READERS else None
        if places := document.with_value(kind, own, read.normal if read else ""):
            best = max(places, key=partial(_worth, ""))
            return Found(own, best.normal, best.sheet.number, best.box, 1.0)
    if kind == "text" and (same := _with_digest(document, method)):
        return same
    votes: dict[str, list[tuple[float, Candidate]]] = defaultdict(list)
    total = 0.0
    for way in method["ways"]:
        if best_of_way := _best(document, kind, way):
            score, candidate = best_of_way
            weight = score * _weight(way)
            total += weight
            votes[candidate.normal].append((weight, candidate))
    if not votes:
        return _with_digest(document, method)
    normal, voices = max(votes.items(), key=lambda each: sum(weight for weight, _ in each[1]))
    agreement = sum(weight for weight, _ in voices) / total
    candidate = max(voices, key=lambda each: each[0])[1]
    return Found(_written(candidate, method), normal, candidate.sheet.number, candidate.box, round(agreement, 3))


def is_same(one: str, other: str, kind: str) -> bool:
    """Return whether two spellings have the same value."""
    if kind in READERS:
        first, second = whole(one, kind), whole(other, kind)
        return bool(first and second and first.normal == second.normal)
    return "".join(filter(str.isalnum, one)).casefold() == "".join(filter(str.isalnum, other)).casefold()


def without_wrong_ways(document: Document, method: Method, value: str) -> dict[str, Any]:
    """Return the lesson with only those places that give this value, or all of them if none does."""
    kind = str(method["kind"])
    right = [
        way
        for way in method["ways"]
        if (found := _best(document, kind, way)) and is_same(_written(found[1], method), value, kind)
    ]
    silent = [way for way in method["ways"] if _best(document, kind, way) is None]
    return {**method, "ways": [*right, *silent] if right else list(method["ways"])}


def _digest(normal: str) -> str:
    return hashlib.sha256(normal.encode()).hexdigest()[:24]


def _with_digest(document: Document, method: Method) -> Found | None:
    """Return the place where the learned value itself is printed again."""
    if digest := method.get("digest"):
        for way in method["ways"]:
            for each in _of_way(document, str(method["kind"]), way):
                if _digest(each.normal) == digest:
                    return Found(_written(each, method), each.normal, each.sheet.number, each.box, 1.0)
    return None


def _is_normal(value: str, kind: str) -> bool:
    """Return whether a person or the machine wrote the value in ADE's own form."""
    if kind == "date":
        return value[:4].isdigit()
    return kind in ("amount", "decimal") or (kind in NUMBERS and " " not in value)


def _worth(field: str, place: Candidate) -> tuple[float, float, float]:
    """Order places by how well they can be found again: with a label that fits the field, in a cell of its own."""
    words, skipped = place.left
    label = 3.0 if words and not skipped else 2.0 if words else 1.5 if place.above else 1.0
    return label * factor(field, _label(place)), place.starts_cell + place.ends_cell, -place.sheet.front


def _label(place: Candidate) -> list[str]:
    return place.left[0] or place.above


def _way(document: Document, kind: str, place: Candidate) -> dict[str, Any]:
    words, skipped = place.left
    left, top, right, bottom = place.box
    first_piece = place.pieces[0]
    way: dict[str, Any] = {
        "left": words,
        "skip": skipped,
        "above": place.above,
        "x": [round(left, 4), round(right, 4)],
        "y": round((top + bottom) / 2, 4),
        "top": round(top, 4),
        "text": kind not in READERS and kind not in NUMBERS,
        "front": place.sheet.front,
        "back": place.sheet.back,
        "inside": not place.starts_cell,
        "end": place.ends_cell,
        "words": len(first_piece[0].text[first_piece[1] : first_piece[2]].split()),
        "lines": len(place.pieces),
        # The length of a number; other values have any.
        "length": len(place.normal) if kind in NUMBERS else 0,
        "letters": any(map(str.isalpha, place.text)),
        "style": place.style,
    }
    alike = [each for each in _of_way(document, kind, way) if _score(way, each) > 1 - _TIE]
    same = [each for each in alike if each.box == place.box]
    way["from_end"] = len(alike) - alike.index(same[0]) if same else 1
    way["alike"] = len(alike)
    return way


def _weight(way: Mapping[str, Any]) -> float:
    """Return how much a place says: one with a label more than one with only a heading, or nothing."""
    label = (3.0 if not way["skip"] else 1.5) if way["left"] else 1.5 if way["above"] else 1.0
    return float(way["fit"]) * label


def _of_way(document: Document, kind: str, way: Mapping[str, Any]) -> Iterable[Candidate]:
    if kind in READERS or kind in NUMBERS:
        return document.candidates(kind, way["words"])
    return document.texts(way["lines"], is_label_inside=way["inside"], to_end=way["end"], words=way["words"])


def _best(document: Document, kind: str, way: Mapping[str, Any]) -> tuple[float, Candidate] | None:
    """Return the candidate that is most like the place that was learned, with its score."""
    scored = [(score, each) for each in _of_way(document, kind, way) if (score := _score(way, each)) >= ALIKE_FROM]
    if not scored:
        return None
    top = max(score for score, _ in scored)
    ties = [each for each in scored if each[0] > top - _TIE]
    if len({each.normal for _, each in ties}) == 1:
        return ties[0]
    # Several values stand in such places. If it was so before, take the one in the same position, counted from the end.
    if len(ties) == way["alike"] or way["alike"] > 1:
        return ties[max(len(ties) - int(way["from_end"]), 0)]
    score, nearest = min(ties, key=lambda each: _distance(way, each[1]))
    return score * 0.9, nearest


def _score(way: Mapping[str, Any], each: Candidate) -> float:
    """Return how similar a candidate's place is, from 0 to 1."""
    if way["style"] and each.style and each.style != way["style"]:
        return 0.0
    if way["length"] and not _has_shape(way, each):
        return 0.0
    if way["inside"] == each.starts_cell:
        return 0.0
    left, top, right, bottom = each.box
    if way["text"]:
        # A text has no form of its own, so it must begin in the same place.
        x, y = _closeness(left, way["x"][0], _TEXT_ROOM), _closeness(top, way["top"], _TEXT_ROOM)
    else:
        x = max(_closeness(left, way["x"][0], _X_ROOM), _closeness(right, way["x"][1], _X_ROOM))
        y = _closeness((top + bottom) / 2, way["y"], _Y_ROOM)
    is_same_page = each.sheet.front == way["front"] or each.sheet.back == way["back"]
    if way["left"]:
        words, skipped = each.left
        label = _alike(words, way["left"]) * (1.0 if skipped == way["skip"] else 0.7)
        heading = _alike(each.above, way["above"]) if way["above"] else 1.0
        if label < _LABEL_ALIKE:
            return 0.0
        return float(6 * label + heading + x + 0.5 * y + 0.5 * is_same_page) / 9
    if not is_same_page or each.left[0]:
        return 0.0
    heading = _alike(each.above, way["above"])
    if way["above"] and heading >= _HEADING_ALIKE and x > 0 and not way["text"]:
        return (4 * heading + 2 * x + y) / 7
    return (x + y) / 2 if min(x, y) >= _NEAR else 0.0


def _has_shape(way: Mapping[str, Any], each: Candidate) -> bool:
    """Return whether a number is about as long, and has letters if the learned one has."""
    room = max(_LENGTH_ROOM * way["length"], 2)
    is_long_enough: bool = abs(len(each.normal) - way["length"]) <= room
    return is_long_enough and any(map(str.isalpha, each.text)) == way["letters"]


def _alike(words: Sequence[str], learned: Sequence[str]) -> float:
    """Compare labels from their last words, which are next to the value."""
    score = total = 0.0
    weight = 1.0
    for number in range(1, max(len(words), len(learned)) + 1):
        total += weight
        if number <= min(len(words), len(learned)) and _is_like(words[-number], learned[-number]):
            score += weight
        weight *= _FADE
    return score / total if total else 1.0


def _is_like(one: str, other: str) -> bool:
    """Return whether two words are the same, except for a letter that was recognised wrongly in a long word."""
    return one == other or (min(len(one), len(other)) >= 6 and SequenceMatcher(None, one, other).ratio() >= 0.85)


def _closeness(one: float, other: float, room: float) -> float:
    return max(1 - abs(one - other) / room, 0.0)


def _distance(way: Mapping[str, Any], each: Candidate) -> float:
    left, top, right, bottom = each.box
    aside = min(abs(left - way["x"][0]), abs(right - way["x"][1]))
    return float(abs((top + bottom) / 2 - way["y"]) + aside)


def _written(each: Candidate, method: Method) -> str:
    """Return a value in the form in which it was taught."""
    kind = method["kind"]
    if kind == "date":
        return each.normal if method["as"] == "normal" else each.text
    if kind == "amount":
        return f"{each.normal} {each.currency or method.get('currency', '')}".strip()
    if kind == "decimal":
        return each.normal
    if kind in NUMBERS and method["as"] == "normal":
        return "".join(each.text.split())
    return each.text
