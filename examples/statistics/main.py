"""Computes statistics of a text: its length, language, readability and keywords."""

import counting
import language
import mentions

from ade_engine import Context, Rejected, step

KEYWORDS = 25
FEWEST_WORDS_FOR_READABILITY = 30


@step
def read(ctx: Context) -> None:
    text = ctx.document.text
    if not text.strip():
        raise Rejected(
            f"{ctx.document.name} ({ctx.document.content_type}) contains no text. A scan needs text recognition first."
        )
    ctx.data["text"] = text
    ctx.data["words"] = counting.words(text)
    ctx.data["sentences"] = counting.sentences(text)
    ctx.log(f"read {len(text)} characters")


@step
def count(ctx: Context) -> None:
    text, words, sentences = ctx.data["text"], ctx.data["words"], ctx.data["sentences"]
    ctx.field("characters", len(text))
    ctx.field("words", len(words))
    ctx.field("different_words", len({word.casefold() for word in words}))
    ctx.field("sentences", len(sentences))
    ctx.field("paragraphs", len(counting.paragraphs(text)))
    ctx.field("reading_minutes", counting.reading_minutes(words))


@step
def guess_language(ctx: Context) -> None:
    guess = language.guess(ctx.data["words"])
    ctx.data["language"] = guess.language
    if guess.language is None:
        ctx.log("language unknown: too few common words", "warning")
        return
    ctx.field("language", guess.language, confidence=guess.confidence)


@step
def rate_readability(ctx: Context) -> None:
    words, sentences, code = ctx.data["words"], ctx.data["sentences"], ctx.data["language"]
    if code is None or len(words) < FEWEST_WORDS_FOR_READABILITY:
        ctx.log(f"readability left out: it needs a known language and {FEWEST_WORDS_FOR_READABILITY} words")
        return
    ease = counting.reading_ease(words, sentences, code)
    ctx.field("reading_ease", ease)
    ctx.field("readability", counting.in_words(ease))


@step
def list_keywords(ctx: Context) -> None:
    counts = counting.keywords(ctx.data["words"], language.STOP_WORDS.get(ctx.data["language"], frozenset()))
    total = len(ctx.data["words"])
    rows = [(word, times, round(100 * times / total, 2)) for word, times in counts.most_common(KEYWORDS)]
    ctx.table("keywords", ["word", "times", "percent of words"], rows)
    ctx.field("keywords", [word for word, _, _ in rows[:5]])


@step
def list_mentions(ctx: Context) -> None:
    rows = mentions.find_mentions(ctx.data["text"])
    ctx.table("mentions", ["kind", "as written", "line"], rows)
    for kind in ("date", "amount"):
        ctx.field(f"{kind}s_mentioned", sum(1 for mention in rows if mention.kind == kind))
