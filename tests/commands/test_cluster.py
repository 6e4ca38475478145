from datetime import timedelta

import pytest

from feeds.models import EventCluster
from tests.factories import ClusterArticleFactory, ClusterFactory, write
from tests.feeds.clustered import article, cluster

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def told():
    """Two articles about one event, and one about another."""
    articles = [article(9, 1, 0), article(8, 1, 0.1), article(7, 0, 1)]
    cluster()
    return articles


def test_list_has_the_newest_first_and_chooses(manage, told):
    several, one = EventCluster.objects.order_by("pk")

    def ids(*arguments):
        return [row["id"] for row in manage("cluster", "list", *arguments, "--json").json["clusters"]]

    assert ids() == [one.pk, several.pk]
    assert ids("--articles", 2) == [several.pk]
    assert ids("--limit", 1) == [one.pk]
    assert ids("--before", one.pk) == [several.pk]
    assert told[2].title in manage("cluster", "list").out


def test_show_has_its_articles_with_the_latest_first(manage, told):
    found = EventCluster.objects.get(article_count=2)

    shown = manage("cluster", "show", found.pk, "--json").json

    assert (shown["title"], shown["article_count"]) == (found.title, 2)
    assert [each["id"] for each in shown["articles"]] == [told[1].pk, told[0].pk]
    assert shown["articles"][0]["similarity"] == pytest.approx(0.9988)
    assert shown["articles"][0]["feed"] == told[1].feed.title
    assert told[1].title in manage("cluster", "show", found.pk).out


def test_show_of_one_that_is_not_there(manage, db):
    ended = manage("cluster", "show", 4711, "--json")

    assert (ended.code, ended.error["code"]) == (6, "not_found")


def test_check_finds_nothing_wrong_with_what_was_clustered(manage, told):
    ended = manage("cluster", "check", "--json")

    assert (ended.code, ended.json) == (0, {"clusters": 2, "wrong": 0, "problems": []})
    assert manage("cluster", "check").out == "No differences in 2 clusters.\n"


def test_check_knows_of_clusters_that_are_empty(manage, told):
    ClusterFactory()

    assert manage("cluster", "check").code == 0


@pytest.mark.parametrize(
    ("lie", "what"),
    [
        ({"article_count": 7}, "article_count"),
        ({"embedding_model": ""}, "centroid"),
    ],
)
def test_check_finds_what_is_wrong(manage, told, lie, what):
    wrong = write(EventCluster.objects.get(article_count=2), **lie)

    ended = manage("cluster", "check", "--json")

    assert ended.code == 1
    assert ended.json["wrong"] == 1
    (problem,) = ended.json["problems"]
    assert (problem["cluster"], problem["what"], problem["says"]) == (wrong.pk, what, lie.get(what, ""))
    assert "Values of clusters that differ from their links: 1." in manage("cluster", "check").out


@pytest.mark.parametrize(("column", "by"), [("first_at", -1), ("last_at", 1)])
def test_check_finds_wrong_times(manage, told, column, by):
    wrong = EventCluster.objects.get(article_count=2)
    write(wrong, **{column: getattr(wrong, column) + timedelta(hours=by)})

    ended = manage("cluster", "check", "--json")

    assert ended.code == 1
    assert [(each["cluster"], each["what"]) for each in ended.json["problems"]] == [(wrong.pk, column)]


def test_check_finds_one_that_has_gone_and_still_has_articles(manage, told):
    gone, into = EventCluster.objects.order_by("pk")
    write(gone, merged_into=into)

    (problem,) = manage("cluster", "check", "--json").json["problems"]

    assert problem == {"cluster": gone.pk, "what": "merged_into", "says": into.pk, "found": "2 articles"}


def test_check_finds_links_that_nobody_has_counted(manage, told):
    link = ClusterArticleFactory(raw_article=article(5))
    write(link.cluster, first_at=link.raw_article.happened_at, last_at=link.raw_article.happened_at)

    (problem,) = manage("cluster", "check", "--json").json["problems"]

    assert (problem["cluster"], problem["says"], problem["found"]) == (link.cluster_id, 0, 1)
