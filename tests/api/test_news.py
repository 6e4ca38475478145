"""Clusters and briefs over the API."""

from datetime import timedelta

import pytest

from tests.api.programs import Program, problem_of
from tests.factories import (
    ArticleFactory,
    BriefArticleFactory,
    BriefFactory,
    BriefItemFactory,
    ClusterArticleFactory,
    ClusterFactory,
)
from work import clock

HOSTILE = "<b>Bridge</b>\u202e closed"

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def program(workspace, ravi):
    return Program(ravi, workspace, "read")


def test_clusters_are_listed_since_a_moment(program):
    now = clock.now()
    ClusterFactory(first_at=now - timedelta(days=9), last_at=now - timedelta(days=9))
    young = ClusterFactory(title=HOSTILE)

    (found,) = program.get("/clusters", since=(now - timedelta(days=1)).isoformat()).json()["items"]

    assert (found["id"], found["title"]) == (young.pk, HOSTILE)
    assert len(program.get("/clusters").json()["items"]) == 2
    assert problem_of(program.get("/clusters", since="1")) == (400, "invalid_request")


def test_a_cluster_has_its_articles_the_nearest_first(program):
    cluster = ClusterFactory()
    far, near = (
        ClusterArticleFactory(cluster=cluster, raw_article=ArticleFactory(title=HOSTILE), similarity=similarity)
        for similarity in (0.5, 0.9)
    )

    told = program.get(f"/clusters/{cluster.pk}").json()
    page = program.get(f"/clusters/{cluster.pk}/articles", limit=1).json()

    assert [article["id"] for article in told["articles"]] == [near.raw_article_id, far.raw_article_id]
    assert told["articles"][0]["title"] == HOSTILE
    assert page["items"][0]["id"] == near.raw_article_id
    assert page["next"]


def test_briefs_are_listed_with_where_they_are_read(program):
    brief = BriefFactory(name="2026-03-01")

    (found,) = program.get("/briefs").json()["items"]

    assert (found["id"], found["name"]) == (brief.pk, "2026-03-01")
    assert found["links"] == {
        "html": "http://testserver/briefs/2026-03-01/",
        "text": "http://testserver/briefs/2026-03-01.txt",
        "rss": "http://testserver/briefs/feed.rss",
    }


def test_a_brief_is_told_as_its_readers_get_it(program):
    reason = {"words": "2 sources", "share": 0.5}
    item = BriefItemFactory(position=0, headline=HOSTILE, score=0.5, reasons=[reason])
    article = ArticleFactory(url="javascript:alert(1)")
    BriefArticleFactory(item=item, raw_article=article, title=HOSTILE, source="Tides")

    told = program.get(f"/briefs/{item.brief.name}").json()

    (story,) = told["stories"]
    assert (story["number"], story["cluster_id"], story["article_count"]) == (1, item.cluster_id, 2)
    assert story["headline"] == "<b>Bridge</b> closed"
    assert story["reasons"] == [{"words": "2 sources", "percent": 50.0}]
    (shown,) = story["articles"]
    assert (shown["link"], shown["source"]) == ("", "Tides")
