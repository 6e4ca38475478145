"""Which articles are deleted, which stay, and what replaces them (seed 001, 8.3)."""

import hashlib

import pytest
from django.db import IntegrityError, connection, transaction

from feeds.models import BriefArticle, ClusterArticle, EventCluster, PurgedUrl, RawArticle
from feeds.retention import articles
from feeds.retention.articles import ARTICLES
from feeds.retention.leftovers import CLUSTERS, TOMBSTONES
from tests.factories import (
    ArticleFactory,
    BriefArticleFactory,
    BriefItemFactory,
    ClusterArticleFactory,
    ClusterFactory,
    PurgedUrlFactory,
    age,
    write,
)
from work import pruning

pytestmark = pytest.mark.django_db
DAY = 24 * 3600


@pytest.fixture(autouse=True)
def policy(settings):
    settings.ADE_KEEP_ARTICLES_DAYS, settings.ADE_KEEP_TOMBSTONES_DAYS = 90, 400


def old(days=91, **values):
    return age(ArticleFactory(**values), days * DAY)


def purge(policy=ARTICLES):
    gone = {}
    for batch in policy.purge("olga"):
        for table, number in batch.gone.items():
            gone[table] = gone.get(table, 0) + number
    return gone


def left(model):
    return set(model.objects.values_list("pk", flat=True))


def test_an_article_goes_when_it_was_seen_too_long_ago():
    young, _ = old(89), old(91)

    assert purge() == {"raw_articles": 1, "cluster_articles": 0, "tombstones_set": 1}

    assert left(RawArticle) == {young.pk}


def test_what_counts_is_when_it_was_seen_and_not_when_it_happened():
    late = ArticleFactory()
    write(late, happened_at=late.seen_at.replace(year=2001))

    assert purge() == {}

    assert left(RawArticle) == {late.pk}


def test_with_no_policy_everything_stays(settings):
    settings.ADE_KEEP_ARTICLES_DAYS = settings.ADE_KEEP_TOMBSTONES_DAYS = None
    article, tombstone, cluster = old(10_000), PurgedUrlFactory(), ClusterFactory()
    age(tombstone, 10_000 * DAY), age(cluster, 10_000 * DAY)

    assert (purge(), purge(CLUSTERS), purge(TOMBSTONES)) == ({}, {}, {})

    assert (left(RawArticle), left(PurgedUrl), left(EventCluster)) == ({article.pk}, {tombstone.pk}, {cluster.pk})
    assert {each.keeps() for each in (ARTICLES, CLUSTERS, TOMBSTONES)} == {"off"}


def test_what_a_brief_names_is_never_deleted():
    named, other = old(), old()
    BriefArticleFactory(raw_article=named)

    purge()

    assert left(RawArticle) == {named.pk} != {other.pk}
    assert BriefArticle.objects.get().raw_article == named


def test_a_link_goes_with_its_article_and_is_counted_off_its_cluster():
    cluster, stays = ClusterFactory(article_count=3), ArticleFactory()
    for article in (old(), old(), stays):
        ClusterArticleFactory(cluster=cluster, raw_article=article)

    assert purge() == {"raw_articles": 2, "cluster_articles": 2, "tombstones_set": 2}

    cluster.refresh_from_db()
    assert (cluster.article_count, cluster.links.get().raw_article) == (1, stays)


def test_a_tombstone_takes_the_place_of_each():
    urls = {old().url for _ in range(3)}

    purge()

    assert set(PurgedUrl.objects.values_list("digest", flat=True)) == {
        hashlib.sha256(url.encode()).hexdigest() for url in urls
    }


def test_a_tombstone_that_is_there_already_begins_anew():
    article = old()
    there = PurgedUrlFactory(digest=hashlib.sha256(article.url.encode()).hexdigest())
    age(there, 300 * DAY)

    assert purge()["tombstones_set"] == 0

    fresh = PurgedUrl.objects.get()
    assert fresh.pk == there.pk
    assert fresh.purged_at > there.purged_at


def test_a_tombstone_goes_when_it_is_old():
    young, _ = age(PurgedUrlFactory(), 399 * DAY), age(PurgedUrlFactory(), 401 * DAY)

    assert purge(TOMBSTONES) == {"purged_urls": 1}

    assert left(PurgedUrl) == {young.pk}


def test_an_empty_cluster_goes_when_it_is_old_and_nothing_refers_to_it():
    young, other, linked, named, target = (ClusterFactory() for _ in range(5))
    ClusterArticleFactory(cluster=linked, raw_article=old())
    BriefItemFactory(cluster=named)
    merged = ClusterFactory(merged_into=target)
    for each in (other, linked, named, target, merged):
        age(each, 91 * DAY)

    assert purge(CLUSTERS) == {"event_clusters": 2}

    # The cluster that referred to the merge target was deleted just now.
    assert left(EventCluster) == {young.pk, linked.pk, named.pk, target.pk}
    assert purge(CLUSTERS) == {"event_clusters": 1}


def test_a_cluster_of_today_stays_also_if_it_tells_of_what_is_long_past():
    cluster = ClusterFactory()
    created_at = cluster.created_at
    write(age(cluster, 91 * DAY), created_at=created_at)

    assert purge(CLUSTERS) == {}


def test_it_is_done_again_without_any_effect():
    BriefArticleFactory(raw_article=old())
    old()
    purge()
    before = left(RawArticle), left(PurgedUrl)

    assert sum(purge().values()) == 0

    assert (left(RawArticle), left(PurgedUrl)) == before


def test_many_go_page_by_page_and_those_that_stay_are_passed_over(monkeypatch):
    # Pages of three rows, however slow the machine is.
    for size in ("FEWEST", "FIRST", "MOST"):
        monkeypatch.setattr(pruning, size, 3)
    article = old()
    # All have the same timestamp, so that pages continue by ID.
    same = [ArticleFactory(feed=article.feed, seen_at=article.seen_at) for _ in range(9)]
    for named in same[1:6]:
        BriefArticleFactory(raw_article=named)

    assert [batch.gone["raw_articles"] for batch in ARTICLES.purge("olga")] == [2, 0, 2, 1]

    assert left(RawArticle) == {each.pk for each in same[1:6]}


def test_a_rehearsal_tells_what_would_go_and_what_is_kept():
    first, named = old(120), old(100)
    old(91), ArticleFactory()
    BriefArticleFactory(raw_article=named)

    due = ARTICLES.due()

    assert (due.rows, due.oldest, due.kept) == (2, first.seen_at, 1)
    assert (CLUSTERS.due().rows, TOMBSTONES.due().rows) == (0, 0)
    assert RawArticle.objects.count() == 4


def test_the_database_itself_refuses_what_the_rules_should_have_prevented():
    article = BriefArticleFactory().raw_article

    @transaction.atomic
    def delete_what_is_named():
        pruning.delete(RawArticle, [article.pk])
        connection.check_constraints()

    with pytest.raises(IntegrityError):
        delete_what_is_named()


def test_rows_of_other_tables_are_not_deleted():
    with pytest.raises(TypeError, match=r"feeds.BriefArticle are not deleted"):
        pruning.delete(BriefArticle, [1])


def test_a_moment_of_contention_passes_a_page_over(monkeypatch):
    old()

    def meet(ids):
        raise pruning.Contended("somebody else")

    monkeypatch.setattr(articles, "unlink", meet)

    assert purge() == {}
    assert (RawArticle.objects.count(), PurgedUrl.objects.count(), ClusterArticle.objects.count()) == (1, 0, 0)
