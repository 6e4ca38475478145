"""Kinds of files in words."""

from django import template

from documents import sniffing

register = template.Library()


@register.filter
def kind(content_type: str) -> str:
    """As people call it; what nobody has a name for, as it is."""
    said = sniffing.LABELS.get(content_type, content_type)
    return said.removeprefix("a ").removeprefix("an ")
