"""The words of each language, from the files in `languages/`. Adding a language is adding a file."""

import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ade_understanding.vocabulary import FIELDS

# Fields that only serve the arithmetic or the sections of a page, with the kind of their values.
HELPERS = {"period": "period", "line_total": "amount", "allowance": "amount", "charge": "amount", "tendered": "amount"}
HELPERS |= {"rounding": "amount"}
KINDS = FIELDS | HELPERS
# The fields that hold the number and the date of a thing.
_THINGS = {
    "invoice": ("invoice_number", "invoice_date"),
    "order": ("order_number", "order_date"),
    "customer": ("customer_number", None),
    "contract": ("contract_number", None),
    "delivery_note": ("delivery_note_number", None),
    "tax": ("tax_number", None),
}
WORD = re.compile(r"[^\W\d_]+")
_TRANSLITERATED = str.maketrans({"ß": "ss", "æ": "ae", "ø": "o", "œ": "oe", "ł": "l", "đ": "d", "ı": "i"})


class Meaning(NamedTuple):
    """The field that a label may belong to. A weak label may also mean something else."""

    name: str
    kind: str
    is_weak: bool


@lru_cache(maxsize=20_000)
def normal(word: str) -> str:
    """Return the word in lower case and without accents, because capitals and scans often lack them."""
    plain = word.casefold()
    if plain.isascii():
        return plain
    plain = unicodedata.normalize("NFKD", plain.translate(_TRANSLITERATED))
    return "".join(character for character in plain if not unicodedata.combining(character))


def phrase(text: str) -> str:
    """Return the words of a text in their normal form."""
    return " ".join(map(normal, WORD.findall(text)))


def _split(text: str) -> list[str]:
    return [normalised for part in text.split(",") if (normalised := phrase(part))]


def _files() -> list[dict[str, Any]]:
    folder = Path(__file__).parent / "languages"
    return [tomllib.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.toml"))]


def _labels(language: dict[str, Any]) -> Iterator[tuple[str, Meaning]]:
    for name, phrases in language["labels"].items():
        for each in _split(phrases):
            yield each, Meaning(name, KINDS[name], is_weak=False)
    for name, phrases in language["weak"].items():
        for each in _split(phrases):
            yield each, Meaning(name, KINDS[name], is_weak=True)
    of = ["", *_split(language["of"])]
    for thing, phrases in language["things"].items():
        number, date = _THINGS[thing]
        for each in _split(phrases):
            if thing != "tax":
                yield each, Meaning(number, "number", is_weak=True)
            for name, kind, words in ((number, "number", language["number"]), (date, "date", language["date"])):
                if name:
                    for word, before in product(_split(words), of):
                        meaning = Meaning(name, kind, is_weak=False)
                        # "invoice number", "Rechnungsnummer", "number of the invoice"
                        yield f"{each} {word}", meaning
                        yield f"{each}{word}", meaning
                        yield " ".join(f"{word} {before} {each}".split()), meaning


def _by_phrase(section: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for language in LANGUAGES:
        for name, phrases in language[section].items():
            for each in _split(phrases):
                found[each][name] = None
    return {each: tuple(names) for each, names in found.items()}


def _words(section: str, name: str) -> frozenset[str]:
    return frozenset(each for language in LANGUAGES for each in _split(language[section].get(name, "")))


def _meanings() -> dict[str, tuple[Meaning, ...]]:
    found: dict[str, dict[str, Meaning]] = defaultdict(dict)
    for language in LANGUAGES:
        for each, meaning in _labels(language):
            known = found[each].get(meaning.name)
            if known is None or known.is_weak:
                found[each][meaning.name] = meaning
    return {each: tuple(meanings.values()) for each, meanings in found.items()}


LANGUAGES = _files()
MEANINGS = _meanings()
# The length of the longest phrase by its first word.
MOST_WORDS: dict[str, int] = {}
for _each in MEANINGS:
    _first, _count = _each.partition(" ")[0], _each.count(" ") + 1
    MOST_WORDS[_first] = max(MOST_WORDS.get(_first, 0), _count)
SECTIONS = _by_phrase("sections")
COLUMNS = _by_phrase("columns")
TITLES = _by_phrase("titles")
# Endings of compounds, such as "rechnung" of "Handelsrechnung".
TITLE_ENDINGS = {
    normal(each.strip()[1:]): name
    for language in LANGUAGES
    for name, phrases in language["titles"].items()
    for each in phrases.split(",")
    if each.strip().startswith("*")
}
SIGNS = _by_phrase("signs")
MONTHS = {
    normal(name): number
    for language in LANGUAGES
    for number, names in enumerate(language["months"].split(","), 1)
    for name in names.split()
}
NUMBER_WORDS = frozenset(each for language in LANGUAGES for each in _split(language["number"]))
ON_WORDS = frozenset(each for language in LANGUAGES for each in _split(language["on"]))
TERMS, UNTIL, DISCOUNT = _words("words", "terms"), _words("words", "until"), _words("words", "discount")
SALUTATIONS, COUNTRIES = _words("words", "salutations"), _words("words", "countries")
TAX_WORDS, TOTAL_WORDS = _words("words", "tax"), _words("words", "total")
