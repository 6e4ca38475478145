"""Recognises labels, the words next to or above a value. The words themselves are in `languages/`."""

import re
import unicodedata
from typing import NamedTuple

from ade_understanding.recognition.languages import MEANINGS, MOST_WORDS, WORD, Meaning, normal

LONGEST_NAME = 100
_SHARE = r"\d{1,2}(?:[.,]\d{1,3})? ?%"
_SHARE_FIRST = re.compile(rf"\(?{_SHARE}\)? ")
_REMARK_FIRST = re.compile(r"\([^()\d]{1,20}\) ?")
# What may stand between two words of a label, as in "zzgl. 19 % MwSt", "P.IVA" and "Total (incl. VAT)".
_GAP = re.compile(rf"(?:[.]? ?\(?{_SHARE}\)? |[ .’'`´/&()_°º-]){{1,3}}")
_LAST_PHRASE = re.compile(r"[^\W\d_]+(?:(?:[.]? |[.’'/-])[^\W\d_]+){0,3}[.]?$")
_LAST_CHARACTERS = 60
_SEVERAL = 20
_LONGEST_LABEL = 7
# What still belongs to a label: punctuation, a word for "number", a percentage, a remark in brackets.
_AFTER = re.compile(
    rf"(?:[ .:#°º№)*(/@=-]|no\b|nr\b|(?<=\()[^\W\d_][^\d()]{{1,40}}\)|\((?:\d{{3}}|{_SHARE})\)|\(?{_SHARE}\)?)*",
    re.IGNORECASE,
)
_NUMBER_SIGN = re.compile(r"[#№º]|\bn[or°]?\b", re.IGNORECASE)
# An unknown label: a few words up to a colon, the first one capitalised.
_SHAPE = re.compile(r"(?=[^\W\d_])(?![a-zäöüß])[\w.'’/&()°º#-]+(?: [\w.'’/&()°º#-]+){0,5} ?:(?=\s|$)\s*")
_LONGEST_SHAPE = 60
_TRANSLITERATED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "oe", "œ": "oe", "ł": "l"})
_NOT_IN_NAMES = re.compile("[^a-z0-9]+")


class Label(NamedTuple):
    # The fields that it may belong to; none for an unknown label.
    meanings: tuple[Meaning, ...]
    text: str
    # Where the label starts, and where its value may start, in the text of the cell.
    start: int
    end: int
    has_colon: bool = False
    # Whether a word or sign for "number" follows.
    has_number_sign: bool = False

    @property
    def is_known(self) -> bool:
        return bool(self.meanings)

    @property
    def stands_out(self) -> bool:
        """Whether it cannot be the beginning of a name or a sentence."""
        return self.has_colon or self.has_number_sign

    def names(self) -> set[str]:
        return {meaning.name for meaning in self.meanings}


def at_start(text: str) -> Label | None:
    """Return the label at the start of the text, preferring known labels."""
    share = _REMARK_FIRST.match(text) or (_SHARE_FIRST.match(text) if "%" in text else None)
    first = WORD.search(text, share.end() if share else 0, (share.end() if share else 0) + 4)
    if first is None or any(character.isdigit() for character in text[share.end() if share else 0 : first.start()]):
        return None
    if label := known(text, first.start()):
        return label
    shape = _SHAPE.match(text[: _LONGEST_SHAPE + 1]) if ":" in text else None
    if shape is None or not name_of(shape[0]):
        return None
    return Label((), text[: shape.end()].strip(" :"), 0, shape.end(), has_colon=True)


def within(text: str) -> list[Label]:
    """Return the known labels after the first one, each with its colon, as in "No: 12 Date: 1.2.2026"."""
    others: list[Label] = []
    colon = text.find(":")
    for _ in range(_SEVERAL):
        colon = text.find(":", colon + 1)
        if colon < 0:
            break
        begin = max(colon - _LAST_CHARACTERS, 0)
        if last := _LAST_PHRASE.search(text[begin:colon].rstrip()):
            # Try the longest phrase of the last words first.
            starts = [begin + last.start() + word.start() for word in WORD.finditer(last[0])]
            labels = (known(text, start) for start in starts)
            others += [label for label in labels if label and label.has_colon and label.end > colon][:1]
    return others


def name_of(label: str) -> str:
    """Return the label in lower-case ASCII with underscores, or "" if nothing of it can be written so."""
    plain = unicodedata.normalize("NFKC", label).casefold().translate(_TRANSLITERATED)
    ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return _NOT_IN_NAMES.sub("_", ascii_only)[:LONGEST_NAME].strip("_")


def known(text: str, start: int) -> Label | None:
    """Return the longest known label that starts with the word at this place."""
    word = WORD.match(text, start)
    if word is None or (most := MOST_WORDS.get(normal(word[0]))) is None:
        return None
    words = normal(word[0])
    best = (MEANINGS[words], word.end()) if words in MEANINGS else None
    for _ in range(min(most, _LONGEST_LABEL) - 1):
        gap = _GAP.match(text, word.end())
        word = WORD.match(text, gap.end()) if gap else None
        if word is None:
            break
        words = f"{words} {normal(word[0])}"
        if meanings := MEANINGS.get(words):
            best = meanings, word.end()
    if best is None:
        return None
    meanings, begin = best
    if text[begin : begin + 1].isdigit():
        # The beginning of a number such as INV58655.
        return None
    after = _AFTER.match(text, begin)
    assert after is not None
    # A bracket or a minus may be part of the value.
    end = begin + len(after[0].rstrip("(-/"))
    sign = bool(_NUMBER_SIGN.search(after[0]))
    return Label(meanings, text[start:begin], start, end, has_colon=":" in after[0], has_number_sign=sign)
