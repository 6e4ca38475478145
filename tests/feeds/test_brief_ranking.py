import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from feeds.briefs import ranking
from feeds.briefs.ranking import Event, rank

pytestmark = pytest.mark.once

UNTIL = datetime(2026, 5, 4, 6, tzinfo=UTC)


def event(id=1, *, news=None, earlier=None, began=5.0, first_news=None, nearness=0.8):
    """Return an event; `news` and `earlier` map each source to its number of articles."""
    news, earlier = news or {"a": 1}, earlier or {}
    return Event(
        id,
        began_at=UNTIL - timedelta(hours=began),
        articles={source: news.get(source, 0) + earlier.get(source, 0) for source in {*news, *earlier}},
        news=news,
        first_news_at=UNTIL - timedelta(hours=began if first_news is None else first_news),
        nearness=nearness,
    )


def sources(number, each=1):
    return {f"source {n}": each for n in range(number)}


def words(event):
    (ranked,) = rank([event], UNTIL)
    return {part.name: part.words for part in ranked.parts}


def score(event):
    return rank([event], UNTIL)[0].score


def order(*events):
    return [ranked.event.cluster_id for ranked in rank(events, UNTIL)]


def test_every_reason_is_said_in_words():
    told = event(news={"a": 2, "b": 1, "c": 2, "d": 2}, began=5.5, nearness=0.876)

    assert words(told) == {
        "coverage": "7 articles from 4 sources",
        "freshness": "began 5 hours earlier",
        "growth": "grows by 1.3 articles an hour",
        "nearness": "its articles are 88% similar",
    }


def test_one_article_says_only_what_it_can():
    assert words(event(began=0.5)) == {
        "coverage": "1 article from 1 source",
        "freshness": "began 30 minutes earlier",
    }


def test_what_is_new_is_told_from_what_was_there():
    assert words(event(news={"b": 3}, earlier={"a": 15, "c": 1}, began=60))["coverage"] == (
        "3 new articles from 1 source, 19 in all"
    )
    assert words(event(earlier={"a": 1}))["coverage"] == "1 new article from 1 source, 2 in all"


def test_a_second_source_is_told_the_first_time_it_tells():
    confirmed = {"a": 1}

    assert words(event(news={"b": 1}, earlier=confirmed))["second source"] == (
        "reported by more than one source for the first time"
    )
    assert "second source" not in words(event(news={"a": 1}, earlier=confirmed))
    assert "second source" not in words(event(news={"c": 1}, earlier={"a": 1, "b": 1}))
    assert "second source" not in words(event(news={"a": 1, "b": 1}))


def test_the_score_is_the_sum_of_its_parts_and_at_most_one():
    largest = event(news=sources(10_000, each=10), earlier={"source 1": 1}, began=0, nearness=1.0)

    for told in (event(), largest, event(news=sources(3), earlier={"a": 1}, nearness=-0.2)):
        (ranked,) = rank([told], UNTIL)
        assert ranked.score == pytest.approx(sum(part.share for part in ranked.parts))
        assert 0 <= ranked.score <= 1
        assert all(part.share >= 0 for part in ranked.parts)
    shares = (
        ranking.SOURCES,
        ranking.ARTICLES,
        ranking.FRESHNESS,
        ranking.GROWTH,
        ranking.NEARNESS,
        ranking.SECOND_SOURCE,
    )
    assert sum(shares) == pytest.approx(1)


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ({"news": sources(4)}, {"news": sources(2)}),
        ({"news": {"a": 2, "b": 1}}, {"news": {"a": 1, "b": 1}}),
        ({"began": 2}, {"began": 20}),
        ({"news": sources(3), "began": 20, "first_news": 1}, {"news": sources(3), "began": 20, "first_news": 15}),
        ({"news": sources(3), "nearness": 0.9}, {"news": sources(3), "nearness": 0.6}),
        ({"news": {"b": 1}, "earlier": {"a": 1}}, {"news": {"a": 1}, "earlier": {"a": 1}}),
    ],
    ids=["sources", "articles", "freshness", "growth", "nearness", "a second source"],
)
def test_more_of_one_thing_ranks_higher(more, less):
    assert order(event(1, **less), event(2, **more)) == [2, 1]


def test_each_further_source_brings_less():
    scores = [score(event(news=sources(n), nearness=0.8)) for n in (2, 3, 4, 5, 6)]
    gains = [after - before for before, after in pairwise(scores)]

    assert gains == sorted(gains, reverse=True)
    assert gains[-1] > 0


def test_one_busy_source_does_not_outrank_several():
    busy, several = event(1, news={"a": 500}, nearness=1.0), event(2, news=sources(3), nearness=0.6)

    assert order(busy, several) == [2, 1]
    assert score(busy) == score(event(news={"a": 3}, nearness=1.0))
    assert words(busy)["coverage"] == "500 articles from 1 source, of which 3 count"


def test_what_was_told_long_ago_does_not_stay_on_top():
    old = event(1, news={"a": 1}, earlier=sources(30, each=5), began=70)
    new = event(2, news=sources(3))

    assert order(old, new) == [2, 1]


def test_ties_are_decided_the_same_way_in_whatever_order_they_come():
    same = [event(id) for id in range(1, 8)]
    shuffled = random.Random(3).sample(same, len(same))

    assert order(*shuffled) == order(*same) == [1, 2, 3, 4, 5, 6, 7]


def test_an_event_of_the_future_is_as_fresh_as_one_of_now():
    assert score(event(began=-3)) == score(event(began=0))
    assert words(event(began=-3))["freshness"] == "began 0 minutes earlier"
