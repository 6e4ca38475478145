"""Chooses the seller and the buyer together: they are never the same, and each has its own address."""

from collections import defaultdict

from ade_understanding.recognition import scores
from ade_understanding.recognition.candidates import Candidate
from ade_understanding.recognition.parties import PARTIES


def count_names(candidates: list[Candidate], text: str) -> None:
    """Set how often the name of a party is on the pages: the seller's is often there twice."""
    plain_text = _plain(text)
    for candidate in candidates:
        if candidate.name in PARTIES:
            count = plain_text.count(_plain(candidate.value))
            candidate.signs.add("named twice" if count == 2 else "named often" if count > 2 else "named once")


def choose(candidates: list[Candidate]) -> None:
    """Exclude the parties that are not the most likely pair, and rate the addresses by the names above them."""
    best: dict[str, dict[str, float]] = {name: defaultdict(float) for name in PARTIES}
    for candidate in candidates:
        if candidate.name in PARTIES:
            value = _plain(candidate.value)
            best[candidate.name][value] = max(best[candidate.name][value], candidate.confidence)
    pairs = [
        (sure_seller * sure_buyer, seller, buyer)
        for seller, sure_seller in best["seller"].items()
        for buyer, sure_buyer in best["buyer"].items()
        if seller != buyer
    ]
    if pairs:
        _, seller, buyer = max(pairs)
    else:
        seller, buyer = (max(best[name], key=lambda value: best[name][value], default="") for name in PARTIES)
    chosen = {"seller": seller, "buyer": buyer}
    for candidate in candidates:
        role = candidate.name.removesuffix("_address")
        if candidate.name in PARTIES:
            other = chosen["buyer" if candidate.name == "seller" else "seller"]
            candidate.is_excluded = _plain(candidate.value) == other
        elif role in PARTIES:
            other = chosen["buyer" if role == "seller" else "seller"]
            owner = _plain(candidate.owner)
            candidate.signs.add("own name" if owner == chosen[role] else "other name" if owner == other else "no name")
            candidate.confidence = scores.rate(candidate)


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
