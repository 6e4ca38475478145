"""Renders the latest briefs as RSS 2.0, one item per brief."""

from collections.abc import Callable, Sequence
from datetime import UTC

from django.utils.feedgenerator import Rss201rev2Feed
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from feeds.briefs.pages import Page, Story

DESCRIPTION = "The events of the day, every morning, the most important first."


def rss_of(pages: Sequence[Page], *, home: str, itself: str, url_of: Callable[[str], str]) -> str:
    """Return the RSS document. All URLs must be absolute, because readers resolve them from elsewhere."""
    feed = Rss201rev2Feed("ADE briefs", home, DESCRIPTION, language="en", feed_url=itself)
    for page in pages:
        url = url_of(page.name)
        notes = format_html_join("", "<p>{}</p>", ((note,) for note in page.notes))
        stories = format_html_join("", "<li>{}</li>", ((_html_of(story),) for story in page.stories))
        feed.add_item(
            page.title,
            url,
            format_html("{}<ol>{}</ol>", notes, stories) if page.stories else notes,
            unique_id=url,
            unique_id_is_permalink=True,
            pubdate=page.published_at.astimezone(UTC),
        )
    return feed.writeString("utf-8")


def _html_of(story: Story) -> SafeString:
    html = format_html("<h2>{}</h2><p>{}</p><p><em>{}</em></p><ul>", story.headline, story.summary, story.why)
    link = '<li><a href="{}" rel="noopener noreferrer nofollow">{}</a>, {}</li>'
    for telling in story.tellings:
        if telling.link:
            html += format_html(link, telling.link, telling.title, telling.source)
        else:
            html += format_html("<li>{}, {}</li>", telling.title, telling.source)
    return html + mark_safe("</ul>")
