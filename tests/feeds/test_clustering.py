"""The job `event_clustering`: articles about one event form one cluster, which keeps its ID."""

import json
import random
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from documents import embedding
from documents.embedding import EmbeddingFailed, Vectors
from feeds.clustering import job, links, partition, vectors, window, writing
from feeds.clustering.job import EVENT_CLUSTERING
from feeds.models import ClusterArticle, EventCluster, RawArticle
from schedules import job_runs
from schedules.jobs import JobFailed
from schedules.models import JobRun
from tests.breaches import assert_all_hold
from tests.factories import BriefArticleFactory, BriefItemFactory, FeedFactory, columns_of, write
from tests.feeds.clustered import (
    adjusted_rand_index,
    article,
    articles_of,
    cluster,
    embedded,
    get_older,
    headlines,
    vector,
)
from tests.feeds.clustered import (
    partition as partition_of,
)
from tests.feeds.turns import turn_of
from tests.services.openai import error
from work import clock
from work.claims import Interrupted

pytestmark = pytest.mark.django_db


def store(articles):
    return RawArticle.objects.bulk_create(articles)


def index():
    events, found = [], []
    for url, cluster_id in ClusterArticle.objects.values_list("raw_article__url", "cluster"):
        events.append(url.split("/")[3])
        found.append(cluster_id)
    return adjusted_rand_index(events, found)


def everything():
    """Return all rows that clustering writes."""
    return [columns_of(row) for model in (EventCluster, ClusterArticle) for row in model.objects.order_by("pk")]


def together(*articles):
    return len(set(ClusterArticle.objects.filter(raw_article__in=articles).values_list("cluster", flat=True))) == 1


def cluster_of(article):
    return article.links.get().cluster


# Quality, with the real model


def test_the_headlines_are_as_many_as_promised_and_their_events_too():
    found, held_out = headlines(), headlines("headlines_held_out")

    assert len(found) >= 300
    assert len({each.event for each in found}) >= 60
    assert len(held_out) >= 100
    assert len({each.event for each in held_out}) >= 25
    assert len({each.title for each in [*found, *held_out]}) == len(found) + len(held_out)
    assert not {each.event for each in found} & {each.event for each in held_out}


# The held-out file was not used before the method and its threshold were fixed: see docs/clustering.md.
@pytest.mark.parametrize(("name", "least"), [("headlines", 0.91), ("headlines_held_out", 0.91)])
def test_headlines_of_one_event_come_together_and_near_misses_do_not(name, least):
    store(articles_of(headlines(name)))

    assert cluster() == len(headlines(name))

    assert index() >= least
    assert_all_hold()


# The result does not depend on the way


def test_again_is_nothing():
    store(articles_of(headlines()))
    cluster()
    before = everything()

    assert cluster() == 0
    # The same when it has to read the whole window.
    write(JobRun.objects.order_by("pk").last(), status="failed", error_message="the worker was lost")
    assert cluster() == 0

    assert everything() == before


@pytest.mark.parametrize("seed", range(4))
def test_in_another_order_of_arrival_and_bit_by_bit_the_clusters_are_the_same(seed):
    chance = random.Random(seed)
    articles = embedded(articles_of(headlines()))
    store(articles)
    cluster()
    at_once = partition_of()
    ClusterArticle.objects.all().delete()
    EventCluster.objects.all().delete()
    RawArticle.objects.all().delete()
    for each in articles:
        each.pk = None
    chance.shuffle(articles)
    ends = sorted(chance.sample(range(1, len(articles)), 5))

    for start, end in zip([0, *ends], [*ends, None], strict=True):
        store(articles[start:end])
        cluster()
        assert_all_hold()

    assert partition_of() == at_once


def test_most_clusters_keep_their_ids_while_articles_come_in():
    articles = embedded(articles_of(headlines()))
    random.Random(1).shuffle(articles)
    store(articles[:250])
    cluster()
    before = dict(ClusterArticle.objects.values_list("raw_article", "cluster"))

    store(articles[250:])
    cluster()

    after = dict(ClusterArticle.objects.values_list("raw_article", "cluster"))
    assert sum(after[id] == before[id] for id in before) >= 0.95 * len(before)


def test_a_slot_that_was_interrupted_is_gone_on_with(monkeypatch):
    monkeypatch.setattr(writing, "AT_ONCE", 5)
    store(embedded(articles_of(headlines())))
    turn = turn_of(EVENT_CLUSTERING)
    real = links.refresh
    monkeypatch.setattr(links, "refresh", lambda ids: turn.claim.stopping.set() or real(ids))

    with pytest.raises(Interrupted):
        EVENT_CLUSTERING.function(turn)
    job_runs.fail(turn.claim, "the worker has stopped")
    half = ClusterArticle.objects.count()
    cluster()

    assert 0 < half < ClusterArticle.objects.count() == len(headlines())
    assert index() >= 0.91
    assert_all_hold()


# The columns of a cluster


def test_a_cluster_says_what_it_is_about():
    first, second, third = article(5, 1, 0), article(4, 1, 0.3), article(3, 1, 0.6)

    cluster()

    found = EventCluster.objects.get()
    assert (found.title, found.article_count, found.embedding_model) == (second.title, 3, embedding.model())
    assert (found.first_at, found.last_at) == (first.happened_at, third.happened_at)
    assert len(bytes(found.centroid)) == 4 * embedding.dimensions()
    assert [link.similarity for link in found.links.order_by("raw_article")] == [0.9618, 0.9999, 0.9656]


def test_an_article_like_no_other_has_a_cluster_of_its_own():
    article(5, 1, 0)
    article(4, 0, 1)

    assert cluster() == 2

    assert sorted(EventCluster.objects.values_list("article_count", flat=True)) == [1, 1]


# Cluster IDs


def test_a_cluster_keeps_its_id_when_articles_come_to_it():
    first = article(5, 1, 0)
    cluster()
    before = cluster_of(first)

    # One of them happened earlier than the first.
    older, younger = article(6, 1, 0.1), article(4, 1, 0.2)
    assert cluster() == 2

    assert cluster_of(first) == cluster_of(older) == cluster_of(younger) == before


def test_of_two_that_become_one_that_with_more_articles_stays():
    few, many = article(9, 1, 0), [article(8 - n, 0.25, 1) for n in range(2)]
    cluster()
    gone, kept = cluster_of(few), cluster_of(many[0])
    assert gone.pk < kept.pk

    # They are similar to both clusters and connect them.
    bridges = [article(4, 1, 1.1), article(3, 1, 1.1), article(2, 1, 1.1)]
    assert cluster() == 4

    assert together(few, *many, *bridges)
    assert cluster_of(few) == kept
    assert not EventCluster.objects.filter(pk=gone.pk).exists()
    assert_all_hold()


def test_one_that_a_brief_speaks_of_says_where_its_articles_are():
    few, many = article(9, 1, 0), [article(8 - n, 0.25, 1) for n in range(2)]
    cluster()
    gone, kept = cluster_of(few), cluster_of(many[0])
    BriefArticleFactory(item__cluster=gone)

    for n in range(3):
        article(4 - n, 1, 1.1)
    cluster()

    gone.refresh_from_db()
    assert (gone.merged_into, gone.article_count, gone.links.count()) == (kept, 0, 0)
    assert gone.centroid is not None
    assert_all_hold()


def test_one_into_which_another_has_gone_stays_to_say_where_it_went_itself():
    alone, others = article(9, 1, 0), [article(8, 0.25, 1), article(7, 0.25, 1)]
    cluster()
    gone, kept = cluster_of(alone), cluster_of(others[0])
    earlier = write(BriefItemFactory().cluster, merged_into=gone)

    for n in range(3):
        article(4 - n, 1, 1.1)
    cluster()

    earlier.refresh_from_db()
    gone.refresh_from_db()
    assert (earlier.merged_into, gone.merged_into) == (gone, kept)


def test_of_a_cluster_that_falls_apart_the_larger_part_keeps_the_id(monkeypatch):
    articles = [article(9, 1, 0), article(8, 1, 0.9), article(7, 1, 0.9)]
    cluster()
    before = cluster_of(articles[0])
    assert together(*articles)

    # A higher threshold splits the cluster.
    monkeypatch.setattr(
        partition.merge_similar, "__kwdefaults__", partition.merge_similar.__kwdefaults__ | {"threshold": 0.9}
    )
    article(6, 1, 0.9)
    assert cluster() == 2

    assert cluster_of(articles[1]) == cluster_of(articles[2]) == before
    assert cluster_of(articles[0]) != before


# The limits of the window


def test_what_is_older_than_the_window_is_left_alone():
    article(73, 1, 0)
    without_a_vector = article(80)

    assert cluster() == 0

    assert not EventCluster.objects.exists()
    without_a_vector.refresh_from_db()
    assert without_a_vector.embedding is None


def test_what_has_left_the_window_stays_where_it_is_and_its_story_goes_on():
    first = article(20, 1, 0)
    cluster()
    before = cluster_of(first)
    get_older(50)
    second = article(10, 1, 0.2)
    cluster()
    get_older(40)

    # The first article has left the window; the second is still in its cluster.
    third = article(2, 1, 0.3)
    cluster()

    assert cluster_of(first) == cluster_of(second) == cluster_of(third) == before
    before.refresh_from_db()
    first.refresh_from_db()
    assert (before.article_count, before.first_at) == (3, first.happened_at)


def test_a_story_ends_when_72_hours_pass_without_an_article():
    first = article(20, 1, 0)
    cluster()
    get_older(60)

    again = article(1, 1, 0)
    cluster()

    assert cluster_of(again) != cluster_of(first)


def test_what_belonged_together_does_so_when_what_has_joined_it_leaves_the_window():
    middle, left, right = article(60, 1, 1), article(40, 1, 0), article(30, 0.1, 1)
    cluster()
    before = cluster_of(middle)
    assert together(left, middle, right)
    get_older(20)

    new = article(1, 0, 0, 1)
    assert cluster() == 1

    assert cluster_of(left) == cluster_of(middle) == cluster_of(right) == before
    assert cluster_of(new) != before
    # Without the past cluster they would be separate.
    assert partition_without_past(left, right) == 2


def partition_without_past(*articles):
    ClusterArticle.objects.exclude(raw_article__in=articles).delete()
    found = window.read(embedding.model(), clock.now() - window.WINDOW, lambda: None)
    assert found.pasts == []
    return len({g.articles for g in job.plan.groups_of(found) if {a.id for a in g.articles} & {a.pk for a in articles}})


def test_two_clusters_with_a_past_are_not_merged_any_more():
    one, other = article(60, 1, 0), article(60, 0.2, 1)
    stay = [article(50, 1, 0), article(50, 0.2, 1)]
    cluster()
    assert cluster_of(one) != cluster_of(other)
    get_older(15)

    for _ in range(4):
        article(1, 1, 0.9)
    cluster()

    assert cluster_of(one) != cluster_of(other)
    assert [cluster_of(each) for each in stay] == [cluster_of(one), cluster_of(other)]
    assert_all_hold()


def test_links_from_before_the_window_are_never_written_to():
    store(embedded(articles_of(headlines())))
    cluster()
    get_older(40)
    border = clock.now() - window.WINDOW
    old = dict(ClusterArticle.objects.filter(raw_article__happened_at__lt=border).values_list("pk", "cluster"))
    assert old

    store(embedded(articles_of([each._replace(event=f"new-{each.event}") for each in headlines()[::3]])))
    cluster()

    assert dict(ClusterArticle.objects.filter(pk__in=old).values_list("pk", "cluster")) == old
    assert_all_hold()


@pytest.mark.only_on("postgresql")
def test_it_does_not_depend_on_what_the_database_guesses_about_its_tables():
    """PostgreSQL plans with outdated statistics: tables that were empty at the last ANALYZE count as empty."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pg_class SET reltuples = 0, relpages = 1 WHERE relnamespace = 'public'::regnamespace")
        cursor.execute("SET LOCAL statement_timeout = '10s'")
    store(embedded(articles_of(headlines())))
    cluster()
    get_older(40)

    store(embedded(articles_of([each._replace(event=f"new-{each.event}") for each in headlines()[::3]])))

    assert cluster()
    assert_all_hold()


def test_a_story_that_never_ends_is_told_by_its_latest_articles(monkeypatch):
    monkeypatch.setattr(links, "MOST_MEMBERS", 3)
    articles = [article(20 - n, 1, 0.1 * n) for n in range(6)]

    cluster()

    found = EventCluster.objects.get()
    assert (found.article_count, found.title) == (6, articles[4].title)
    assert (found.first_at, found.last_at) == (articles[0].happened_at, articles[5].happened_at)
    assert_all_hold()


# Vectors


def test_articles_get_their_vectors_of_title_and_summary_in_batches(monkeypatch):
    monkeypatch.setattr(vectors, "BATCH", 40)
    articles = store(articles_of(headlines("headlines_held_out")))

    cluster()

    expected = embedded(articles_of(headlines("headlines_held_out")))
    stored = RawArticle.objects.in_bulk([each.pk for each in articles])
    assert [bytes(stored[each.pk].embedding) for each in articles] == [each.embedding for each in expected]
    assert {each.embedding_model for each in stored.values()} == {embedding.model()}


def test_vectors_of_another_model_are_made_anew_and_never_compared():
    first, second = article(5), article(4)
    for each in (first, second):
        write(each, title="Strong quake in Chile", embedding=b"1234" * 5, embedding_model="model-0")
    EventCluster.objects.all().delete()

    cluster()

    assert together(first, second)
    assert not RawArticle.objects.filter(embedding_model="model-0").exists()


def test_a_cluster_keeps_its_id_when_the_model_changes(monkeypatch):
    first, second, other = article(60, 1, 0), article(40, 1, 0), article(30, 0, 1)
    cluster()
    before = [cluster_of(each).pk for each in (first, second, other)]
    get_older(20)
    RawArticle.objects.update(embedding_model="model-0")
    EventCluster.objects.update(embedding_model="model-0")
    for each, title in ((second, "Strong quake in Chile"), (other, "Panda twins born in Vienna zoo")):
        write(each, title=title)

    cluster()

    assert [cluster_of(each).pk for each in (first, second, other)] == before
    # The first article has left the window, so it gets no new vector.
    assert set(EventCluster.objects.values_list("embedding_model", flat=True)) == {embedding.model()}
    assert cluster() == 0


@pytest.fixture
def places(settings, tmp_path):
    settings.VAR_DIR = tmp_path


def refuses(*bad):
    """Refuse a request with one of these words, as a service does that rejects a text."""

    def fault(handler, answer):
        texts = json.loads(handler.service.asked[-1].body)["input"]
        is_bad = any(word in text for text in texts for word in bad)
        handler.answer(*(error(400, "'$.input' is invalid.", "invalid_input") if is_bad else answer()))

    return fault


def test_of_many_texts_those_that_are_refused_are_found_by_halves(monkeypatch):
    asked = []

    def embed(texts, *args, **options):
        asked.append(len(texts))
        if any("Cursed" in text for text in texts):
            raise EmbeddingFailed("This text is refused.", permanent=True)
        return Vectors(embedding.model(), [vector(1, 0)] * len(texts), vector(1, 0))

    monkeypatch.setattr(embedding, "embed", embed)
    tell(f"{'Cursed' if n in (3, 12) else 'Good'} news {n}" for n in range(16))

    assert cluster() == 16

    assert sorted(map(len, partition_of())) == [1, 1, 14]
    # The second request tests a single harmless text, once only.
    assert asked == [16, 1, 8, 4, 2, 2, 1, 1, 4, 8, 4, 4, 2, 1, 1, 2]
    assert_all_hold()


@pytest.mark.long
def test_a_text_that_a_service_refuses_keeps_no_other_from_its_vector(open_ai, places, transactional_db):
    open_ai.always("embed", refuses("Cursed"))
    articles = tell(["Strong quake hits Chile", "Cursed text", "Chile hit by strong quake", "Pandas born in Vienna"])

    assert cluster() == 4

    assert together(articles[0], articles[2])
    cursed = RawArticle.objects.get(pk=articles[1].pk)
    assert (cursed.embedding, cursed.embedding_model) == (None, embedding.model())
    assert RawArticle.objects.filter(embedding=None).count() == 1
    asked = len(open_ai.asked)
    # The text is not sent again.
    assert (cluster(), len(open_ai.asked)) == (0, asked)
    assert_all_hold()


@pytest.mark.long
def test_a_service_that_refuses_everything_is_asked_for_something_harmless_and_no_text_is_blamed(open_ai, places):
    open_ai.always("embed", refuses(" "))
    tell(["Strong quake hits Chile", "Pandas born in Vienna"])

    with pytest.raises(
        JobFailed, match=r"Articles that wait for vectors of .+: 2\. .+OpenAI rejected the request for vectors"
    ):
        cluster()

    assert open_ai.texts()[1:] == [[vectors.HARMLESS]]
    assert vectors.not_embedded(embedding.model(), clock.now() - window.WINDOW).count() == 2


@pytest.mark.long
def test_with_a_service_texts_in_any_script_come_together(open_ai, places):
    # The test server represents a meaning by the set of words.
    first, second, third = tell(["землетрясение в чили", "в чили землетрясение", "панды родились"])

    cluster()

    assert together(first, second)
    assert not together(first, third)


def test_an_embedder_that_fails_is_told_and_what_has_a_vector_is_clustered(monkeypatch):
    ready, waiting = article(5, 1, 0), article(4)

    def embed(*args, **options):
        raise EmbeddingFailed("The answer did not come within 5 s.")

    monkeypatch.setattr(embedding, "embed", embed)
    with pytest.raises(
        JobFailed, match=r": 1\. The next slot tries again\. The cause: The answer did not come within 5 s\."
    ):
        cluster()
    monkeypatch.undo()

    assert cluster_of(ready).article_count == 1
    assert not waiting.links.exists()
    assert cluster() == 1
    assert waiting.links.exists()


def test_an_article_with_a_vector_of_another_length_is_alone():
    article(5, 1, 0)
    second, third = article(4, 1, 0), article(3, 1, 0)
    for each in (second, third):
        write(each, embedding=vector(1, 0)[:40])

    cluster()

    assert len(partition_of()) == 3
    assert not together(second, third)


# Scripts that the local model hardly knows

UNRELATED = {
    "Greek": [
        "Σεισμός στην Κρήτη",
        "Νέα κυβέρνηση στη Γαλλία",
        "Ο Ολυμπιακός νίκησε",
        "Αυξήσεις στο ρεύμα",
    ],
    "Arabic": ["زلزال قوي يضرب تركيا", "فوز الأهلي بكأس أفريقيا", "ارتفاع أسعار النفط", "افتتاح متحف جديد في القاهرة"],
    "Korean": ["서울에 폭설 주의보", "삼성전자 새 휴대폰 공개", "대통령 선거 결과 발표", "축구 대표팀 결승 진출"],
    "Russian": ["Землетрясение в Чили", "Выборы во Франции", "Новый телефон Apple", "Финал чемпионата по хоккею"],
}


def tell(titles):
    return [article(9 - n, title=title, summary="") for n, title in enumerate(titles)]


@pytest.mark.parametrize("script", UNRELATED)
def test_with_the_local_model_articles_in_another_script_are_each_alone(script):
    tell([*UNRELATED[script], UNRELATED[script][0]])

    assert cluster() == 5

    assert sorted(EventCluster.objects.values_list("article_count", "embedding_model")) == [(1, "")] * 5
    assert set(RawArticle.objects.values_list("embedding", "embedding_model")) == {(None, embedding.model())}
    assert_all_hold()
    # They are not embedded again.
    assert vectors.not_embedded(embedding.model(), clock.now() - window.WINDOW).count() == 0
    assert (cluster(), job._stale(embedding.model(), clock.now() - window.WINDOW)) == (0, set())


def test_they_keep_nobody_else_from_coming_together():
    tell([*UNRELATED["Greek"], "Strong quake hits Chile", "Chile hit by strong quake"])

    cluster()

    assert sorted(map(len, partition_of())) == [1, 1, 1, 1, 2]


@pytest.mark.parametrize(
    ("text", "has_meaning"),
    [
        ("Żółć gęślą jaźń", True),
        ("Động đất ở Việt Nam", True),
        ("苹果 iPhone", True),
        ("苹果发布新手机 iPhone", False),
        ("2:1", True),
        ("東京で地震", False),
    ],
)
def test_most_letters_decide_and_with_another_model_none_do(settings, text, has_meaning):
    assert vectors.has_meaning(text) == has_meaning
    settings.ADE_EMBEDDER = "openai"
    assert vectors.has_meaning(text)


# Work only when something is new


def test_with_nothing_new_it_looks_and_reads_no_vector(monkeypatch):
    store(embedded(articles_of(headlines())))
    cluster()
    monkeypatch.setattr(window, "read", None)

    with CaptureQueriesContext(connection) as queries:
        assert cluster() == 0

    assert len([each for each in queries if "raw_articles" in each["sql"]]) == 3
    write(JobRun.objects.order_by("pk").last(), status="failed", error_message="the worker was lost")
    with pytest.raises(TypeError):
        cluster()


def test_it_ends_when_its_time_is_over():
    store(embedded(articles_of(headlines())))
    turn = turn_of(EVENT_CLUSTERING)
    turn.until = 0

    with pytest.raises(JobFailed, match="event_clustering did not finish within 600 s"):
        EVENT_CLUSTERING.function(turn)

    assert not EventCluster.objects.exists()


# Too many articles


def flood(number, hours_ago=1.0, **about):
    """Create this many articles of one feed, each unlike all others and a few seconds after the previous one."""
    feed = FeedFactory()
    return [article(hours_ago - n / 1000, *(0,) * (n + 3), 1, feed=feed, **about) for n in range(number)]


def test_a_feed_that_sends_too_much_keeps_no_other_out_and_is_told(monkeypatch):
    monkeypatch.setattr(window, "MOST_ARTICLES", 10)
    first, second = article(60, 1, 0), article(50, 1, 0.1)
    sent = flood(30)

    with pytest.raises(
        JobFailed,
        match=f"last 72 hours have 22 articles more than the limit of 10.* Feed {sent[0].feed_id} has the most, 30;",
    ):
        cluster()

    assert together(first, second)
    assert [each for each in sent if each.links.exists()] == sent[-8:]
    assert_all_hold()


def test_which_of_too_many_are_clustered_does_not_depend_on_the_order_in_which_they_came(monkeypatch):
    monkeypatch.setattr(window, "MOST_ARTICLES", 10)
    articles = [*flood(12), *flood(7, 1.1), *flood(2, 30)]
    with pytest.raises(JobFailed):
        cluster()
    before = partition_of()
    for each in (ClusterArticle, EventCluster, RawArticle):
        each.objects.all().delete()
    random.Random(3).shuffle(articles)
    for each in articles:
        each.pk = None
    store(articles)

    with pytest.raises(JobFailed):
        cluster()

    assert partition_of() == before
    assert sum(map(len, before)) == 10


def test_the_latest_of_each_feed_get_their_vectors_first():
    feed, other = FeedFactory(), article(50)
    crowd = [article(1 + n, feed=feed) for n in range(3)]

    waiting = vectors.not_embedded(embedding.model(), clock.now() - window.WINDOW)

    assert [each.pk for each in waiting] == [crowd[0].pk, other.pk, crowd[1].pk, crowd[2].pk]


def test_what_has_no_place_in_the_window_any_more_stays_where_it_is(monkeypatch):
    first, second = article(60, 1, 0), article(50, 1, 0.1)
    cluster()
    before = cluster_of(first)
    monkeypatch.setattr(window, "MOST_ARTICLES", 3)
    flood(5)
    write(first, feed=second.feed)

    with pytest.raises(JobFailed, match="have 4 articles more than the limit of 3"):
        cluster()

    assert cluster_of(first) == cluster_of(second) == before
    assert_all_hold()


def test_of_what_clusters_told_before_no_more_is_read_than_of_the_window(monkeypatch):
    old = [article(60, 1, 0) for _ in range(4)]
    cluster()
    last = article(30, 1, 0)
    cluster()
    get_older(20)
    monkeypatch.setattr(window, "MOST_ARTICLES", 3)

    found = window.read(embedding.model(), clock.now() - window.WINDOW, lambda: None)

    assert (found.pasts, found.left_out) == ([window.Past(cluster_of(old[0]).pk, 3)], 0)
    assert [each.id for each in found.articles] == [last.pk]


def test_vectors_take_no_more_than_their_share_of_a_slot(monkeypatch):
    monkeypatch.setattr(vectors, "SHARE", 0)
    ready, waiting = article(5, 1, 0), article(4)

    with pytest.raises(JobFailed, match=r": 1\. .* The cause: The time for embedding, 0 s, is used up\."):
        cluster()

    assert (ready.links.count(), waiting.links.count()) == (1, 0)


def test_the_job_says_when_it_runs():
    assert (EVENT_CLUSTERING.cron, EVENT_CLUSTERING.time_zone) == ("5-59/15 * * * *", "UTC")
    assert EVENT_CLUSTERING.coalesce
    assert EVENT_CLUSTERING.misfire_grace == timedelta(seconds=300)
    assert EVENT_CLUSTERING.max_runtime == timedelta(minutes=10)
