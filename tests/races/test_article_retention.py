"""Article retention and concurrent references to the articles, in both orders, on real connections (F18)."""

import pytest
from django.db import IntegrityError, connection, transaction

from feeds.addresses import digest
from feeds.briefs import publishing
from feeds.clustering import links
from feeds.models import BriefArticle, ClusterArticle, PurgedUrl, RawArticle
from feeds.retention import articles
from feeds.retention.articles import ARTICLES
from feeds.retention.leftovers import TOMBSTONES
from tests.factories import ArticleFactory, BriefArticleFactory, ClusterFactory, PurgedUrlFactory, age
from tests.races.invariants import assert_all_hold

DAY = 24 * 3600
YOUNG = "Seen today"


@pytest.fixture(autouse=True)
def policy(settings, transactional_db):
    settings.ADE_KEEP_ARTICLES_DAYS = 90


@pytest.fixture
def article():
    return age(ArticleFactory(), 91 * DAY)


@pytest.fixture
def item():
    """An item of a brief that already has content."""
    return BriefArticleFactory(raw_article=ArticleFactory(title=YOUNG), item__article_count=1000).item


def purge():
    return sum(batch.gone.get("raw_articles", 0) for batch in ARTICLES.purge("olga"))


def name(article, item):
    """Refer to the article as publishing a brief does, with the row locked."""
    if publishing._lock(RawArticle, {article.pk}):
        BriefArticleFactory(raw_article=article, item=item)
        return True
    return False


def name_without_holding(article, item):
    BriefArticleFactory(raw_article=article, item=item)


def everything_fits():
    """Check that every reference has its article, and every deleted article its tombstone."""
    named = set(BriefArticle.objects.values_list("raw_article_id", flat=True))
    assert named <= set(RawArticle.objects.values_list("pk", flat=True))
    connection.check_constraints()
    assert_all_hold()
    return set(RawArticle.objects.exclude(title=YOUNG).values_list("pk", flat=True))


def test_a_purge_passes_over_what_is_being_named(threads, article, item):
    naming = threads.hold(lambda: name(article, item))

    purging = threads.start(purge)
    purging.waits()
    assert naming.commit()

    assert purging.answer() == 0
    assert everything_fits() == {article.pk}
    assert not PurgedUrl.objects.exists()


@pytest.mark.parametrize("point", ["retention.articles.selected", "retention.articles.before_commit"])
def test_who_names_what_is_being_purged_waits_and_hears_that_it_is_gone(threads, step_at, article, item, point):
    at = step_at(point)
    purging = threads.start(purge)
    at.until_reached()

    @transaction.atomic
    def publish():
        return name(article, item)

    naming = threads.start(publish)
    assert naming.waits()
    at.go_on()

    assert (purging.answer(), naming.answer()) == (1, False)
    assert everything_fits() == set()


def test_who_does_not_hold_it_is_refused_by_the_database_or_was_first(threads, step_at, article, item):
    at = step_at("retention.articles.selected")
    purging = threads.start(purge)
    at.until_reached()

    @transaction.atomic
    def publish():
        name_without_holding(article, item)

    naming = threads.start(publish)
    naming.waits()
    at.go_on()

    assert purging.answer() == 1
    assert isinstance(naming.error(), IntegrityError)
    assert everything_fits() == set()


def test_a_reference_that_was_committed_after_the_page_was_read_survives(threads, monkeypatch, article, item):
    """Only the recheck can find it: the page was read before the brief referred to the article."""
    purge_these = articles._purge_batch

    def name_first(ids):
        threads.start(lambda: name_without_holding(article, item)).answer()
        return purge_these(ids)

    monkeypatch.setattr(articles, "_purge_batch", name_first)

    assert purge() == 0

    assert everything_fits() == {article.pk}


def test_a_naming_that_is_taken_back_keeps_nothing(threads, article, item):
    naming = threads.hold(lambda: name(article, item))
    naming.roll_back()

    assert purge() == 1


def test_several_purge_at_once_and_each_article_goes_once(threads, item):
    old = [age(ArticleFactory(), 91 * DAY) for _ in range(40)]
    cluster = ClusterFactory(article_count=40)
    ClusterArticle.objects.bulk_create(ClusterArticle(cluster=cluster, raw_article=each) for each in old)
    for each in old[::4]:
        BriefArticleFactory(raw_article=each, item=item)

    assert sum(threads.together([purge] * 4)) + purge() == 30

    assert everything_fits() == {each.pk for each in old[::4]}
    assert PurgedUrl.objects.count() == 30
    cluster.refresh_from_db()
    assert cluster.article_count == cluster.links.count() == 10


def test_naming_and_purging_from_both_ends(threads, item):
    old = [age(ArticleFactory(), 91 * DAY) for _ in range(30)]

    def name_all():
        named = 0
        for each in reversed(old):
            with transaction.atomic():
                named += name(each, item)
        return named

    purged, named = threads.together([purge, name_all])
    purged += purge()

    assert purged + named == 30
    assert len(everything_fits()) == named == BriefArticle.objects.exclude(title=YOUNG).count()
    assert PurgedUrl.objects.count() == purged


def test_an_old_tombstone_that_somebody_else_lets_go_meanwhile_is_set_again(threads, settings, article):
    settings.ADE_KEEP_TOMBSTONES_DAYS = 400
    age(PurgedUrlFactory(digest=digest(article.url)), 401 * DAY)
    letting_go = threads.hold(lambda: sum(batch.gone["purged_urls"] for batch in TOMBSTONES.purge("otto")))

    purging = threads.start(purge)
    assert purging.waits()
    assert letting_go.commit() == 1

    assert purging.answer() == 1
    assert everything_fits() == set()
    assert PurgedUrl.objects.get().digest == digest(article.url)


def test_a_link_that_is_taken_away_meanwhile_is_waited_for(threads, article):
    cluster = ClusterFactory(article_count=1)
    ClusterArticle.objects.create(cluster=cluster, raw_article=article)
    unlinking = threads.hold(lambda: links.unlink([article.pk]))

    purging = threads.start(purge)
    assert purging.waits()
    unlinking.commit()

    assert purging.answer() == 1
    cluster.refresh_from_db()
    assert cluster.article_count == 0
    assert everything_fits() == set()
