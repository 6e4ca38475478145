"""`unlink`, with which retention takes articles out of clusters, and `refresh`, which clustering uses."""

from datetime import timedelta

import numpy
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from feeds.clustering import links
from feeds.clustering.consistency import problems
from feeds.models import ClusterArticle, EventCluster
from tests.factories import ArticleFactory, ClusterArticleFactory, ClusterFactory, columns_of, write
from work import clock

NOON = clock.now().replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=1)


def vector(*numbers):
    made = numpy.zeros(4, "<f4")
    made[: len(numbers)] = numbers
    return (made / numpy.linalg.norm(made)).tobytes()


def article(hours=0, numbers=(1,), model="model-1", **values):
    at = NOON + timedelta(hours=hours)
    return ArticleFactory(
        seen_at=at, happened_at=at, embedding=vector(*numbers), embedding_model=model if numbers else "", **values
    )


def cluster_of(*articles):
    cluster = ClusterFactory(first_at=NOON, article_count=len(articles))
    for each in articles:
        ClusterArticleFactory(cluster=cluster, raw_article=each)
    return cluster


def unlink(*articles):
    with transaction.atomic():
        return links.unlink([each.pk for each in articles])


@transaction.atomic
def refresh(cluster):
    links.refresh(links.lock([cluster.pk]))
    cluster.refresh_from_db()


@pytest.mark.django_db
def test_an_article_leaves_its_cluster():
    first, second, third = article(0), article(1), article(2)
    cluster = cluster_of(first, second, third)

    assert unlink(first, third) == 2

    cluster.refresh_from_db()
    assert cluster.article_count == 1
    assert cluster.links.get().raw_article == second


@pytest.mark.django_db
def test_those_without_a_cluster_are_not_counted():
    alone, linked = article(), article()
    cluster_of(linked)

    assert unlink(alone, linked) == 1
    assert unlink(alone, linked) == 0


@pytest.mark.django_db
def test_when_a_cluster_was_is_said_of_those_that_stay():
    articles = [article(hours) for hours in (0, 3, 1, 2)]
    refresh(cluster := cluster_of(*articles))

    unlink(*articles[:2])

    cluster.refresh_from_db()
    assert (cluster.first_at, cluster.last_at) == (articles[2].happened_at, articles[3].happened_at)
    assert list(problems()) == []


@pytest.mark.django_db
def test_what_it_is_about_stays_as_clustering_has_found_it():
    articles = [article(0, (1, 0), title="a"), article(1, (0, 1), title="b"), article(2, (0.1, 1), title="c")]
    refresh(cluster := cluster_of(*articles))
    said = {**columns_of(cluster), "article_count": 2, "first_at": articles[1].happened_at}
    near = cluster.links.exclude(raw_article=articles[0]).order_by("pk").values_list("pk", "similarity")
    before = list(near)

    unlink(articles[0])

    assert columns_of(cluster) == said
    assert list(near) == before


@pytest.mark.django_db
def test_what_stays_is_not_read_to_take_something_out():
    articles = [article(n, (n, 1)) for n in range(20)]
    cluster_of(*articles[::2]), cluster_of(*articles[1::2])

    with CaptureQueriesContext(connection) as queries:
        unlink(*articles[:4])

    (read,) = [query["sql"] for query in queries if "embedding" in query["sql"]]
    assert 'COUNT("raw_articles"."embedding")' in read
    assert not [query for query in queries if "similarity" in query["sql"]]


@pytest.mark.django_db
def test_what_clustering_says_of_a_cluster_is_of_those_that_are_left():
    articles = [article(0, (1, 0), title="a"), article(1, (0, 1), title="b"), article(2, (0.1, 1), title="c")]
    cluster = cluster_of(*articles)
    unlink(articles[0])

    refresh(cluster)

    assert (cluster.title, cluster.embedding_model) == ("b", "model-1")
    centroid = numpy.frombuffer(bytes(cluster.centroid), "<f4")
    assert numpy.linalg.norm(centroid) == pytest.approx(1, abs=1e-6)
    assert centroid[:2] == pytest.approx([0.05, 0.9987], abs=0.001)
    assert [link.similarity for link in cluster.links.order_by("raw_article")] == [0.9988, 0.9988]


@pytest.mark.django_db
def test_vectors_of_two_models_are_not_mixed():
    old, new = article(0, (1, 0)), article(1, (0, 1), model="model-2")
    cluster = cluster_of(old, new)

    refresh(cluster)

    assert (cluster.embedding_model, bytes(cluster.centroid)) == ("model-2", vector(0, 1))


@pytest.mark.django_db
def test_a_cluster_has_no_centre_when_nothing_with_a_vector_is_left():
    first, second = write(article(0), embedding=None, embedding_model=""), article(1)
    cluster = write(cluster_of(first, second), centroid=vector(1), embedding_model="model-1")

    unlink(second)

    cluster.refresh_from_db()
    assert (cluster.centroid, cluster.embedding_model) == (None, "")
    assert list(problems()) == []


@pytest.mark.django_db
def test_clustering_takes_the_centre_of_a_cluster_without_vectors():
    first, second = (write(article(n), embedding=None, embedding_model="") for n in range(2))
    cluster = write(cluster_of(first, second), centroid=vector(1), embedding_model="model-1")

    refresh(cluster)

    assert (cluster.centroid, cluster.embedding_model, cluster.title) == (None, "", first.title)


@pytest.mark.django_db
def test_a_cluster_that_is_left_empty_stays_as_it_was():
    first, second = article(0), article(1)
    cluster = cluster_of(first, second)
    before = columns_of(cluster)

    unlink(first, second)

    assert columns_of(cluster) == before | {"article_count": 0}


@pytest.mark.django_db
def test_many_articles_of_many_clusters_leave_at_once(monkeypatch, django_assert_max_num_queries):
    monkeypatch.setattr(links, "PIECE", 40)
    clusters = [cluster_of(article()) for _ in range(60)] + [cluster_of(article(), article()) for _ in range(10)]

    with django_assert_max_num_queries(30):
        assert unlink(*(link.raw_article for link in ClusterArticle.objects.select_related("raw_article"))) == 80

    assert not EventCluster.objects.exclude(article_count=0).exists()
    assert len(clusters) == 70


def test_two_at_once_unlink_each_article_once(threads):
    articles = [article(n) for n in range(12)]
    clusters = [cluster_of(*articles[start : start + 4]) for start in (0, 4, 8)]

    # In opposite orders, with four articles in common.
    answers = threads.together([lambda: unlink(*articles[:8]), lambda: unlink(*articles[:3:-1])])

    assert sum(answers) == 12
    for cluster in clusters:
        cluster.refresh_from_db()
        assert cluster.article_count == 0


def test_one_that_was_moved_meanwhile_leaves_its_new_cluster(threads):
    here, there = cluster_of(moving := article(0), article(1)), cluster_of(article(2))

    def move():
        links.lock([here.pk, there.pk])
        links.remove(ClusterArticle.objects.filter(raw_article=moving))
        links.insert([(there.pk, moving.pk)])

    moved = threads.hold(move)
    unlinking = threads.start(lambda: unlink(moving))
    unlinking.waits()
    moved.commit()

    assert unlinking.answer() == 1
    counts = EventCluster.objects.order_by("pk").values_list("article_count", flat=True)
    assert list(counts) == [1, 1]
    assert not ClusterArticle.objects.filter(raw_article=moving).exists()
