import pytest

from feeds.models import ClusterArticle, RawArticle
from tests.breaches import assert_all_hold, breaches, plant, plant_copy, unguard
from tests.factories import ClusterFactory
from tests.feeds.clustered import article, cluster

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def world():
    for event in ((1, 0), (1, 0.1), (0, 1)):
        article(5, *event)
    cluster()
    assert_all_hold()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_cluster_that_counts_wrong(count):
    wrong = ClusterArticle.objects.first().cluster
    plant(wrong, article_count=count)

    assert breaches("a_cluster_counts_its_articles") == [("cluster", wrong.pk)]


def test_a_cluster_that_counts_what_is_not_there():
    empty = ClusterFactory(article_count=1)

    assert breaches("a_cluster_counts_its_articles") == [("cluster", empty.pk)]


def test_an_article_in_two_clusters():
    link = ClusterArticle.objects.first()
    unguard(ClusterArticle)
    plant_copy(link, id=999_999, cluster_id=ClusterFactory(article_count=1).pk)

    assert breaches("an_article_is_in_one_cluster") == [("article", link.raw_article_id)]


def test_an_article_that_is_stored_twice():
    stored = RawArticle.objects.first()
    unguard(RawArticle)
    plant_copy(stored, id=999_999)

    assert breaches("an_article_is_stored_once") == [("article", 999_999)]
