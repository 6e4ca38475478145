"""A page that is drawn word by word, in points, and read as the PDF reader would read it."""

import random
from dataclasses import dataclass, field
from typing import Any

WIDTH, HEIGHT = 595.0, 842.0
_NARROW, _WIDE = set("iljtfr.,:;'|!()[]I1 "), set("mwMW@%&ÄÖÜ")


def width_of(text, size):
    return size * sum(map(_width, text))


def _width(character):
    if character in _NARROW:
        return 0.3
    return 0.82 if character in _WIDE else 0.68 if character.isupper() else 0.53


@dataclass
class Sheet:
    number: int = 1
    words: list[list[Any]] = field(default_factory=list)
    # Between the lines, as a share of their size.
    jitter: float = 0.0
    chance: random.Random = field(default_factory=lambda: random.Random(0))

    def put(self, x, y, text, size=9.0, right=False):
        """Write a line from x, or up to x, and return where it ends."""
        text = str(text)
        if right:
            x -= width_of(text, size)
        y += self.jitter * self.chance.uniform(-1, 1)
        for word in text.split(" "):
            end = x + width_of(word, size)
            if word:
                box = (x / WIDTH, y / HEIGHT, end / WIDTH, (y + 1.2 * size) / HEIGHT)
                self.words.append([word, *(round(min(max(share, 0.0), 1.0), 4) for share in box)])
            x = end + 0.28 * size
        return x

    def lines(self, x, y, texts, size=9.0, step=1.35):
        for text in texts:
            self.put(x, y, text, size)
            y += step * size
        return y

    def page(self):
        rows = {}
        for word in self.words:
            rows.setdefault(word[2], []).append(word[0])
        text = "\n".join(" ".join(row) for row in rows.values())
        return {
            "number": self.number, "text": text, "words": self.words, "tables": [], "width": WIDTH, "height": HEIGHT,
        }  # fmt: skip


_MISREAD = dict(zip("0O1l5S8B6.e", "O0l1S5B8G,c", strict=True))


def scanned(page, chance, share=0.004):
    """Return the page as a scan that was recognised: some characters are wrong, and the words lie askew."""
    slope = chance.uniform(-0.004, 0.004)
    words = []
    for text, left, top, right, bottom in page["words"]:
        read = "".join(_MISREAD.get(each, each) if chance.random() < share else each for each in text)
        shift = slope * left
        box = [left, top + shift, right, bottom + shift]
        words.append([read, *(round(min(max(each, 0.0), 1.0), 4) for each in box)])
    text = "\n".join(word[0] for word in words)
    return page | {"words": words, "text": text, "ocr": {"engine": "drawn", "confidence": 0.95, "whole": True}}
