"""Purging a million articles (F19): locks are short, a killed process loses nothing, and articles in briefs stay."""

import hashlib
import random
import signal
import sys
import time
from threading import Event as Flag

import pytest
from django.db import connection, transaction

from feeds.clustering import links
from feeds.models import BriefArticle, ClusterArticle, EventCluster, PurgedUrl, RawArticle
from tests.factories import ArticleFactory, BriefItemFactory, FeedFactory
from tests.stepping import until
from work import clock, pruning

DAYS = 90
IN_A_CLUSTER = 5
# The first articles alternate between this many clusters, so that every page touches all of them.
STORIES = 15
# As long as the vectors of the local model; the first half of a story is unrelated to the second.
VECTORS = [("0000803f" + "00000000" * 255), ("00000000" * 255 + "0000803f")]
# Cluster IDs start here, so that they differ from article IDs and from the brief's cluster.
BASE = 10_000_000
# One article in this many is in a brief.
NAMED = 1000
# Enough pages for all deaths. On SQLite a page is smaller, and the pause is as long as the page took.
FEW = 6_000
MILLION = 1_000_000
SECONDS = 3 * 3600
EVERY_SECONDS = 0.05
# Times seen from outside include waiting for a processor that other tests use.
BUSY = 3
DEATHS = 4

# Insert one row per number n, seen at regular intervals from 200 to 100 days ago, so that all of them are due.
NUMBERS = {
    "postgresql": "generate_series(1, {number}) n",
    "sqlite": "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {number}) SELECT n FROM s)",
}
SEEN = {
    "postgresql": "now() - interval '200 days' + n * interval '100 days' / {number}",
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f', 'now', '-200 days', '+' || (n * 8640000.0 / {number}) || ' seconds')",
}
BLOBS = {"postgresql": "'\\x{}'::bytea", "sqlite": "x'{}'"}
INSERTS = (
    """INSERT INTO event_clusters (id, title, article_count, first_at, last_at, embedding_model, created_at)
        SELECT {base} + n, 'Event ' || n, {each}, {seen}, {seen}, '', {seen} FROM {numbers} WHERE n % {each} = 0""",
    """INSERT INTO raw_articles
        (id, feed_id, url, original_url, title, summary, author, seen_at, happened_at, embedding_model)
        SELECT n, {feed}, 'https://news.example.com/' || n, '', 'Headline ' || n, '{summary}', '', {seen}, {seen}, ''
        FROM {numbers}""",
    """UPDATE raw_articles SET embedding_model = 'model',
        embedding = CASE WHEN id <= {in_stories} / 2 THEN {first_vector} ELSE {second_vector} END
        WHERE id <= {in_stories}""",
    """INSERT INTO cluster_articles (id, cluster_id, raw_article_id, similarity, linked_at)
        SELECT n, CASE WHEN n <= {in_stories} THEN {base} + ({stories} + n % {stories}) * {each}
        ELSE {base} + n - n % {each} END, n, 0.7071, {seen} FROM {numbers} WHERE n >= {each}""",
    """UPDATE event_clusters
        SET article_count = (SELECT COUNT(*) FROM cluster_articles WHERE cluster_id = event_clusters.id)
        WHERE id <= {base} + {in_stories} + {each} OR id = {base} + {number}""",
    """UPDATE event_clusters SET embedding_model = 'model', centroid = {first_vector}
        WHERE id >= {base} + {stories} * {each} AND id < {base} + 2 * {stories} * {each}""",
    """INSERT INTO brief_articles (id, item_id, position, raw_article_id, url, title, source, happened_at)
        SELECT n, {item}, n / {named}, n, '', 'Headline', '', {seen} FROM {numbers} WHERE n % {named} = 0""",
)


@pytest.fixture
def feed(transactional_db):
    return FeedFactory()


def fill(feed, number, in_a_story, named=NAMED):
    said = {"number": number, "feed": feed.pk, "item": BriefItemFactory().pk, "each": IN_A_CLUSTER, "named": named}
    said |= {"summary": "s" * 100, "base": BASE, "stories": STORIES, "in_stories": STORIES * in_a_story}
    first, second = map(BLOBS[connection.vendor].format, VECTORS)
    said |= {"first_vector": first, "second_vector": second}
    said |= {"numbers": NUMBERS[connection.vendor].format(**said), "seen": SEEN[connection.vendor].format(**said)}
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Skip the foreign key checks for speed; the inserted rows are consistent.
            cursor.execute("SET LOCAL session_replication_role = replica")
        for insert in INSERTS:
            cursor.execute(insert.format(**said))
        if connection.vendor == "postgresql":
            for table in ("raw_articles", "event_clusters", "cluster_articles", "brief_articles"):
                sequence = f"pg_get_serial_sequence('{table}', 'id')"
                cursor.execute(f"SELECT setval({sequence}, (SELECT max(id) FROM {table}))")  # noqa: S608  # no user input
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


class Writer:
    """Writes articles and links during the purge, each pair in one transaction, as ingestion does."""

    def __init__(self, feed, cluster, stopping):
        self.feed, self.cluster, self.stopping = feed, cluster, stopping
        self.written, self.longest = [], 0.0

    def run(self):
        while not self.stopping.wait(EVERY_SECONDS):
            began = time.monotonic()
            with transaction.atomic():
                article = ArticleFactory(feed=self.feed)
                links.lock([self.cluster.pk])
                links.insert([(self.cluster.pk, article.pk)])
            self.longest = max(self.longest, time.monotonic() - began)
            self.written.append(article.pk)


class Watch:
    """Measures how long other programs keep a writing transaction open. Transactions of a killed program do not count,
    because they stay open until the server notices.
    """

    OPEN = """SELECT COALESCE(EXTRACT(EPOCH FROM MAX(clock_timestamp() - xact_start)), 0) FROM pg_stat_activity
        WHERE backend_xid IS NOT NULL AND application_name LIKE 'program %%' AND application_name <> ALL(%s)"""

    def __init__(self, stopping):
        self.stopping, self.longest, self.looks, self.killed = stopping, 0.0, 0, []

    def run(self):
        while connection.vendor == "postgresql" and not self.stopping.wait(0.01):
            with connection.cursor() as cursor:
                cursor.execute(self.OPEN, [list(self.killed)])
                self.longest = max(self.longest, float(cursor.fetchone()[0]))
            self.looks += 1


@pytest.mark.parametrize(
    ("number", "in_a_story", "longest_seconds"),
    [
        # Ten times as long as on an idle machine.
        pytest.param(FEW, 300, 10, marks=pytest.mark.long(seconds=20)),
        pytest.param(MILLION, 1000, 1, marks=[pytest.mark.soak, pytest.mark.timeout(SECONDS + 600)]),
    ],
)
def test_a_million_articles_go(feed, programs, threads, number, in_a_story, longest_seconds):
    assert number > STORIES * in_a_story
    fill(feed, number, in_a_story)
    stopping, chance = Flag(), random.Random(5)
    # A cluster that also has articles that are purged.
    writer, watch = Writer(feed, EventCluster.objects.get(pk=BASE + number // 2), stopping), Watch(stopping)
    writing, watching = threads.start(writer.run), threads.start(watch.run)

    began, rests = time.monotonic(), []
    for _ in range(DEATHS):
        purging = start_purging(programs)
        rests.append(until(lambda left=rests[-1] if rests else number: went_on(left), seconds=1200))
        time.sleep(chance.uniform(0, 0.3))
        watch.killed.append(purging.known_as)
        purging.kill()
        assert purging.code() == -signal.SIGKILL
        what_is_gone_has_a_tombstone(number)
    purging = start_purging(programs)
    assert purging.code(SECONDS) == 0, purging.logged()
    took = time.monotonic() - began
    stopping.set()
    writing.answer(), watching.answer()

    own = max(told["seconds"] for program in programs.started for told in program.said)
    measured = {"own": own, "waited for": writer.longest}
    told = f"{number} in {took:.0f} s, {len(writer.written)} written meanwhile"
    sys.stdout.write(f"{told}, longest: {measured}, seen by others: {watch.longest}\n")
    named = number // NAMED
    assert RawArticle.objects.count() == named + len(writer.written)
    assert PurgedUrl.objects.count() == number - named
    what_is_gone_has_a_tombstone(number)
    assert set(BriefArticle.objects.values_list("raw_article_id", flat=True)) == set(range(NAMED, number + 1, NAMED))
    every_count_is_true()
    connection.check_constraints()
    assert own < longest_seconds, measured
    assert max(writer.longest, watch.longest) < BUSY * longest_seconds, (measured, watch.longest)
    assert len(writer.written) > DEATHS


def start_purging(programs):
    return programs.main("tests.feeds.retention.purger", ADE_KEEP_ARTICLES_DAYS=DAYS)


def went_on(before):
    """Return how many articles are left if their number has decreased, or None."""
    left = RawArticle.objects.count()
    return left if left < before else None


def what_is_gone_has_a_tombstone(number):
    """Check that exactly the deleted articles have a tombstone, at any moment."""
    with transaction.atomic():
        there = set(RawArticle.objects.filter(pk__lte=number).values_list("pk", flat=True).iterator())
        buried = set(PurgedUrl.objects.values_list("digest", flat=True).iterator())
    urls = (f"https://news.example.com/{n}" for n in range(1, number + 1) if n not in there)
    assert buried == {hashlib.sha256(url.encode()).hexdigest() for url in urls}


def every_count_is_true():
    with connection.cursor() as cursor:
        cursor.execute("""SELECT c.id FROM event_clusters c LEFT JOIN
            (SELECT cluster_id, COUNT(*) AS links FROM cluster_articles GROUP BY cluster_id) l ON l.cluster_id = c.id
            WHERE c.article_count <> COALESCE(l.links, 0)""")
        assert cursor.fetchall() == []


PLANS = {
    "a page": lambda: (
        RawArticle.objects.filter(pruning._after("seen_at", (clock.now(), 7)), seen_at__lt=clock.now())
        .order_by("seen_at", "pk")
        .values_list("seen_at", "pk")[:100]
    ),
    "who names them": lambda: BriefArticle.objects.filter(raw_article_id__in=range(100)).values_list("raw_article_id"),
    "their links": lambda: ClusterArticle.objects.filter(raw_article__in=range(100)).values_list("cluster"),
    "empty clusters": lambda: (
        EventCluster.objects.filter(
            pruning._after("last_at", (clock.now(), 7)), article_count=0, last_at__lt=clock.now()
        )
        .order_by("last_at", "pk")
        .values_list("last_at", "pk")[:100]
    ),
}
INDEXES = {
    "a page": "articles_by_arrival",
    "who names them": "brief_articles_raw_article_id",
    # The index belongs to a constraint; SQLite numbers it.
    "their links": {"postgresql": "cluster_article_has_one_cluster", "sqlite": "autoindex_cluster_articles"},
    "empty clusters": "clusters_by_time",
}


@pytest.mark.parametrize("asked", PLANS)
def test_what_is_asked_of_many_rows_has_an_index(feed, asked):
    fill(feed, 5_000, in_a_story=1000, named=2)

    index = INDEXES[asked] if isinstance(INDEXES[asked], str) else INDEXES[asked][connection.vendor]
    assert index in PLANS[asked]().explain()


@pytest.mark.only_on("postgresql")
@pytest.mark.parametrize("table", ["cluster_articles", "brief_articles"])
def test_the_database_looks_up_who_refers_to_a_row_by_an_index(feed, table):
    """This is the query of a foreign key check, once for each deleted row."""
    fill(feed, 5_000, in_a_story=1000, named=2)

    with connection.cursor() as cursor:
        asked = f"SELECT 1 FROM ONLY {table} x WHERE 77 OPERATOR(pg_catalog.=) raw_article_id"  # noqa: S608  # no user input
        cursor.execute(f"EXPLAIN {asked}")
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert "Index" in plan
