"""Clustering that is killed, and clustering in two processes at once: counts stay right, and clusters the same."""

import random
import signal

import pytest
from django.db import transaction

from feeds.clustering import consistency, links, writing
from feeds.clustering.job import EVENT_CLUSTERING
from feeds.clustering.plan import Change
from feeds.clustering.window import Article
from feeds.models import ClusterArticle, EventCluster, RawArticle
from schedules import job_runs
from schedules.models import JobRun
from tests.breaches import assert_all_hold
from tests.factories import BriefArticleFactory, JobRunFactory, claim_of
from tests.feeds.clustered import article, articles_of, cluster, embedded, headlines, partition
from tests.feeds.turns import turn_of
from work.claims import Interrupted

ALL = len(headlines())


@pytest.fixture
def stored(transactional_db):
    return RawArticle.objects.bulk_create(embedded(articles_of(headlines())))


@pytest.fixture
def expected(stored):
    """Return the clusters of an undisturbed run, and delete them again."""
    cluster()
    found = partition()
    ClusterArticle.objects.all().delete()
    EventCluster.objects.all().delete()
    return found


def assert_all_is_counted():
    assert list(consistency.problems()) == []
    assert_all_hold()


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 3, 8])
def test_a_worker_that_is_killed_loses_nothing_and_doubles_nothing(programs, expected, times):
    row = JobRunFactory(job_name=EVENT_CLUSTERING.name)

    process = programs.main("tests.feeds.clusterer", row.pk, 5, times)
    assert process.code() == -signal.SIGKILL, process.logged()
    assert ClusterArticle.objects.count() < ALL
    assert bool(EventCluster.objects.count()) == (times > 1)
    assert_all_is_counted()
    job_runs.fail(claim_of(row), "the worker was lost")
    rows = cluster()

    assert partition() == expected
    assert 0 < rows <= ALL
    assert_all_is_counted()


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 2, 4])
def test_one_that_is_killed_while_articles_move_is_gone_on_with(programs, stored, times):
    expected = _put_into_wrong_clusters(stored)
    row = JobRunFactory(job_name=EVENT_CLUSTERING.name)

    process = programs.main("tests.feeds.clusterer", row.pk, 5, times)
    assert process.code() == -signal.SIGKILL, process.logged()
    assert partition() != expected
    # No article lacks a link, yet there is work left.
    assert ClusterArticle.objects.count() == ALL
    assert_all_is_counted()
    job_runs.fail(claim_of(row), "the worker was lost")
    cluster()

    assert partition() == expected
    assert_all_is_counted()


def _put_into_wrong_clusters(stored):
    """Move articles to random clusters and forget all earlier slots; return the partition before."""
    cluster()
    before = partition()
    JobRun.objects.all().delete()
    chance = random.Random(2)
    wrong = chance.sample(stored, 40)
    with transaction.atomic():
        links.unlink([each.pk for each in wrong])
        ids = list(EventCluster.objects.filter(article_count__gt=0).values_list("pk", flat=True))
        links.insert([(chance.choice(ids), each.pk) for each in wrong])
        links.refresh(ids)
    return before


@pytest.mark.long
def test_several_processes_at_once_put_each_article_into_one_cluster(programs, expected):
    row = JobRunFactory(job_name=EVENT_CLUSTERING.name)

    processes = [programs.main("tests.feeds.clusterer", row.pk, 3) for _ in range(3)]

    for process in processes:
        # A process that is overtaken repeatedly fails and leaves the rest to the others.
        assert process.code() == 0 or "JobFailed" in process.logged(), process.logged()
    assert_all_is_counted()
    job_runs.fail(claim_of(row), "two others had its slot")
    cluster()
    assert partition() == expected
    assert sum(EventCluster.objects.values_list("article_count", flat=True)) == ALL
    assert_all_is_counted()


def test_threads_at_once_count_what_is_linked(threads, expected, monkeypatch):
    monkeypatch.setattr(writing, "AT_ONCE", 3)
    turn = turn_of(EVENT_CLUSTERING)

    answers = threads.together([lambda: EVENT_CLUSTERING.function(turn)] * 2)

    assert any(isinstance(answer, int) for answer in answers), answers
    assert_all_is_counted()
    job_runs.fail(turn.claim, "two had it")
    cluster()
    assert partition() == expected
    assert_all_is_counted()


def test_threads_that_move_articles_in_opposite_directions_do_not_wait_in_a_circle(threads, transactional_db):
    # The first article of each cluster stays there.
    lefts, rights = ([article(9, *about) for _ in range(21)] for about in ((1, 0), (0, 1)))
    cluster()
    left, right = lefts[0].links.get().cluster_id, rights[0].links.get().cluster_id

    def swap(some, origin, target):
        found = [Change((_as_read(each, origin),), target) for each in some]
        return writing.write(found, lambda: None)

    answers = threads.together([lambda: swap(lefts[1:], left, right), lambda: swap(rights[:0:-1], right, left)])

    assert answers == [20, 20]
    assert_all_is_counted()


def _as_read(article, cluster_id):
    return Article(article.pk, article.happened_at, article.url, cluster_id)


def test_who_comes_second_finds_the_articles_in_a_cluster_and_counts_none_of_them(threads, transactional_db):
    first, second = article(9, 1, 0), article(8, 1, 0)
    change = Change((_as_read(first, None), _as_read(second, None)), None)
    went = threads.hold(lambda: writing._write([change], {}))

    late = threads.start(lambda: writing.write([change], lambda: None))
    assert late.waits()
    assert went.commit().rows == 2

    assert isinstance(late.error(), writing.Conflict)
    assert (EventCluster.objects.count(), EventCluster.objects.get().article_count) == (1, 2)
    assert_all_is_counted()


def transactions_of(changes, monkeypatch):
    """Write the changes; return how many articles came in each transaction."""
    came, real = [], links.insert
    monkeypatch.setattr(links, "insert", lambda wanted: came.append(len(wanted)) or real(wanted))
    writing.write(changes, assert_all_is_counted)
    return came


def test_what_comes_into_one_cluster_does_so_in_several_transactions(transactional_db, monkeypatch):
    monkeypatch.setattr(writing, "MOST_COMING", 4)
    new, others = [article(9, 1, 0) for _ in range(11)], [article(8, 0, 1) for _ in range(2)]
    changes = [Change(tuple(_as_read(each, None) for each in some), None) for some in (others, new)]

    assert transactions_of(changes, monkeypatch) == [2, 4, 4, 3]

    assert partition() == {frozenset(each.url for each in some) for some in (others, new)}
    assert_all_is_counted()


def test_what_moves_to_one_cluster_in_several_transactions_leaves_word_of_where_it_is(transactional_db, monkeypatch):
    monkeypatch.setattr(writing, "MOST_COMING", 4)
    moving, kept = [article(9, 1, 0) for _ in range(9)], article(8, 0, 1)
    cluster()
    away, target = moving[0].links.get().cluster_id, kept.links.get().cluster_id
    BriefArticleFactory(item__cluster_id=away)
    change = Change((_as_read(kept, target), *(_as_read(each, away) for each in moving)), target)

    assert transactions_of([change], monkeypatch) == [4, 4, 1]

    assert EventCluster.objects.get(pk=target).article_count == 10
    assert EventCluster.objects.get(pk=away).merged_into_id == target
    assert_all_is_counted()


def test_who_dies_between_two_parts_of_an_event_is_gone_on_with(transactional_db, monkeypatch):
    monkeypatch.setattr(writing, "MOST_COMING", 4)
    articles = [article(9, 1, 0) for _ in range(11)]
    turn = turn_of(EVENT_CLUSTERING)
    real = links.refresh
    monkeypatch.setattr(links, "refresh", lambda ids: turn.claim.stopping.set() or real(ids))

    with pytest.raises(Interrupted):
        EVENT_CLUSTERING.function(turn)
    job_runs.fail(turn.claim, "the worker has stopped")
    half = EventCluster.objects.get()
    assert half.article_count == 4
    assert_all_is_counted()
    cluster()

    assert {each.links.get().cluster_id for each in articles} == {half.pk}
    assert_all_is_counted()


def test_an_article_that_is_purged_meanwhile_is_left_out(threads, transactional_db):
    first, second = article(9, 1, 0), article(8, 1, 0)
    change = Change((_as_read(first, None), _as_read(second, None)), None)
    first.delete()

    with pytest.raises(writing.Conflict):
        writing.write([change], lambda: None)

    assert not EventCluster.objects.exists()
    assert cluster() == 1
    assert_all_is_counted()


def test_a_cluster_that_has_gone_meanwhile_is_noticed(transactional_db):
    first = article(9, 1, 0)
    change = Change((_as_read(first, None),), 4711)

    with pytest.raises(writing.Conflict, match="Cluster 4711 was deleted or merged meanwhile"):
        writing.write([change], lambda: None)


def test_a_cluster_that_has_been_merged_away_meanwhile_is_noticed_and_nothing_comes_into_it(transactional_db):
    few, many = article(9, 1, 0), [article(8 - n, 0.25, 1) for n in range(2)]
    cluster()
    away, kept = few.links.get().cluster_id, many[0].links.get().cluster_id
    BriefArticleFactory(item__cluster_id=away)
    late = article(7, 1, 0)
    # From a process that read the clusters before they were merged.
    stale = Change((_as_read(late, None),), away)
    writing.write([Change((_as_read(few, away), *(_as_read(each, kept) for each in many)), kept)], lambda: None)
    assert EventCluster.objects.get(pk=away).merged_into_id == kept

    with pytest.raises(writing.Conflict, match=f"Cluster {away} was deleted or merged meanwhile"):
        writing.write([stale], lambda: None)

    assert not late.links.exists()
    cluster()
    assert late.links.get().cluster_id != away
    assert_all_is_counted()


def test_who_is_overtaken_looks_again(transactional_db, monkeypatch):
    first, second = article(9, 1, 0), article(8, 0, 1)
    third = article(7, 0, 0, 1)
    real = writing.write
    came_between = []

    def write(changes, go_on):
        if not came_between:
            came_between.append(real([changes[0]], go_on))
        return real(changes, go_on)

    monkeypatch.setattr(writing, "write", write)
    monkeypatch.setattr(writing, "AT_ONCE", 1)

    # The interfering write has stored one of the three.
    assert cluster() == 2

    assert came_between == [1]
    assert len({each.links.get().cluster_id for each in (first, second, third)}) == 3
    assert_all_is_counted()
