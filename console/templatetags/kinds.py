"""Names of file types."""

from django import template

from documents import sniffing

register = template.Library()


@register.filter
def kind(content_type: str) -> str:
    """Return the common name of a content type, or the content type itself if it has none."""
    said = sniffing.LABELS.get(content_type, content_type)
    return said.removeprefix("a ").removeprefix("an ")
