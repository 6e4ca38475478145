import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from feeds import addresses, lifecycle
from feeds.models import ClusterArticle, EventCluster, FeedSource, PurgedUrl, RawArticle
from tests.factories import (
    ArticleFactory,
    ClusterArticleFactory,
    ClusterFactory,
    FeedFactory,
    PurgedUrlFactory,
    UserFactory,
    columns_of,
    events_of,
    write,
)
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

ADD = "/admin/feeds/feedsource/add/"
URL = "https://tides.example.org/rss"
HOSTILE = "<script>alert(1)</script>\x1b\u202e"


@pytest.fixture
def editor(db):
    """A staff user with the Django permissions to add and change feeds."""
    user = UserFactory(username="edda", is_staff=True)
    names = ["add_feedsource", "change_feedsource"]
    user.user_permissions.set(Permission.objects.filter(codename__in=names, content_type__app_label="feeds"))
    return user


@pytest.fixture
def root(db):
    return UserFactory(username="root", is_staff=True, is_superuser=True)


@pytest.fixture
def feed(db):
    return FeedFactory(title="Tides", url=URL)


def paused(feed):
    assert lifecycle.pause(feed.pk, actor="ravi")
    return feed


def list_of(model):
    return reverse(f"admin:feeds_{model._meta.model_name}_changelist")


def page_of(row):
    return reverse(f"admin:feeds_{row._meta.model_name}_change", args=[row.pk])


def found(site, model, **query):
    return [row.pk for row in site.get(list_of(model), query).context["cl"].result_list]


# Adding


@pytest.mark.parametrize("who", ["editor", "root"])
def test_a_feed_is_added_by_a_form(sign_in, said, who, request):
    user = request.getfixturevalue(who)

    page = sign_in(user).post(ADD, {"url": " HTTPS://Tides.example.org/rss#top", "title": "Tides"}, follow=True)

    feed = FeedSource.objects.get()
    assert (feed.url, feed.title) == (URL, "Tides")
    assert said(page) == [f"Added feed {feed.pk}, Tides. It is checked when the job runs next."]
    assert page.redirect_chain[-1][0] == page_of(feed)
    assert (events_of(feed).get().kind, events_of(feed).get().actor) == ("FEED_ADDED", user.username)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("", "This field is required."),
        ("tides.example.org", "The URL 'tides.example.org' must begin with https:// or http://."),
        ("javascript:alert(1)", "The URL 'javascript:alert(1)' must begin with https:// or http://."),
        (
            "http://169.254.169.254/",
            "The host 169.254.169.254, port 80, is not allowed for feeds. Use a public",
        ),
        (URL.upper().replace("RSS", "rss"), "This URL already belongs to feed "),
        ("https://a\0b.example.org", "Null characters are not allowed."),
        (f"<script>{'x' * 10_000}", "The URL is too long: it has 10008 characters, and the limit is 8000."),
    ],
)
def test_what_is_refused_is_told_at_the_field(sign_in, editor, feed, url, told):
    page = sign_in(editor).post(ADD, {"url": url, "title": HOSTILE})

    assert page.status_code == 200
    assert list(page.context["form"].errors) == ["url"]
    assert told in page.context["form"].errors["url"][0]
    assert "The feed was not added." in page.content.decode()
    assert "<script>" not in page.content.decode().replace("<script>\n", "")
    assert FeedSource.objects.count() == 1


def test_a_title_that_is_too_long_is_told_at_its_field(sign_in, editor):
    page = sign_in(editor).post(ADD, {"url": URL, "title": "x" * 301})

    assert list(page.context["form"].errors) == ["title"]


# Permissions


def test_whoever_may_enter_may_look(sign_in, zed, feed):
    link = ClusterArticleFactory(raw_article__feed=feed)
    site = sign_in(zed)

    for row in (feed, link, link.raw_article, link.cluster, PurgedUrlFactory()):
        assert site.get(list_of(type(row))).status_code == 200
        assert site.get(page_of(row)).status_code == 200


def test_whoever_may_not_enter_may_not_look(sign_in, feed):
    for user in (UserFactory(is_staff=False), UserFactory(is_staff=True, is_active=False)):
        site = sign_in(user)
        for url in (list_of(FeedSource), page_of(feed), ADD):
            assert site.get(url).url.startswith("/admin/login/")


@pytest.mark.parametrize("who", ["olga", "zed"])
def test_to_look_is_not_to_act(sign_in, act, press, feed, who, request):
    user = request.getfixturevalue(who)
    before, site = columns_of(feed), sign_in(user)

    assert site.get(ADD).status_code == 403
    assert site.post(ADD, {"url": "https://moons.example.org"}).status_code == 403
    for verb in ("pause", "resume", "check_now"):
        assert press(user, verb, feed).status_code == 403
        act(user, verb, feed)
    assert "buttons" not in site.get(page_of(feed)).context
    assert "feedsource/add/" not in site.get(list_of(FeedSource)).content.decode()

    assert columns_of(feed) == before
    assert FeedSource.objects.count() == 1


@pytest.mark.parametrize("who", ["editor", "root"])
def test_nothing_is_changed_or_deleted_by_hand(sign_in, who, request):
    link = ClusterArticleFactory()
    rows = [link, link.cluster, link.raw_article, link.raw_article.feed, PurgedUrlFactory()]
    before, site = [columns_of(row) for row in rows], sign_in(request.getfixturevalue(who))

    for row in rows:
        url = page_of(row)
        assert site.post(url, {"title": "changed", "url": "changed"}).status_code == 403
        assert site.post(url.replace("/change/", "/delete/"), {"post": "yes"}).status_code == 403
        site.post(list_of(type(row)), {"action": "delete_selected", "_selected_action": row.pk, "post": "yes"})
        if not isinstance(row, FeedSource):
            assert site.post(f"{list_of(type(row))}add/", {}).status_code == 403

    assert [columns_of(row) for row in rows] == before


def test_one_permission_is_not_the_other(sign_in, press, editor, feed):
    editor.user_permissions.remove(Permission.objects.get(codename="add_feedsource"))
    assert sign_in(editor).get(ADD).status_code == 403
    assert press(editor, "pause", feed).status_code == 302

    editor.user_permissions.set(Permission.objects.filter(codename="add_feedsource"))
    assert sign_in(editor).get(ADD).status_code == 200
    assert press(editor, "resume", feed).status_code == 403


# Actions


def test_pausing_tells_what_became_of_each(act, editor, feed):
    rows = [feed, FeedFactory(), FeedFactory(), paused(FeedFactory())]

    assert act(editor, "pause", *rows) == ["Paused 3 feeds. Skipped 1 that was already paused."]

    assert FeedSource.objects.paused().count() == 4
    assert (events_of(feed).last().kind, events_of(feed).last().actor) == ("FEED_PAUSED", "edda")


def test_resuming_and_checking(act, editor, feed):
    rows = [paused(feed), FeedFactory()]

    assert act(editor, "check_now", *rows) == ["Made 1 feed due now. Skipped 1 that is paused."]
    assert act(editor, "resume", *rows) == ["Resumed 1 feed. Skipped 1 that is not paused."]
    assert act(editor, "resume", *rows) == ["Skipped 2 that are not paused."]

    assert [event.kind for event in events_of(feed)] == ["FEED_ADDED", "FEED_PAUSED", "FEED_RESUMED"]
    assert events_of(rows[1]).last().kind == "FEED_CHECK_ASKED"


def test_the_page_offers_what_can_be_done(sign_in, said, press, editor, feed):
    def offered():
        return [verb for verb, _ in sign_in(editor).get(page_of(feed)).context["buttons"]]

    assert offered() == ["check_now", "pause"]
    assert said(press(editor, "pause", feed, follow=True)) == ["Paused 1 feed."]
    assert offered() == ["resume"]
    assert said(press(editor, "pause", feed, follow=True)) == ["Skipped 1 that was already paused."]


def test_looking_does_nothing(sign_in, root, feed):
    for verb in ("pause", "resume", "check_now"):
        assert sign_in(root).get(page_of(feed).replace("change", verb)).status_code == 405
    assert press_missing(sign_in(root)) == 404


def press_missing(site):
    return site.post("/admin/feeds/feedsource/999999/pause/").status_code


# Lists and pages


def test_the_list_says_how_each_stands(sign_in, root, feed):
    write(feed, failures=2, failing_since=clock.now(), last_error="This is a web page.", checked_at=clock.now())
    text = sign_in(root).get(list_of(FeedSource)).content.decode()

    for said in ("Tides", "failed 2 times in a row, never answered", "This is a web page.", "due"):
        assert said in text


def test_feeds_are_found(sign_in, root, feed):
    failing, still = FeedFactory(title="Moons"), paused(FeedFactory(title="Stars"))
    write(failing, failures=1, failing_since=clock.now(), last_error="no", next_check_at=clock.now().replace(year=2200))
    site = sign_in(root)

    assert found(site, FeedSource, state="failing") == [failing.pk]
    assert found(site, FeedSource, state="paused") == [still.pk]
    assert found(site, FeedSource, state="due") == [feed.pk]
    assert found(site, FeedSource, state="nonsense") == []
    assert found(site, FeedSource, q="moon") == [failing.pk]
    assert found(site, FeedSource, q="tides.example.org") == [feed.pk]
    assert found(site, FeedSource, q=f"feed {feed.pk}") == [feed.pk]


def test_the_page_of_a_feed_shows_its_history_and_leads_to_its_articles(sign_in, root, feed):
    mine, _ = ArticleFactory(feed=feed), ArticleFactory()
    site = sign_in(root)

    page = site.get(page_of(feed))

    assert [event.kind for event in page.context["events"]] == ["FEED_ADDED"]
    assert f'<a href="/admin/feeds/rawarticle/?feed={feed.pk}">1</a>' in page.content.decode()
    assert found(site, RawArticle, feed=feed.pk) == [mine.pk]
    assert found(site, RawArticle, feed="x' OR 1") == []


def test_articles_are_found_by_number_and_by_url_and_not_by_reading_them_all(sign_in, root):
    article, other = ArticleFactory(title="Bridge closed", summary="Bridge closed"), ArticleFactory()
    site = sign_in(root)

    for term in (article.pk, f"article {article.pk}", f"#{article.pk}", f"{article.url}?utm_source=x#top"):
        assert found(site, RawArticle, q=term) == [article.pk]
    for term in ("Bridge", "%", "9" * 19, "https://"):
        with CaptureQueriesContext(connection) as queries:
            assert found(site, RawArticle, q=term) == []
        assert not [query for query in queries if "LIKE" in query["sql"].upper()]
    assert found(site, RawArticle, q=" ") == [other.pk, article.pk]


def test_what_was_purged_is_found_by_its_url(sign_in, root):
    url = "https://news.example.com/old"
    purged = PurgedUrlFactory(digest=addresses.digest(url))
    PurgedUrlFactory()
    site = sign_in(root)

    assert found(site, PurgedUrl, q=f"{url}?utm_source=x") == [purged.pk]
    assert found(site, PurgedUrl, q=purged.digest) == [purged.pk]
    assert found(site, PurgedUrl, q="https://news.example.com/other") == []
    assert found(site, PurgedUrl, q="old") == []


def test_clusters_are_found_by_number(sign_in, root):
    link, other = ClusterArticleFactory(), ClusterFactory()
    site = sign_in(root)

    assert found(site, EventCluster, q=link.cluster_id) == [link.cluster_id]
    assert found(site, EventCluster, q=other.title) == []
    assert found(site, ClusterArticle, q=link.pk) == [link.pk]


def test_a_cluster_shows_its_articles_and_what_it_has_become(sign_in, root, monkeypatch):
    old, new = ClusterFactory(), ClusterFactory(title="Bridge closed")
    EventCluster.objects.filter(pk=old.pk).update(merged_into=new)
    for n in range(3):
        ClusterArticleFactory(cluster=new, similarity=n / 10, raw_article__title=f"Article {n}")
    site = sign_in(root)

    tells = site.get(page_of(new)).content.decode()

    assert tells.index("Article 2") < tells.index("Article 1") < tells.index("Article 0")
    assert f'<a href="{page_of(new)}">Bridge closed</a>' in site.get(page_of(old)).content.decode()
    article = RawArticle.objects.get(title="Article 0")
    assert f'<a href="{page_of(new)}">Bridge closed</a>' in site.get(page_of(article)).content.decode()
    monkeypatch.setattr("feeds.admin.MOST_NAMED", 2)
    cut = site.get(page_of(new)).content.decode()
    assert "Article 1" in cut
    assert "Article 0" not in cut
    assert "and more" in cut


def test_only_what_is_of_the_web_is_a_link(sign_in, root):
    article = ArticleFactory(original_url="javascript:alert(1)")
    site = sign_in(root)

    text = site.get(page_of(article)).content.decode()

    assert f'<a href="{article.url}" rel="noreferrer noopener">{article.url}</a>' in text
    assert "javascript:alert(1)" in text
    assert 'href="javascript' not in text


def test_what_feeds_say_is_shown_as_text(sign_in, root):
    feed = FeedFactory(title=HOSTILE)
    write(
        feed,
        site_url="javascript:alert(1)",
        failures=1,
        failing_since=clock.now(),
        last_error=HOSTILE,
        etag=HOSTILE,
        last_modified=HOSTILE,
    )
    article = ArticleFactory(
        feed=feed, title=HOSTILE, summary=HOSTILE, author=HOSTILE, original_url='https://x"onclick="alert(1)'
    )
    link = ClusterArticleFactory(raw_article=article, cluster__title=HOSTILE)
    site = sign_in(root)

    for row in (feed, article, link, link.cluster):
        for url in (list_of(type(row)), page_of(row)):
            text = site.get(url).content.decode()
            assert "<script>alert" not in text
            assert '"onclick="' not in text
            assert 'href="javascript' not in text
