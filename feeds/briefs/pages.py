"""A brief as its readers see it: texts are cleaned, links checked, and times shown in the brief's time zone. Every view
of a brief renders these objects, never the rows themselves.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from feeds.briefs.formatting import count, day, line, link
from feeds.models import LONGEST_URL, Brief, BriefItem

# Longer than any published text; guards against rows that were not written by the publisher.
MOST = 500


@dataclass(frozen=True)
class StoryArticle:
    title: str
    # `link` is empty if the URL is not safe to follow; `url` is the URL as found, for display.
    link: str
    url: str
    source: str
    at: datetime
    time: str


@dataclass(frozen=True)
class Reason:
    words: str
    # Percentage of the highest possible score.
    percent: float
    # The name of the earlier brief that covered the event.
    brief: str


@dataclass(frozen=True)
class Story:
    number: int
    headline: str
    summary: str
    reasons: Sequence[Reason]
    percent: float
    tellings: Sequence[StoryArticle]
    # A note on the articles that are not shown.
    further: str

    @property
    def why(self) -> str:
        return " · ".join(reason.words for reason in self.reasons)

    @property
    def sources(self) -> str:
        return ", ".join(dict.fromkeys(telling.source for telling in self.tellings))


@dataclass(frozen=True)
class Page:
    name: str
    title: str
    # The start and end of the window, with the time zone.
    window: str
    published_at: datetime
    published: str
    seen: str
    # What a reader should know in addition to the stories, or if there are no stories.
    notes: Sequence[str]
    stories: Sequence[Story]


@dataclass(frozen=True)
class Entry:
    name: str
    day: str
    month: str
    first: str
    events: str


def entry_of(brief: Any) -> Entry:
    """Return the list entry of a brief that is annotated with `events` (a count) and `first` (a headline)."""
    at = brief.scheduled_for.astimezone(ZoneInfo(brief.time_zone))
    if brief.events:
        events = count(brief.events, "event")
    elif brief.feeds_seen or brief.articles_seen:
        events = "nothing new"
    else:
        events = "no feed answered" if brief.feeds_silent else "no feed was checked"
    return Entry(
        name=brief.name,
        day=_day(brief),
        month=f"{at:%B %Y}",
        first=line(brief.first or "", MOST),
        events=events,
    )


def with_items(briefs: Any) -> Any:
    """Prefetch everything that `page_of` needs, in two queries however many briefs there are."""
    return briefs.prefetch_related("items__articles")


def page_of(brief: Brief) -> Page:
    """Return the page of a brief. Load the brief through `with_items`, or this costs a query per item."""
    zone = ZoneInfo(brief.time_zone)
    stories = [_story(item, zone) for item in _in_order(brief.items.all())]
    since, until = (_time(at, zone) for at in (brief.window_from, brief.window_until))
    feeds = f" from {count(brief.feeds_seen, 'feed')}" if brief.feeds_seen else ""
    articles = f"{count(brief.articles_seen, 'article')}{feeds}"
    events = f"{count(brief.clusters_seen, 'event')} with news"
    if brief.clusters_seen and not brief.articles_seen:
        # The articles were clustered late, or a brief published shortly before had no room for them.
        articles, events = "no new articles", f"{events} from earlier articles"
    return Page(
        name=brief.name,
        title=title_of(brief),
        window=f"from {since} to {until} ({brief.time_zone})",
        published_at=brief.published_at,
        published=_time(brief.published_at, zone),
        seen=f"{articles}, {events}",
        notes=list(_notes(brief, zone, is_empty=not stories)),
        stories=stories,
    )


def title_of(brief: Brief) -> str:
    return f"Brief of {_day(brief)}"


def _day(brief: Brief) -> str:
    """Return the day of the brief, with the numeric suffix of its name if it has one."""
    at = brief.scheduled_for.astimezone(ZoneInfo(brief.time_zone))
    number = "-".join(brief.name.split("-")[3:])
    return f"{at:%A}, {day(at)}" + (f" ({number})" if number else "")


def _in_order(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: row.position)


def _story(item: BriefItem, zone: ZoneInfo) -> Story:
    tellings = [
        StoryArticle(
            title=line(article.title, MOST) or "(no title)",
            link=link(article.url),
            url=line(article.url, LONGEST_URL),
            source=line(article.source, MOST),
            at=article.happened_at,
            time=_time(article.happened_at, zone),
        )
        for article in _in_order(item.articles.all())
    ]
    hidden = item.article_count - len(tellings)
    return Story(
        number=item.position + 1,
        headline=line(item.headline, MOST) or "(no title)",
        summary=line(item.summary, MOST),
        reasons=[
            Reason(
                words=line(str(reason.get("words", "")), MOST),
                percent=round(100 * float(reason.get("share", 0)), 1),
                brief=str(reason.get("brief", "")),
            )
            for reason in item.reasons
        ],
        percent=round(100 * item.score, 1),
        tellings=tellings,
        further=f"and {count(hidden, 'more article' if tellings else 'article')}" if hidden > 0 else "",
    )


def _notes(brief: Brief, zone: ZoneInfo, *, is_empty: bool) -> Iterator[str]:
    seen, silent = brief.feeds_seen, brief.feeds_silent
    unknown = ", so it is not known what has happened" if is_empty and not brief.articles_seen else ""
    last = f"The last answer of a feed came at {_time(brief.last_answer_at, zone)}." if brief.last_answer_at else ""
    if seen and silent:
        feeds = count(seen + silent, "feed")
        yield f"{silent:,} of {feeds} did not answer in this period, so their news is missing."
    elif silent:
        yield f"No feed answered in this period{unknown}. {last or 'No feed has ever answered.'}"
    elif not seen and last:
        yield f"No feed was checked in this period{unknown}. {last}"
    elif not seen and unknown:
        yield f"There are no feeds, or none has been checked yet{unknown}."
    if is_empty and brief.articles_seen:
        articles = f"{count(brief.articles_seen, 'article')} arrived"
        yield f"{articles}, but none belongs to an event with news yet. An event that gets news is in the next brief."
    elif is_empty and seen:
        yield f"Nothing new: {count(seen, 'feed')} answered, but none had any news."


def _time(at: datetime, zone: ZoneInfo) -> str:
    local = at.astimezone(zone)
    return f"{day(local)}, {local:%H:%M}"
