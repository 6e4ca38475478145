"""Counts the parts of a text and rates its readability."""

import re
import unicodedata
from collections import Counter

WORDS_READ_PER_MINUTE = 220
SHORTEST_KEYWORD = 3

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
# A space follows the mark and no lower-case letter, so "approx. two" does not end a sentence.
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'»”)]*\s+(?![a-zà-ÿ])")
_ABBREVIATION = re.compile(r"(?:^|\s)(?:\d{1,2}|[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|Nr|No|bzw|ca|vgl|Str|Tel|Sig|Sr|M)\.$")
_PARAGRAPH_BREAK = re.compile(r"\n[ \t\r]*\n\s*")
_VOWELS = re.compile(r"[aeiouy]+")

# Per language: the base, and the factors for words per sentence and syllables per word. Flesch (en), Amstad (de),
# Kandel and Moles (fr), Szigriszt (es), Vacca (it), Douma (nl).
_EASE = {
    "en": (206.835, 1.015, 84.6),
    "de": (180.0, 1.0, 58.5),
    "fr": (207.0, 1.015, 73.6),
    "es": (206.84, 1.0, 62.3),
    "it": (217.0, 1.3, 60.0),
    "nl": (206.84, 0.93, 77.0),
}
_IN_WORDS = [(80, "very easy"), (65, "easy"), (50, "fairly difficult"), (30, "difficult")]


def words(text: str) -> list[str]:
    return _WORD.findall(text)


def sentences(text: str) -> list[str]:
    parts: list[str] = []
    for paragraph in paragraphs(text):
        beginning = ""
        for part in _SENTENCE_END.split(paragraph):
            beginning = f"{beginning} {part}".strip()
            if not _ABBREVIATION.search(beginning):
                parts.append(beginning)
                beginning = ""
        if beginning:
            parts.append(beginning)
    return [sentence for sentence in parts if _WORD.search(sentence)]


def paragraphs(text: str) -> list[str]:
    return [part.strip() for part in _PARAGRAPH_BREAK.split(text.strip()) if part.strip()]


def reading_minutes(words: list[str]) -> float:
    return round(len(words) / WORDS_READ_PER_MINUTE, 1)


def reading_ease(words: list[str], sentences: list[str], language: str) -> float:
    """Return the reading ease from about 0 (very hard) to 100 (very easy)."""
    base, per_word, per_syllable = _EASE[language]
    words_per_sentence = len(words) / max(1, len(sentences))
    syllables_per_word = sum(syllables(word, language) for word in words) / len(words)
    return round(base - per_word * words_per_sentence - per_syllable * syllables_per_word, 1)


def in_words(ease: float) -> str:
    return next((words for least, words in _IN_WORDS if ease >= least), "very difficult")


def syllables(word: str, language: str) -> int:
    """Estimate the syllables from groups of vowels, without a silent e at the end in English and French."""
    parts = unicodedata.normalize("NFD", word.casefold())
    plain = "".join(part for part in parts if not unicodedata.combining(part))
    count = len(_VOWELS.findall(plain))
    if language in ("en", "fr") and re.search(r"[^aeiouyl]e$", plain):
        count -= 1
    return max(1, count)


def keywords(words: list[str], stop_words: frozenset[str]) -> Counter[str]:
    """Count each word under its most frequent spelling, without stop words."""
    spellings: dict[str, Counter[str]] = {}
    for word in words:
        if len(word) >= SHORTEST_KEYWORD and word.casefold() not in stop_words:
            spellings.setdefault(word.casefold(), Counter())[word] += 1
    return Counter({counts.most_common(1)[0][0]: counts.total() for counts in spellings.values()})
