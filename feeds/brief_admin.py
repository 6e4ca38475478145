"""Read-only admin pages for published briefs. Readers see them under /briefs/."""

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from feeds.models import Brief, BriefArticle, BriefItem
from work.operations.admin import ReadOnlyAdmin, SharedAdmin, short


@admin.register(Brief)
class BriefAdmin(SharedAdmin, ReadOnlyAdmin):
    list_display = [
        *("id", "name", "scheduled_for", "published_at", "articles_seen", "feeds_seen", "clusters_seen", "page")
    ]
    list_display_links = ["id", "name"]
    search_fields = ["name"]
    fields = [
        *("name", "page", "scheduled_for", "published_at", "time_zone", "window_from", "window_until"),
        *("articles_seen", "feeds_seen", "feeds_silent", "last_answer_at", "clusters_seen"),
    ]
    readonly_fields = ["page"]

    @admin.display(description="page")
    def page(self, brief: Brief) -> SafeString:
        return format_html('<a href="{}">Read</a>', reverse("feeds:brief", args=[brief.name]))


@admin.register(BriefItem)
class BriefItemAdmin(SharedAdmin, ReadOnlyAdmin):
    list_display = ["id", "title_text", "brief", "position", "score", "article_count", "cluster_id"]
    list_display_links = ["id", "title_text"]
    list_select_related = ["brief"]
    search_fields = ["headline"]
    fields = ["brief", "position", "headline", "summary", "article_count", "score", "reasons", "cluster_id"]
    readonly_fields = ["cluster_id"]

    @admin.display(description="headline")
    def title_text(self, item: BriefItem) -> str:
        return short(item.headline)


@admin.register(BriefArticle)
class BriefArticleAdmin(SharedAdmin, ReadOnlyAdmin):
    list_display = ["id", "title_text", "source", "happened_at", "item_id", "raw_article_id"]
    list_display_links = ["id", "title_text"]
    search_fields = ["title", "url"]
    # The URL is shown as plain text because it comes from an untrusted feed.
    fields = ["item", "position", "title", "source", "url", "happened_at", "raw_article_id"]
    readonly_fields = ["raw_article_id"]

    @admin.display(description="title")
    def title_text(self, article: BriefArticle) -> str:
        return short(article.title)
