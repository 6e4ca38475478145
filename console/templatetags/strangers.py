"""What strangers have written, as feeds bring it: cleaned of what turns the text around it, followed only if fit."""

from django import template

from feeds.briefs import words

register = template.Library()


@register.filter
def one_line(text: str, most: int = 300) -> str:
    return words.line(text, most)


@register.filter
def followed(url: str) -> str:
    """Empty when it is not to be followed, whoever wrote it."""
    return words.link(url)


@register.filter
def like(state: str) -> str:
    """The state of a feed in the words that have a look of their own."""
    return {"ok": "done", "failing": "failed"}.get(state, state)
