import random

import pytest

from documents.search.query import MOST_CHARACTERS, MOST_TERMS, Term, parse

pytestmark = pytest.mark.once


def term(*words, **flags):
    return Term(tuple(words), **flags)


@pytest.mark.parametrize(
    ("typed", "terms", "excluded"),
    [
        ("late Delivery", [term("late"), term("delivery")], []),
        ('"net price" late', [term("net", "price", is_quoted=True), term("late")], []),
        ('"never closed', [term("never", "closed", is_quoted=True)], []),
        ("apples -pears", [term("apples")], [term("pears")]),
        ('apples -"green pears"', [term("apples")], [term("green", "pears", is_quoted=True)]),
        ("deliv*", [term("deliv", is_beginning=True)], []),
        ('"net pri*"', [term("net", "pri", is_beginning=True, is_quoted=True)], []),
        ("INV-2024-001", [term("inv", "2024", "001")], []),
        ("apples apples", [term("apples")], []),
        ("a AND b OR NOT c", [term("a"), term("and"), term("b"), term("or"), term("not"), term("c")], []),
        ("* - -- \"\" ''", [], []),
        ("", [], []),
    ],
)
def test_what_is_typed_is_understood(typed, terms, excluded):
    wanted = parse(typed)

    assert (list(wanted.terms), list(wanted.excluded)) == (terms, excluded)


def test_what_is_not_wanted_is_not_what_is_meant():
    assert parse('late "net price" -apples x*').text == "late net price x*"


def test_it_says_when_there_is_only_what_is_not_wanted():
    assert parse("-apples").notes == ("Enter at least one word to find, not only words to exclude.",)


def test_what_is_too_long_is_cut_and_that_is_said():
    wanted = parse("apples " + "x" * MOST_CHARACTERS)

    assert len(wanted.text) == MOST_CHARACTERS
    assert wanted.notes == (f"Only the first {MOST_CHARACTERS} characters were used.",)


def test_too_many_words_are_cut_and_that_is_said():
    wanted = parse(" ".join(f"a{n} -b{n}" for n in range(MOST_TERMS)))

    assert len(wanted.terms) + len(wanted.excluded) == MOST_TERMS
    assert wanted.notes == (f"Only the first {MOST_TERMS} words were used.",)


def test_whatever_is_typed_words_have_letters_and_digits_only():
    chance = random.Random(1)
    signs = list("\"'*-+()^:{}[]\\/%_&|!<>~.,;@#$\0\ud800\n abcÄß0")
    for _ in range(2000):
        wanted = parse("".join(chance.choices(signs, k=chance.randint(0, 40))))

        for each in (*wanted.terms, *wanted.excluded):
            assert each.words
            assert all(word.isalnum() for word in each.words)
        # Lone surrogates would fail here.
        wanted.text.encode()
