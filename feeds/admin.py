import re
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe

from feeds import addresses, feed_status, operations
from feeds.brief_admin import BriefAdmin as BriefAdmin
from feeds.forms import FeedForm
from feeds.lifecycle import FEED_STATES
from feeds.models import ClusterArticle, EventCluster, FeedSource, PurgedUrl, RawArticle
from work.operations.admin import (
    LARGEST_ID,
    MOST_COUNTED,
    ReadOnlyAdmin,
    SharedAdmin,
    VerbAdmin,
    choice_filter,
    related_filter,
    short,
)

# Most articles that the page of a cluster names.
MOST_NAMED = 50
STATES = {"failing": "failing", "paused": "paused", "due": "due"}


def link_to(url: str) -> str:
    """Return a link for web addresses. Any other scheme is shown as text and can't be followed."""
    is_followed = url.startswith(("http://", "https://"))
    return format_html('<a href="{0}" rel="noreferrer noopener">{0}</a>', url) if is_followed else url or "-"


class LookupAdmin(SharedAdmin, ReadOnlyAdmin):
    """Base for tables that are too large for a text search. Rows are found by ID or by an indexed column."""

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        term = search_term.replace("\0", "").strip()
        if not term:
            return queryset, False
        if match := re.fullmatch(r"(?:[a-z_ ]+ )?#?([0-9]{1,19})", term):
            return queryset.filter(pk=min(int(match[1]), LARGEST_ID)), False
        condition = self.condition_for(term)
        return (queryset.none() if condition is None else queryset.filter(condition)), False

    def condition_for(self, term: str) -> Q | None:
        return None


@admin.register(FeedSource)
class FeedSourceAdmin(SharedAdmin, VerbAdmin):
    states = FEED_STATES
    list_display = ["id", "name", "how", "error", "next_check", "checked_at", "failures"]
    list_display_links = ["id", "name"]
    list_filter = [choice_filter("state", STATES.items, lambda feeds, word: getattr(feeds, word)().order_by("-id"))]
    search_fields = ["title", "url"]
    fields = [
        *("title", "link", "site", "how", "next_check", "articles", "failures", "failing_since", "last_error"),
        *("checked_at", "succeeded_at", "next_check_at", "etag", "last_modified"),
        *("paused_at", "paused_by", "created_at"),
    ]
    readonly_fields = ["link", "site", "how", "next_check", "articles"]
    operations = [operations.CHECK_NOW, operations.PAUSE, operations.RESUME]

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm("feeds.add_feedsource")

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("feeds.change_feedsource")

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Replace Django's form, because `sources.add` brings URLs into their canonical spelling and refuses unusable
        ones.
        """
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = FeedForm(request.POST if request.method == "POST" else None)
        if feed := form.made(request.user.get_username()):
            self.message_user(request, f"Added feed {feed.pk}, {feed}. It is checked when the job runs next.")
            return HttpResponseRedirect(reverse("admin:feeds_feedsource_change", args=[feed.pk]))
        context = self.admin_site.each_context(request) | {"title": "Add feed", "opts": self.opts, "form": form}
        return TemplateResponse(request, "admin/add_feed.html", context)

    @admin.display(description="feed")
    def name(self, feed: FeedSource) -> str:
        return short(str(feed))

    @admin.display(description="state")
    def how(self, feed: FeedSource) -> str:
        return feed_status.state_text(feed)

    @admin.display(description="next check")
    def next_check(self, feed: FeedSource) -> str:
        return feed_status.next_check_text(feed)

    @admin.display(description="error")
    def error(self, feed: FeedSource) -> str:
        return short(feed.last_error) or "-"

    @admin.display(description="URL")
    def link(self, feed: FeedSource) -> str:
        return link_to(feed.url)

    @admin.display(description="website")
    def site(self, feed: FeedSource) -> str:
        return link_to(feed.site_url)

    @admin.display(description="articles")
    def articles(self, feed: FeedSource) -> str:
        number = feed.articles.order_by()[: MOST_COUNTED + 1].count()
        text = f"over {MOST_COUNTED}" if number > MOST_COUNTED else number
        return format_html('<a href="{}?feed={}">{}</a>', reverse("admin:feeds_rawarticle_changelist"), feed.pk, text)


@admin.register(RawArticle)
class RawArticleAdmin(LookupAdmin):
    list_display = ["id", "headline", "feed", "happened_at", "seen_at"]
    list_display_links = ["id", "headline"]
    list_filter = [related_filter("feed")]
    search_fields = ["url"]
    search_help_text = "Article ID or URL"
    fields = [
        *("title", "link", "original", "feed", "author", "summary", "published_at", "happened_at", "seen_at"),
        *("cluster", "embedding_model"),
    ]
    readonly_fields = ["link", "original", "cluster"]

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("feed").defer("summary", "embedding")

    def condition_for(self, term: str) -> Q | None:
        url = addresses.canonical_or_empty(term)
        return Q(url=url) if url else None

    @admin.display(description="title")
    def headline(self, article: RawArticle) -> str:
        return short(article.title)

    @admin.display(description="URL")
    def link(self, article: RawArticle) -> str:
        return link_to(article.url)

    @admin.display(description="original URL")
    def original(self, article: RawArticle) -> str:
        return link_to(article.original_url)

    @admin.display(description="event")
    def cluster(self, article: RawArticle) -> str:
        cluster = EventCluster.objects.filter(links__raw_article=article).only("title").first()
        return _link_to_page(cluster) if cluster else "-"


@admin.register(EventCluster)
class EventClusterAdmin(LookupAdmin):
    list_display = ["id", "headline", "article_count", "first_at", "last_at", "merged_into_id"]
    list_display_links = ["id", "headline"]
    search_fields = ["id"]
    search_help_text = "Cluster ID"
    fields = [
        *("title", "article_count", "first_at", "last_at", "named_articles", "into", "embedding_model", "created_at"),
    ]
    readonly_fields = ["named_articles", "into"]

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("centroid")

    @admin.display(description="title")
    def headline(self, cluster: EventCluster) -> str:
        return short(cluster.title)

    @admin.display(description="merged into")
    def into(self, cluster: EventCluster) -> str:
        return _link_to_page(cluster.merged_into) if cluster.merged_into else "-"

    @admin.display(description="articles (most similar first)")
    def named_articles(self, cluster: EventCluster) -> str:
        articles = RawArticle.objects.filter(links__cluster=cluster).order_by("-links__similarity", "id").only("title")
        links = [_link_to_page(article) for article in articles[: MOST_NAMED + 1]]
        html = format_html_join(mark_safe("<br>"), "{}", ((link,) for link in links[:MOST_NAMED]))
        return format_html("{}<br>and more", html) if len(links) > MOST_NAMED else html or "-"


@admin.register(ClusterArticle)
class ClusterArticleAdmin(LookupAdmin):
    list_display = ["id", "cluster", "raw_article", "similarity", "linked_at"]
    search_fields = ["id"]
    search_help_text = "Link ID"
    fields = ["cluster", "raw_article", "similarity", "linked_at"]

    def get_queryset(self, request: HttpRequest) -> Any:
        columns = ("similarity", "linked_at", "cluster__title", "raw_article__title")
        return super().get_queryset(request).select_related("cluster", "raw_article").only(*columns)


@admin.register(PurgedUrl)
class PurgedUrlAdmin(LookupAdmin):
    list_display = ["id", "digest", "purged_at"]
    search_fields = ["digest"]
    search_help_text = "URL of an article or its SHA-256, to see whether the article was purged"
    fields = ["digest", "purged_at"]

    def condition_for(self, term: str) -> Q | None:
        if re.fullmatch("[0-9a-f]{64}", term):
            return Q(digest=term)
        url = addresses.canonical_or_empty(term)
        return Q(digest=addresses.digest(url)) if url else None


def _link_to_page(row: EventCluster | RawArticle) -> str:
    url = reverse(f"admin:feeds_{row._meta.model_name}_change", args=[row.pk])
    return format_html('<a href="{}">{}</a>', url, short(row.title))
