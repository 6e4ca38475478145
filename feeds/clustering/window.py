"""What is clustered: the articles of the last 72 hours, and what came before in the clusters that they are in."""

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

# An event goes on while no more time than this passes between two of its articles. What is older stays where it is.
WINDOW = timedelta(hours=72)
# Grouped at once, and as many of what came before: their first comparison, by 256 numbers, takes half a minute of a
# processor at worst, of the ten minutes of a slot. Hundreds of feeds send fewer in 72 hours; one may send any number.
MOST_ARTICLES = 30_000


class Article(NamedTuple):
    id: int
    happened_at: datetime
    url: str
    # Where it is now.
    cluster_id: int | None


@dataclass(frozen=True)
class Past:
    """What a cluster has told before the window began. It is not moved, and draws what is like it."""

    cluster_id: int
    articles: int


@dataclass(frozen=True)
class Window:
    """In an order that does not depend on when articles have come in."""

    pasts: list[Past]
    articles: list[Article]
    # A row for each: first the pasts, then the articles.
    means: Vectors
    # Articles that are not among these, because there were too many.
    left_out: int


def read(model: str, border: datetime, go_on: Callable[[], None]) -> Window:
    """Of articles since then for which this model has been asked."""
    rows = RawArticle.objects.filter(happened_at__gte=border, embedding_model=model)
    columns = fairly(rows).values_list("pk", "happened_at", "url", "links__cluster")[:MOST_ARTICLES]
    articles = sorted((Article(*row) for row in columns), key=lambda article: (article.happened_at, article.url))
    left_out = rows.count() - len(articles) if len(articles) == MOST_ARTICLES else 0
    sums = _sums(model, border, go_on)
    # In one array: of 20,000 articles it has 20 MB.
    means = numpy.zeros((len(sums) + len(articles), embedding.dimensions()), "<f4")
    for place, (total, number) in enumerate(sums.values()):
        means[place] = total / number
    _read_vectors(articles, means[len(sums) :], go_on)
    return Window([Past(id, number) for id, (_, number) in sums.items()], articles, means, left_out)


def fairly(rows: QuerySet[Any], article: str = "") -> QuerySet[Any]:
    """The latest of each feed, then the second of each, and so on: no feed keeps another one out."""
    latest_first = [F(f"{article}happened_at").desc(), F(f"{article}url").asc()]
    turn = Over(RowNumber(), partition_by=F(f"{article}feed"), order_by=latest_first)
    in_turn: QuerySet[Any] = rows.annotate(turn=turn).order_by("turn", *latest_first)
    return in_turn


def _read_vectors(articles: list[Article], vectors: Vectors, go_on: Callable[[], None]) -> None:
    place = {article.id: number for number, article in enumerate(articles)}
    for piece in pieces(list(place)):
        go_on()
        for id, data in RawArticle.objects.filter(pk__in=piece).values_list("pk", "embedding"):
            vectors[place[id]] = _vector(data)


def _sums(model: str, border: datetime, go_on: Callable[[], None]) -> dict[int, tuple[Any, int]]:
    """Of vectors, and of how many, for clusters with an article in the window: no further back than it is long."""
    # Told by the cluster: to look for its articles here took PostgreSQL hours where it took the tables for empty ones.
    rows = ClusterArticle.objects.filter(
        cluster__last_at__gte=border,
        raw_article__happened_at__lt=border,
        raw_article__happened_at__gte=border - WINDOW,
        raw_article__embedding_model=model,
    )
    columns = ("cluster", "raw_article__happened_at", "raw_article__url", "raw_article")
    before = sorted(fairly(rows, "raw_article__").values_list(*columns)[:MOST_ARTICLES])
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
        # A vector of something else, and near to nothing.
        return numpy.zeros(size, "<f4")
    return numpy.frombuffer(data, "<f4")
