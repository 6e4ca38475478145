"""Reads the input of clustering: the articles of the last 72 hours, and the earlier articles of their clusters."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy
from django.db.models import F, QuerySet
from django.db.models import Window as Over
from django.db.models.functions import RowNumber

from documents import embedding
from feeds.clustering.links import pieces
from feeds.clustering.partition import Vectors
from feeds.models import ClusterArticle, RawArticle

# An event continues as long as the gap between two of its articles is no longer than this. Older articles are never
# moved.
WINDOW = timedelta(hours=72)
# Most articles that are grouped at once, and most earlier articles. Comparing them for the first time (256 numbers
# each) takes at most half a minute of CPU time; a slot has ten minutes. Hundreds of feeds send fewer in 72 hours, but a
# single feed may send any number.
MOST_ARTICLES = 30_000


class Article(NamedTuple):
    id: int
    happened_at: datetime
    url: str
    # The current cluster.
    cluster_id: int | None


@dataclass(frozen=True)
class Past:
    """The earlier articles of a cluster, from before the window. They are not moved, but attract similar articles."""

    cluster_id: int
    articles: int


@dataclass(frozen=True)
class Window:
    """The articles to group, in an order that does not depend on when they arrived."""

    pasts: list[Past]
    articles: list[Article]
    # One row for each past, then one for each article.
    means: Vectors
    # Number of articles that did not fit into the window.
    left_out: int


def read(model: str, border: datetime, go_on: Callable[[], None]) -> Window:
    """Read the articles since `border` that were processed with this model."""
    rows = RawArticle.objects.filter(happened_at__gte=border, embedding_model=model)
    columns = by_turns(rows).values_list("pk", "happened_at", "url", "links__cluster")[:MOST_ARTICLES]
    articles = sorted((Article(*row) for row in columns), key=lambda article: (article.happened_at, article.url))
    left_out = rows.count() - len(articles) if len(articles) == MOST_ARTICLES else 0
    sums = _sums(model, border, go_on)
    # One array: it takes 20 MB for 20,000 articles.
    means = numpy.zeros((len(sums) + len(articles), embedding.dimensions()), "<f4")
    for place, (total, number) in enumerate(sums.values()):
        means[place] = total / number
    row_of = {article.id: row for row, article in enumerate(articles, len(sums))}
    for piece in pieces(list(row_of)):
        go_on()
        for id, data in RawArticle.objects.filter(pk__in=piece).values_list("pk", "embedding"):
            means[row_of[id]] = _vector(data)
    return Window([Past(id, number) for id, (_, number) in sums.items()], articles, means, left_out)


def by_turns(rows: QuerySet[Any], article: str = "") -> QuerySet[Any]:
    """Order rows by turns: the latest article of each feed, then the second of each, and so on. No feed can crowd out
    another.
    """
    latest_first = [F(f"{article}happened_at").desc(), F(f"{article}url").asc()]
    turn = Over(RowNumber(), partition_by=F(f"{article}feed"), order_by=latest_first)
    in_turn: QuerySet[Any] = rows.annotate(turn=turn).order_by("turn", *latest_first)
    return in_turn


def _sums(model: str, border: datetime, go_on: Callable[[], None]) -> dict[int, tuple[Any, int]]:
    """Return the sum and number of the earlier vectors of each cluster with an article in the window. Vectors are read
    for one more window back in time.
    """
    # `cluster__last_at` selects the clusters. A join to their articles in the window took PostgreSQL hours when its
    # statistics showed the tables as empty.
    rows = ClusterArticle.objects.filter(
        cluster__last_at__gte=border,
        raw_article__happened_at__lt=border,
        raw_article__happened_at__gte=border - WINDOW,
        raw_article__embedding_model=model,
    )
    columns = ("cluster", "raw_article__happened_at", "raw_article__url", "raw_article")
    before = sorted(by_turns(rows, "raw_article__").values_list(*columns)[:MOST_ARTICLES])
    sums: dict[int, tuple[Any, int]] = {}
    for piece in pieces(before):
        go_on()
        vectors = dict(RawArticle.objects.filter(pk__in=[row[-1] for row in piece]).values_list("pk", "embedding"))
        for cluster_id, *_, article_id in piece:
            total, number = sums.get(cluster_id, (0.0, 0))
            sums[cluster_id] = total + _vector(vectors.get(article_id)).astype(numpy.float64), number + 1
    return sums


def _vector(data: Any) -> Vectors:
    size = embedding.dimensions()
    if data is None or len(data) != 4 * size:
        # The vector has the wrong size. Use a zero vector instead, which is near no other.
        return numpy.zeros(size, "<f4")
    return numpy.frombuffer(data, "<f4")
