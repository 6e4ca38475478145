"""Renders a brief as plain text, for terminals and mail."""

import textwrap

from feeds.briefs.pages import Page

COLUMNS = 72
INDENT = "    "


def text_of(page: Page) -> str:
    lines = _wrapped(page.title)
    lines.append("=" * min(len(page.title), COLUMNS))
    lines += _wrapped(f"News {page.window}: {page.seen}.")
    for note in page.notes:
        lines += ["", *_wrapped(note)]
    for story in page.stories:
        lines += ["", *_wrapped(story.headline, first=f"{story.number:2}. ", others=INDENT)]
        for words in (story.summary, f"Why: {story.why}."):
            if words:
                lines += _wrapped(words, first=INDENT, others=INDENT)
        for telling in story.tellings:
            about = f"{telling.source}, {telling.time}: {telling.title}"
            lines += _wrapped(about, first=f"{INDENT}* ", others=f"{INDENT}  ")
            # URLs are never wrapped: a broken link leads nowhere.
            lines.append(f"{INDENT}  {telling.url}")
        if story.further:
            lines.append(f"{INDENT}  {story.further}")
    return "\n".join(lines) + "\n"


def _wrapped(words: str, *, first: str = "", others: str = "") -> list[str]:
    return textwrap.wrap(words, COLUMNS, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)
