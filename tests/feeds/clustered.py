"""Articles to cluster: headlines labelled with their events, and vectors with a chosen similarity."""

from collections import Counter, defaultdict
from datetime import timedelta
from math import comb
from pathlib import Path
from typing import NamedTuple

import numpy

from ade_embedder.query import vectors_of
from documents import embedding
from feeds.clustering.job import EVENT_CLUSTERING
from feeds.clustering.vectors import text_of
from feeds.models import ClusterArticle, EventCluster, FeedSource, RawArticle
from schedules import job_runs
from tests.factories import ArticleFactory, FeedFactory, write
from tests.feeds.turns import turn_of
from work import clock

HERE = Path(__file__).parent
# The age of the first article; enough for the last one of the file to be in the past.
FIRST = timedelta(hours=71)


class Headline(NamedTuple):
    event: str
    hours: float
    title: str
    summary: str


def headlines(name="headlines"):
    found, event, hours = [], "", 0.0
    for line in (HERE / f"{name}.txt").read_text().splitlines():
        if line.startswith("["):
            event, _, start = line.strip("[]").partition(" ")
            hours = float(start) * 0.9
        elif line and not line.startswith("#"):
            title, _, summary = line.partition(" | ")
            found.append(Headline(event, hours, title, summary))
            hours += 0.5
    return found


def articles_of(some):
    """Return articles as ingestion would store them, from three feeds; not saved."""
    feeds = [*FeedSource.objects.order_by("pk")[:3]] or FeedFactory.create_batch(3)
    first, now = clock.now() - FIRST, clock.now()
    return [
        RawArticle(
            feed=feeds[number % 3],
            url=(url := f"https://news.example.com/{headline.event}/{number}"),
            original_url=url,
            title=headline.title,
            summary=headline.summary,
            happened_at=first + timedelta(hours=headline.hours),
            seen_at=now,
        )
        for number, headline in enumerate(some)
    ]


def embedded(articles):
    """Embed with the real model in this process; a child gives the same result."""
    for article, vector in zip(articles, vectors_of([text_of(each) for each in articles]), strict=True):
        article.embedding, article.embedding_model = vector, embedding.model()
    return articles


def event_of(article):
    return article.url.split("/")[3]


def vector(*numbers):
    """Return a normalised vector that begins with these numbers and continues with zeros, in the configured length."""
    made = numpy.zeros(embedding.dimensions(), "<f4")
    made[: len(numbers)] = numbers
    return (made / numpy.linalg.norm(made)).astype("<f4").tobytes()


def article(hours_ago, *numbers, **values):
    at = clock.now() - timedelta(hours=hours_ago)
    about = {"embedding": vector(*numbers), "embedding_model": embedding.model()} if numbers else {}
    return ArticleFactory(seen_at=at, happened_at=at, **about, **values)


def get_older(hours):
    """Move everything that has happened back in time."""
    by = timedelta(hours=hours)
    for each in RawArticle.objects.all():
        write(each, happened_at=each.happened_at - by, seen_at=each.seen_at - by)
    for each in EventCluster.objects.filter(article_count__gt=0):
        write(each, first_at=each.first_at - by, last_at=each.last_at - by)


def cluster():
    """Run a whole slot of the job; return the number of rows that it reports."""
    turn = turn_of(EVENT_CLUSTERING, scheduled_for=clock.now())
    try:
        rows = EVENT_CLUSTERING.function(turn)
    except Exception as error:
        job_runs.fail(turn.claim, str(error))
        raise
    job_runs.succeed(turn.claim, rows)
    return rows


def clusters():
    """Return the titles of the articles of each cluster, by its ID."""
    found = defaultdict(set)
    for cluster_id, title in ClusterArticle.objects.values_list("cluster", "raw_article__title"):
        found[cluster_id].add(title)
    return dict(found)


def partition():
    """Return which articles are together, without the IDs of their clusters."""
    found = defaultdict(set)
    for cluster_id, url in ClusterArticle.objects.values_list("cluster", "raw_article__url"):
        found[cluster_id].add(url)
    return {frozenset(urls) for urls in found.values()}


def adjusted_rand_index(labels, others):
    """Return 1 for the same partition, about 0 for chance."""
    pairs = sum(comb(number, 2) for number in Counter(zip(labels, others, strict=True)).values())
    of_labels = sum(comb(number, 2) for number in Counter(labels).values())
    of_others = sum(comb(number, 2) for number in Counter(others).values())
    by_chance = of_labels * of_others / comb(len(labels), 2)
    most = (of_labels + of_others) / 2
    return 1.0 if most == by_chance else (pairs - by_chance) / (most - by_chance)
