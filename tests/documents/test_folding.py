import random
import unicodedata

import pytest

from documents import folding
from documents.folding import words, words_with_places


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Müller", "MULLER"),
        ("müller", "mu\u0308ller"),
        ("Straße", "STRASSE"),
        ("Café", "cafe"),
        ("İstanbul", "istanbul"),
        ("ﬁnance", "finance"),
        ("soft\u00adware", "software"),
        ("Ёлка", "елка"),
        ("Ａ１", "a1"),
    ],
)
def test_one_word_in_two_ways(one, other):
    assert words(one) == words(other)
    assert len(words(one)) == 1


def test_other_words_stay_other_words():
    assert words("Muller") != words("Mueller")
    assert words("resume") != words("resumes")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INV-2024-001", ["inv", "2024", "001"]),
        ("a@b.example, 12.50", ["a", "b", "example", "12", "50"]),
        ("„Angebot“\u00a0–\u00a0neu", ["angebot", "neu"]),
        ("½ x²", ["1", "2", "x2"]),
        ("a\0b \ud800 \ufffe", ["a", "b"]),
        ("日本 語", ["日本", "語"]),
        (" \n\t", []),
        ("", []),
    ],
)
def test_where_words_end(text, expected):
    assert words(text) == expected


def test_a_word_without_end_is_cut():
    assert words("x" * 1000) == ["x" * folding.LONGEST]
    assert [word.word for word in words_with_places("x" * 1000)] == ["x" * folding.LONGEST]


def test_places_are_those_of_the_same_words_in_any_text():
    chance = random.Random(1)
    kinds = (range(0x20, 0x250), range(0x300, 0x330), range(0x1100, 0x3000), range(0x110000))
    for _ in range(500):
        text = "".join(chr(chance.choice(chance.choice(kinds))) if chance.random() < 0.6 else " " for _ in range(60))

        found = list(words_with_places(text))

        assert [word.word for word in found] == words(text)
        assert all(0 <= word.start < word.end <= len(text) for word in found)
        # A word that was found in a place is that word of the text, or a part of it.
        assert all(word.word in "".join(words(text[word.start : word.end])) for word in found)


def test_every_character_is_letters_or_parts_words():
    for code in range(0x110000):
        assert all(letter == " " or letter.isalnum() for letter in folding._fold(chr(code))), unicodedata.name(
            chr(code)
        )
