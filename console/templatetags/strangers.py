"""Filters for untrusted text of feeds: text is cleaned, and URLs are linked only if that is safe."""

from django import template

from feeds.briefs import words

register = template.Library()


@register.filter
def one_line(text: str, most: int = 300) -> str:
    return words.line(text, most)


@register.filter
def followed(url: str) -> str:
    """Return the URL if it is safe to follow, else ""."""
    return words.link(url)


@register.filter
def like(state: str) -> str:
    """Map the state of a feed to a status word that has a look of its own."""
    return {"ok": "done", "failing": "failed"}.get(state, state)
