"""Template tags for statuses (icon, word and colour), for times, durations and sizes in words, and for feeds' untrusted
text.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from ade_understanding.vocabulary import label_of
from console import formatting
from console.frame import query
from documents import sniffing, types
from feeds.briefs import formatting as brief_formatting
from runs.models import Run

register = template.Library()

# SVG paths in a square of 16 by 16, drawn in the colour of the surrounding text.
ICONS = {
    "good": "M3 8.5 6.5 12 13 4.5",
    "bad": "M4 4 12 12M12 4 4 12",
    "busy": "M13.5 8A5.5 5.5 0 1 1 8 2.5",
    "wait": "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 1 0 0-11M8 5v3.2l2.2 1.4",
    "off": "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 1 0 0-11M4.2 4.2l7.6 7.6",
    "warn": "M8 2.5 14.5 13.5H1.5ZM8 6.5v3.5M8 11.6v.4",
    "late": "M8 3.5a5 5 0 1 0 0 10 5 5 0 1 0 0-10M8 6v2.8M6 1.5h4",
    "held": "M5.5 3.5v9M10.5 3.5v9",
}
# The tone of each status word; all other words look neutral.
TONES = {
    **dict.fromkeys(("succeeded", "ready", "processed", "success", "alive", "done", "completed", "delivered"), "good"),
    **dict.fromkeys(("failed", "error", "missed", "silent", "abandoned", "skipped timeout", "broken"), "bad"),
    "timed out": "late",
    **dict.fromkeys(("running", "building", "processing"), "busy"),
    **dict.fromkeys(("queued", "pending", "new", "waiting", "expected", "scheduled"), "wait"),
    **dict.fromkeys(("cancelled", "stopped", "retired", "coalesced", "passed over", "purged", "skipped"), "off"),
    **dict.fromkeys(("misfired", "overdue", "warning", "rising"), "warn"),
    **dict.fromkeys(("paused", "held", "draining"), "held"),
}
CLASSES = {"late": "bad", "held": "warn"}


@register.simple_tag
def icon(name: str) -> SafeString:
    return format_html('<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="{}"/></svg>', ICONS[name])


@register.simple_tag
def state(word: Any, label: str = "") -> SafeString:
    """Return a status as HTML. `label` replaces the shown word; `word` still decides icon and colour."""
    plain = formatting.plain(str(word))
    tone = TONES.get(plain, "off")
    return format_html('<span class="state is-{}">{}{}</span>', CLASSES.get(tone, tone), icon(tone), label or plain)


@register.filter
def field_label(name: str) -> str:
    return label_of(name)


@register.filter
def plain(word: Any) -> str:
    return formatting.plain(str(word))


@register.filter
def tone(word: Any) -> str:
    tone = TONES.get(formatting.plain(str(word)), "off")
    return CLASSES.get(tone, tone)


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """Return the time relative to now as HTML, with the exact time as the tooltip and in machine-readable form."""
    if moment is None:
        return mark_safe('<span class="none">–</span>')
    return format_html(
        '<time datetime="{}" title="{}" data-ago>{}</time>',
        moment.isoformat(),
        formatting.moment(moment),
        formatting.ago(moment),
    )


@register.filter
def moment(value: datetime | None) -> SafeString | str:
    if value is None:
        return mark_safe('<span class="none">–</span>')
    return format_html('<time datetime="{}">{}</time>', value.isoformat(), formatting.moment(value))


@register.filter
def clock_time(value: datetime) -> SafeString:
    time = f"{value:%H:%M:%S}"
    return format_html('<time datetime="{}" title="{}">{}</time>', value.isoformat(), formatting.moment(value), time)


@register.filter
def length_of(rows: Any) -> int:
    """Return the number of rows. Django's filter `length` is not available, because ours formats a duration."""
    return len(rows)


@register.filter
def took(work: Any) -> str:
    """Return the duration of the work until its end, or until now."""
    return formatting.length(formatting.seconds_of(work)) if work.started_at else "–"


@register.filter
def in_words(run: Run) -> str:
    return formatting.of_run(run)


@register.filter
def length(value: timedelta | float | None) -> str:
    if value is None:
        return "–"
    return formatting.length(value.total_seconds() if isinstance(value, timedelta) else value)


@register.filter
def size(value: int | None) -> str:
    return "–" if value is None else filesizeformat(value).replace("\xa0", " ")


@register.filter
def percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


@register.simple_tag(takes_context=True)
def link_with(context: Mapping[str, Any], **changes: Any) -> str:
    """Return a link to the first page of the current list with changed filters."""
    return f"?{query(context['request'].GET, **{'before': None, **changes})}"


@register.filter
def file_type(content_type: str) -> str:
    """Return the common name of a content type, or the content type itself if it has none."""
    return sniffing.LABELS.get(content_type, content_type).removeprefix("a ").removeprefix("an ")


@register.filter
def document_type(name: str) -> str:
    """Return the label of a document type. Lists show types of many workspaces, so it does not ask the database."""
    return types.BUILT_IN[name].label if name in types.BUILT_IN else name.replace("_", " ").capitalize()


@register.filter
def one_line(text: str, most: int = 300) -> str:
    return brief_formatting.line(text, most)


@register.filter
def safe_url(url: str) -> str:
    """Return the URL if it is safe to follow, else ""."""
    return brief_formatting.link(url)


@register.filter
def feed_look(state: str) -> str:
    """Return the status word whose look fits the state of a feed."""
    return {"ok": "done", "failing": "failed"}.get(state, state)
