from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from lxml import html

from console.pages import feeds
from feeds import sources
from feeds.models import FeedSource
from tests.factories import (
    ArticleFactory,
    BriefFactory,
    BriefItemFactory,
    ClusterArticleFactory,
    ClusterFactory,
    FeedFactory,
    events_of,
    write,
)
from tests.feeds.hostile_words import TITLES, URLS
from work import clock

pytestmark = [pytest.mark.edge, pytest.mark.django_db]

HOUR = timedelta(hours=1)
OPML = b"""<opml version="2.0"><body>
<outline text="One" xmlUrl="https://one.example.com/feed.xml"/>
<outline text="Bad" xmlUrl="javascript:alert(1)"/>
<outline text="One again" xmlUrl="https://one.example.com/feed.xml"/>
</body></opml>"""


@pytest.fixture
def editor(olga):
    """An operator with the Django permissions to add and change feeds."""
    names = ["add_feedsource", "change_feedsource"]
    olga.user_permissions.set(Permission.objects.filter(codename__in=names))
    return olga


def text_of(page):
    return " ".join(page.content.decode().split())


def links_out_of(page):
    found = html.fromstring(page.content.decode()).xpath("//main//a/@href")
    return [each for each in found if not each.startswith(("/", "?", "#"))]


# The list


def test_the_list_tells_how_each_feed_stands(seen_by, ravi):
    good = write(FeedFactory(title="Good"), checked_at=clock.now(), succeeded_at=clock.now() - HOUR)
    bad = write(
        FeedFactory(title="Bad"),
        checked_at=clock.now(),
        failures=3,
        failing_since=clock.now(),
        last_error="404 Not Found",
    )
    late = write(FeedFactory(title="Late"), paused_at=clock.now() - HOUR, paused_by="olga")

    page = seen_by(ravi, "/feeds/")

    assert [feed.pk for feed in page.context["slice"].rows] == [late.pk, bad.pk, good.pk]
    said = text_of(page)
    for words in ("404 Not Found", "failed 3 times in a row, never answered", "paused by olga 1 hour ago"):
        assert words in said
    assert "Add feeds" not in said


@pytest.mark.parametrize(("state", "number"), [("failing", 1), ("paused", 1), ("due", 2), ("lost", 3), ("all", 3)])
def test_the_list_has_the_feeds_of_one_state(seen_by, ravi, state, number):
    FeedFactory()
    write(FeedFactory(), failures=1, failing_since=clock.now(), last_error="404")
    write(FeedFactory(), paused_at=clock.now(), paused_by="olga")

    assert len(seen_by(ravi, f"/feeds/?state={state}").context["slice"].rows) == number


def test_an_empty_list_says_what_to_do(seen_by, ravi, editor):
    assert "No feeds yet." in text_of(seen_by(ravi, "/feeds/"))
    assert "No feed is paused." in text_of(seen_by(ravi, "/feeds/?state=paused"))
    assert 'href="/feeds/add/"' in text_of(seen_by(editor, "/feeds/"))


# The page of a feed


def test_a_feed_tells_what_it_brings_and_how_it_fails(seen_by, ravi):
    feed = write(
        FeedFactory(),
        failures=2,
        failing_since=clock.now(),
        last_error="no such host",
        next_check_at=clock.now() + HOUR,
    )
    for n in range(3):
        ArticleFactory(feed=feed, title=f"Headline of {n}")

    page = seen_by(ravi, f"/feeds/{feed.pk}/")

    said = text_of(page)
    assert "no such host<br>Backing off; next try" in said
    assert "<dd>3 articles</dd>" in said
    assert "<dt>Failing since</dt>" in said
    assert said.index("Headline of 2") < said.index("Headline of 0")
    assert "FEED_ADDED" in said
    assert "Check now" not in said


def test_articles_are_counted_as_far_as_it_costs_nothing(seen_by, ravi, monkeypatch):
    monkeypatch.setattr(feeds, "MOST_COUNTED", 2)
    feed = FeedFactory()
    for _ in range(4):
        ArticleFactory(feed=feed)

    assert "<dd>over 2</dd>" in text_of(seen_by(ravi, f"/feeds/{feed.pk}/"))


def test_what_strangers_wrote_is_text_and_followed_only_if_it_is_of_the_web(seen_by, ravi):
    feed = write(
        FeedFactory(),
        title=TITLES[0],
        site_url="javascript:alert(1)",
        failures=1,
        failing_since=clock.now(),
        last_error=TITLES[1],
    )
    cluster = ClusterFactory(title=TITLES[0])
    for n, url in enumerate(URLS):
        article = ArticleFactory(feed=feed, title=TITLES[n % len(TITLES)], url=url)
        ClusterArticleFactory(cluster=cluster, raw_article=article)

    for path in ("/feeds/", f"/feeds/{feed.pk}/", "/clusters/", f"/clusters/{cluster.pk}/"):
        page = seen_by(ravi, path)
        said = page.content.decode()
        assert page.status_code == 200
        assert "<script>alert" not in said
        assert "<img src=x" not in said
        assert "\u202e" not in said
        assert all(each.startswith("https://news") for each in links_out_of(page)), path
        assert "&lt;script&gt;" in said, path


# Actions on a feed


def test_a_feed_is_checked_now_paused_and_resumed(pressed_by, editor):
    feed = write(FeedFactory(), next_check_at=clock.now() + HOUR)
    page = f"/feeds/{feed.pk}/"

    assert pressed_by(editor, f"{page}check/").said == ["Made 1 feed due now."]
    assert pressed_by(editor, f"{page}pause/", reason="too loud").said == ["Paused 1 feed."]
    assert pressed_by(editor, f"{page}pause/").said == ["Skipped 1 that was already paused."]
    assert pressed_by(editor, f"{page}check/").said == ["Skipped 1 that is paused."]
    assert pressed_by(editor, f"{page}resume/").said == ["Resumed 1 feed."]
    assert pressed_by(editor, f"{page}resume/").said == ["Skipped 1 that is not paused."]

    paused = events_of(feed).get(kind="FEED_PAUSED")
    assert (paused.actor, paused.message) == ("olga", "too loud")


@pytest.mark.parametrize("action", ["check", "pause", "resume"])
def test_actions_are_for_whom_they_are_permitted_to(pressed_by, seen_by, editor, ravi, zed, action):
    feed = FeedFactory()
    before = list(events_of(feed))

    for who in (ravi, zed):
        assert pressed_by(who, f"/feeds/{feed.pk}/{action}/").status_code == 403
    assert seen_by(editor, f"/feeds/{feed.pk}/{action}/").status_code == 405
    assert pressed_by(editor, f"/feeds/{feed.pk + 1}/{action}/").status_code == 404
    assert list(events_of(feed)) == before


def test_a_feed_is_added_and_one_that_cannot_be_says_why(pressed_by, seen_by, editor):
    page = pressed_by(editor, "/feeds/add/", url="https://news.example.com/feed.xml", title="News")
    feed = FeedSource.objects.get()
    assert page.redirect_chain == [(f"/feeds/{feed.pk}/", 302)]
    assert page.said == [f"Added feed {feed.pk}, News. It is checked when the job runs next."]

    again = pressed_by(editor, "/feeds/add/", url="https://news.example.com/feed.xml")
    assert f"This URL already belongs to feed {feed.pk} " in text_of(again)
    bad = pressed_by(editor, "/feeds/add/", url="javascript:alert(1)")
    assert 'value="javascript:alert(1)"' in text_of(bad)
    assert 'role="alert"' in text_of(bad)
    assert FeedSource.objects.count() == 1
    assert 'for="id_url"' in text_of(seen_by(editor, "/feeds/add/"))


def test_a_list_is_rehearsed_and_then_taken_in(pressed_by, editor):
    def send(**more):
        return pressed_by(editor, "/feeds/import/", file=SimpleUploadedFile("feeds.opml", OPML), **more)

    rehearsed = send(rehearse="yes")
    assert "nothing has been added yet" in text_of(rehearsed)
    assert not FeedSource.objects.exists()
    done = send()

    feed = FeedSource.objects.get()
    assert "1 added, 1 bad url, 1 twice." in text_of(done)
    assert f'<a href="/feeds/{feed.pk}/">https://one.example.com/feed.xml</a>' in text_of(done)
    assert links_out_of(done) == []


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({}, "No file was sent."),
        ({"file": SimpleUploadedFile("feeds.opml", b"<html>")}, "This is not a list of feeds: "),
    ],
)
def test_what_is_no_list_is_refused(pressed_by, editor, sent, said):
    page = pressed_by(editor, "/feeds/import/", **sent)

    assert page.redirect_chain == [("/feeds/add/", 302)]
    assert page.said[0].startswith(f"No feed was added. {said}")


def test_feeds_are_exported_as_a_list(seen_by, ravi):
    sources.add("https://news.example.com/feed.xml", title="News", actor="olga")

    page = seen_by(ravi, "/feeds/export/")

    assert page["Content-Disposition"] == 'attachment; filename="feeds.opml"'
    assert b'xmlUrl="https://news.example.com/feed.xml"' in page.content


@pytest.mark.parametrize("path", ["/feeds/add/", "/feeds/import/"])
def test_feeds_are_added_by_whom_it_is_permitted_to(pressed_by, client, ravi, zed, path):
    assert client.post(path).status_code == 302
    for who in (ravi, zed):
        assert pressed_by(who, path, url="https://news.example.com/feed.xml").status_code == 403
    assert not FeedSource.objects.exists()


# Clusters


def test_events_are_listed_with_the_briefs_that_told_of_them(seen_by, ravi):
    told = ClusterFactory(title="Bridge closed", article_count=3)
    other = ClusterFactory(title="Cats sleep", merged_into=told)
    brief = BriefFactory(name="2026-05-04")
    BriefItemFactory(brief=brief, cluster=told)

    page = seen_by(ravi, "/clusters/")

    assert [cluster.pk for cluster in page.context["slice"].rows] == [other.pk, told.pk]
    assert '<a href="/briefs/2026-05-04/">2026-05-04</a>' in text_of(page)
    assert f'merged into <a href="/clusters/{told.pk}/">event {told.pk}</a>' in text_of(page)


def test_an_event_tells_its_articles_sources_and_briefs(seen_by, ravi):
    cluster = ClusterFactory(title="Bridge closed", article_count=2)
    near, far = (ArticleFactory(title=title) for title in ("Near", "Far"))
    ClusterArticleFactory(cluster=cluster, raw_article=far, similarity=0.5)
    ClusterArticleFactory(cluster=cluster, raw_article=near, similarity=0.9)
    BriefItemFactory(brief=BriefFactory(name="2026-05-04"), cluster=cluster)

    page = seen_by(ravi, f"/clusters/{cluster.pk}/")

    assert [link.raw_article for link in page.context["links"]] == [near, far]
    assert sorted(links_out_of(page)) == sorted([near.url, far.url])
    said = text_of(page)
    assert "90%" in said
    assert near.feed.title in said
    assert 'href="/briefs/2026-05-04/"' in said


def test_without_events_their_list_says_what_makes_them(seen_by, ravi):
    assert "No events yet." in text_of(seen_by(ravi, "/clusters/"))


# Permissions and queries


@pytest.mark.parametrize("path", ["/feeds/", "/feeds/1/", "/feeds/export/", "/clusters/", "/clusters/1/"])
def test_whoever_is_in_no_workspace_is_told_nothing(seen_by, client, zed, path):
    assert client.get(path).status_code == 302
    assert seen_by(zed, path).status_code == 403


@pytest.mark.parametrize("path", ["/feeds/1/", f"/feeds/{10**30}/", "/clusters/1/", f"/clusters/{10**30}/"])
def test_what_is_not_there_is_not_found(seen_by, ravi, path):
    assert seen_by(ravi, path).status_code == 404


def test_pages_ask_few_questions_however_much_there_is(asks_at_most, editor):
    cluster, brief = ClusterFactory(), BriefFactory()
    for n in range(20):
        article = ArticleFactory()
        ClusterArticleFactory(cluster=cluster, raw_article=article)
        BriefItemFactory(brief=brief, cluster=ClusterFactory(), position=n)

    asks_at_most(8, editor, "/feeds/")
    asks_at_most(10, editor, f"/feeds/{article.feed_id}/")
    asks_at_most(8, editor, "/clusters/")
    asks_at_most(8, editor, f"/clusters/{cluster.pk}/")


def test_a_brief_stands_in_the_frame_of_all_pages_and_tells_nothing_of_who_reads_it(seen_by, editor, ravi, pressed_by):
    brief = BriefFactory(name="2026-05-04")
    BriefItemFactory(brief=brief)
    pressed_by(editor, f"/feeds/{FeedFactory().pk}/check/", follow=False)

    pages = [seen_by(who, "/briefs/2026-05-04/") for who in (editor, ravi)]

    assert pages[0].content == pages[1].content
    said = text_of(pages[0])
    assert '<a href="/runs/">Runs</a>' in said
    for kept_back in ("olga", "csrf", "As of", "Made 1 feed due now"):
        assert kept_back not in said
