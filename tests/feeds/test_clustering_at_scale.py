"""Up to 20,000 articles in the window: the cost of a slot that links them all, and of one with a hundred new ones."""

import numpy
import pytest
import structlog

from documents import embedding
from feeds.clustering import consistency
from feeds.clustering.job import EVENT_CLUSTERING
from feeds.models import EventCluster, RawArticle
from schedules import job_runs
from tests.factories import FeedFactory, JobRunFactory, claim_of
from tests.feeds.clustered import partition
from work import clock

NEW = 100
MB = 1 << 20
# Ten times as long as on an idle machine.
MOST_SECONDS = 90
MOST_MEMORY = 150 * MB

log = structlog.get_logger(__name__)


def of_length_1(rows):
    return (rows / numpy.linalg.norm(rows, axis=1, keepdims=True)).astype("<f4")


def store(numbers, events, vectors):
    now = clock.now()
    feed = FeedFactory()
    RawArticle.objects.bulk_create(
        [
            RawArticle(
                feed=feed,
                url=f"https://news.example.com/{events[n]}/{n}",
                original_url="https://news.example.com/",
                title=f"Headline {n}",
                happened_at=now - (n % 1000) * (EVENT_CLUSTERING.max_runtime / 3),
                seen_at=now,
                embedding=vectors[n].tobytes(),
                embedding_model=embedding.model(),
            )
            for n in numbers
        ],
        batch_size=500,
    )


def slot(programs):
    row = JobRunFactory(job_name=EVENT_CLUSTERING.name, scheduled_for=clock.now())
    process = programs.main("tests.feeds.clusterer", row.pk)
    assert process.code(600) == 0, process.logged()
    job_runs.succeed(claim_of(row))
    return process.said[-1]


@pytest.mark.parametrize(
    "articles", [pytest.param(3_000, marks=pytest.mark.long), pytest.param(20_000, marks=pytest.mark.soak)]
)
def test_thousands_of_articles_in_the_window(programs, articles):
    chance = numpy.random.default_rng(0)
    centres = of_length_1(chance.normal(size=(articles // 4, embedding.dimensions())))
    events = chance.integers(0, articles // 4, articles)
    noise = chance.normal(size=(articles, embedding.dimensions())) / embedding.dimensions() ** 0.5
    vectors = of_length_1(centres[events] + noise)
    store(range(articles - NEW), events, vectors)

    first = slot(programs)
    store(range(articles - NEW, articles), events, vectors)
    second = slot(programs)

    log.info("measured", first=first, second=second)
    assert (first["rows"], second["rows"]) == (articles - NEW, NEW)
    assert max(first["seconds"], second["seconds"]) < MOST_SECONDS
    assert max(first["memory"], second["memory"]) < MOST_MEMORY
    assert list(consistency.problems()) == []
    found = partition()
    assert sum(map(len, found)) == articles
    assert len(found) == EventCluster.objects.count()
    # The events are far apart, so no cluster mixes them.
    assert all(len({url.split("/")[3] for url in urls}) == 1 for urls in found)
