from operator import attrgetter
from typing import Any

from django.db.models import Count

from feeds.briefs.pages import page_of, with_items
from feeds.briefs.plain import text_of
from feeds.models import Brief
from work.operations.commands import LARGEST_ID, AddVerb, Answer, NounCommand, add_limit, not_found, table

COLUMNS = (
    *("id", "name", "scheduled_for", "published_at", "time_zone", "window_from", "window_until"),
    *("articles_seen", "feeds_seen", "feeds_silent", "last_answer_at", "clusters_seen"),
)
OF_ITEMS = ("position", "cluster_id", "headline", "summary", "article_count", "score", "reasons")
OF_ARTICLES = ("position", "raw_article_id", "url", "title", "source", "happened_at")


class Command(NounCommand):
    help = "Published daily briefs."

    def add_verbs(self, add: AddVerb) -> None:
        add_limit(add("list", self.list_briefs, "List briefs, newest first."))
        show = add("show", self.show, "Print a brief.")
        show.add_argument(
            "brief", metavar="NAME", nargs="?", help="date (YYYY-MM-DD) or ID of the brief (default: the latest)"
        )

    def list_briefs(self, *, limit: int, before: int | None, **_: Any) -> Answer:
        briefs = Brief.objects.order_by("-id").annotate(events=Count("items"))
        briefs = briefs.filter(pk__lt=before) if before else briefs
        rows = list(briefs.values(*COLUMNS, "events")[:limit])
        return Answer(
            {"briefs": rows}, table(rows, "id", "name", "published_at", "events", "articles_seen", "feeds_seen")
        )

    def show(self, *, brief: str | None, **_: Any) -> Answer:
        briefs = with_items(Brief.objects.all())
        if brief is None:
            briefs = briefs.order_by("-scheduled_for")
        elif brief.isascii() and brief.isdigit():
            briefs = briefs.filter(pk=min(int(brief[:20]), LARGEST_ID))
        else:
            briefs = briefs.filter(name=brief)
        row: Brief | None = briefs.first()
        if row is None:
            raise not_found("brief", brief or "latest", "`manage.py brief list` shows them")
        items = []
        for item in sorted(row.items.all(), key=attrgetter("position")):
            articles = sorted(item.articles.all(), key=attrgetter("position"))
            items.append(_columns(item, OF_ITEMS) | {"articles": [_columns(each, OF_ARTICLES) for each in articles]})
        return Answer(_columns(row, COLUMNS) | {"items": items}, text_of(page_of(row)).rstrip())


def _columns(row: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
