"""Renders a brief as plain text, for terminals and mail."""

import textwrap
from collections.abc import Iterator

from feeds.briefs.reading import Page, Story

COLUMNS = 72
INDENT = "    "


def text_of(page: Page) -> str:
    return "\n".join(_lines(page)) + "\n"


def _lines(page: Page) -> Iterator[str]:
    yield from _wrapped(page.title)
    yield "=" * min(len(page.title), COLUMNS)
    yield from _wrapped(f"News {page.window}: {page.seen}.")
    for note in page.notes:
        yield ""
        yield from _wrapped(note)
    for story in page.stories:
        yield ""
        yield from _story(story)


def _story(story: Story) -> Iterator[str]:
    yield from _wrapped(story.headline, first=f"{story.number:2}. ", others=INDENT)
    for words in (story.summary, f"Why: {story.why}."):
        if words:
            yield from _wrapped(words, first=INDENT, others=INDENT)
    for telling in story.tellings:
        about = f"{telling.source}, {telling.time}: {telling.title}"
        yield from _wrapped(about, first=f"{INDENT}* ", others=f"{INDENT}  ")
        # URLs are never wrapped: a broken link leads nowhere.
        yield f"{INDENT}  {telling.url}"
    if story.further:
        yield f"{INDENT}  {story.further}"


def _wrapped(words: str, *, first: str = "", others: str = "") -> list[str]:
    return textwrap.wrap(words, COLUMNS, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)
