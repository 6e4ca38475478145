"""Renders the latest briefs as RSS 2.0, one item per brief."""

from collections.abc import Callable, Sequence
from datetime import UTC

from django.utils.feedgenerator import Rss201rev2Feed
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from feeds.briefs.reading import Page, Story, Telling

DESCRIPTION = "The events of the day, every morning, the most important first."


def rss_of(pages: Sequence[Page], *, home: str, itself: str, url_of: Callable[[str], str]) -> str:
    """Return the RSS document. All URLs must be absolute, because readers resolve them from elsewhere."""
    feed = Rss201rev2Feed("ADE briefs", home, DESCRIPTION, language="en", feed_url=itself)
    for page in pages:
        url = url_of(page.name)
        feed.add_item(
            page.title,
            url,
            _contents(page),
            unique_id=url,
            unique_id_is_permalink=True,
            pubdate=page.published_at.astimezone(UTC),
        )
    return feed.writeString("utf-8")


def _contents(page: Page) -> SafeString:
    notes = format_html_join("", "<p>{}</p>", ((note,) for note in page.notes))
    stories = format_html_join("", "<li>{}</li>", ((_story(story),) for story in page.stories))
    return format_html("{}<ol>{}</ol>", notes, stories) if page.stories else notes


def _story(story: Story) -> SafeString:
    tellings = format_html_join("", "<li>{}</li>", ((_telling(telling),) for telling in story.tellings))
    about = format_html("<h2>{}</h2><p>{}</p><p><em>{}</em></p>", story.headline, story.summary, story.why)
    return format_html("{}<ul>{}</ul>", about, tellings)


def _telling(telling: Telling) -> SafeString:
    if not telling.link:
        return format_html("{}, {}", telling.title, telling.source)
    rel = "noopener noreferrer nofollow"
    return format_html('<a href="{}" rel="{}">{}</a>, {}', telling.link, rel, telling.title, telling.source)
