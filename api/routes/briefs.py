"""Published briefs as readers see them. Briefs belong to the installation."""

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest
from django.urls import reverse
from ninja import Query, Router
from pydantic import Field

from api.callers import insider_of
from api.errors import not_found
from api.frame import Out, responses
from api.pages import Listing, Page, page
from feeds.briefs.pages import Story, page_of, title_of, with_items
from feeds.models import Brief

routes = Router(tags=["briefs"])


class BriefLinksOut(Out):
    html: str
    text: str
    rss: Annotated[str, Field(description="feed of the latest briefs")]


class BriefOut(Out):
    id: int
    name: Annotated[
        str, Field(description="the day of its slot, with a number if the day has several briefs; used in the address")
    ]
    title: str
    scheduled_for: datetime
    time_zone: str
    published_at: datetime
    window_from: datetime
    window_until: datetime
    articles_seen: int
    feeds_seen: int
    feeds_silent: int
    clusters_seen: int
    links: BriefLinksOut


class BriefArticleOut(Out):
    title: str
    link: Annotated[str, Field(description="empty if the link is not safe to follow")]
    url: str
    source: str
    at: datetime


class BriefReasonOut(Out):
    words: str
    percent: float


class BriefStoryOut(Out):
    number: int
    cluster_id: int
    headline: str
    summary: str
    article_count: int
    percent: Annotated[float, Field(description="percentage of the highest possible score")]
    reasons: list[BriefReasonOut]
    articles: list[BriefArticleOut]


class BriefDetailOut(BriefOut):
    notes: list[str]
    stories: list[BriefStoryOut]


@routes.get("/briefs", response=responses({200: Page[BriefOut]}))
def list_briefs(request: HttpRequest, listing: Query[Listing]) -> dict[str, Any]:
    insider_of(request)
    return page(Brief.objects.all(), listing, lambda brief: _row_of(request, brief))


@routes.get("/briefs/{name:name}", response=responses({200: BriefDetailOut}))
def show(request: HttpRequest, name: str) -> dict[str, Any]:
    """Show a brief with its stories, most important first, and the reasons for their ranks."""
    insider_of(request)
    brief = with_items(Brief.objects.filter(name=name)).first()
    if brief is None:
        raise not_found("brief", name)
    content = page_of(brief)
    items = {item.position + 1: item for item in brief.items.all()}
    stories = [_story(items[story.number], story) for story in content.stories]
    return _row_of(request, brief) | {"notes": list(content.notes), "stories": stories}


def _row_of(request: HttpRequest, brief: Brief) -> dict[str, Any]:
    paths = {
        "html": reverse("feeds:brief", args=[brief.name]),
        "text": reverse("feeds:brief_as_text", args=[brief.name]),
        "rss": reverse("feeds:rss"),
    }
    links = {kind: request.build_absolute_uri(path) for kind, path in paths.items()}
    return BriefOut.of(brief, title=title_of(brief), links=links)


def _story(item: Any, story: Story) -> dict[str, Any]:
    return BriefStoryOut.of(
        story,
        cluster_id=item.cluster_id,
        article_count=item.article_count,
        reasons=[BriefReasonOut.of(reason) for reason in story.reasons],
        articles=[BriefArticleOut.of(article) for article in story.tellings],
    )
