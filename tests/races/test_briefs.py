"""Briefs that are published concurrently, and clusters that are deleted meanwhile."""

import pytest
from django.db import IntegrityError, transaction

from feeds.briefs.job import DAILY_BRIEF
from feeds.briefs.publishing import publish
from feeds.models import Brief, BriefArticle, BriefItem, ClusterArticle, EventCluster, RawArticle
from tests.breaches import breaches
from tests.feeds.telling import SLOT, event, headlines, tell
from tests.feeds.turns import turn_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bridge():
    cluster = event("Bridge closed")
    for _ in range(3):
        tell(cluster)
    tell(event("Cats sleep"))
    return cluster


def is_whole(brief):
    return (brief.items.count(), BriefArticle.objects.count()) == (2, 4)


def test_of_many_attempts_one_publishes(threads, bridge):
    turn = turn_of(DAILY_BRIEF, SLOT)

    answers = threads.together([lambda: publish(turn)] * 6)

    assert sorted(answers) == [0, 0, 0, 0, 0, 7]
    assert is_whole(Brief.objects.get())


def test_the_second_waits_for_the_first_and_finds_its_brief(threads, step_at, bridge):
    turn = turn_of(DAILY_BRIEF, SLOT)
    at = step_at("brief.published")
    first = threads.start(lambda: publish(turn))
    at.until_reached()

    second = threads.start(lambda: publish(turn))
    assert second.waits()
    assert not Brief.objects.exists()
    at.go_on()

    assert (first.answer(), second.answer()) == (7, 0)
    assert is_whole(Brief.objects.get())


def test_the_second_publishes_when_the_first_takes_it_back(threads, bridge):
    turn = turn_of(DAILY_BRIEF, SLOT)
    first = threads.hold(lambda: publish(turn))

    second = threads.start(lambda: publish(turn))
    assert second.waits()
    first.roll_back()

    assert second.answer() == 7
    assert is_whole(Brief.objects.get())


def purge(cluster):
    """Purge as retention does: first the links, then the articles, except articles that a brief refers to."""
    with transaction.atomic():
        ids = list(ClusterArticle.objects.filter(cluster=cluster).values_list("raw_article", flat=True))
        list(RawArticle.objects.select_for_update().filter(pk__in=ids).order_by("pk"))
        if BriefArticle.objects.filter(raw_article__in=ids).exists():
            return 0
        ClusterArticle.objects.filter(cluster=cluster).delete()
        if not BriefItem.objects.filter(cluster=cluster).exists():
            EventCluster.objects.filter(pk=cluster.pk).delete()
        return RawArticle.objects.filter(pk__in=ids).delete()[0]


def test_a_purge_waits_for_the_brief_and_leaves_what_it_names(threads, step_at, bridge):
    turn = turn_of(DAILY_BRIEF, SLOT)
    at = step_at("brief.published")
    publishing = threads.start(lambda: publish(turn))
    at.until_reached()

    purging = threads.start(lambda: purge(bridge))
    assert purging.waits()
    at.go_on()

    assert (publishing.answer(), purging.answer()) == (7, 0)
    assert is_whole(Brief.objects.get())


@pytest.mark.only_on("postgresql")
def test_who_writes_to_its_clusters_does_not_wait_for_the_brief(threads, step_at, bridge):
    turn = turn_of(DAILY_BRIEF, SLOT)
    at = step_at("brief.published")
    publishing = threads.start(lambda: publish(turn))
    at.until_reached()

    clustering = threads.start(lambda: EventCluster.objects.filter(pk=bridge.pk).update(article_count=4))

    assert not clustering.waits()
    assert clustering.answer() == 1
    at.go_on()
    assert publishing.answer() == 7


def test_a_brief_is_made_of_what_is_left_when_something_was_purged_meanwhile(threads, bridge):
    turn = turn_of(DAILY_BRIEF, SLOT)
    purging = threads.hold(lambda: purge(bridge))

    publishing = threads.start(lambda: publish(turn))
    assert publishing.waits()
    assert purging.commit() == 3

    assert publishing.answer() == 3
    assert headlines(Brief.objects.get()) == ["Cats sleep"]


def test_briefs_and_purges_that_meet_again_and_again_break_nothing(threads, bridge):
    turns = [turn_of(DAILY_BRIEF, SLOT)] * 3
    clusters = [event(f"Event {n}") for n in range(8)]
    for cluster in clusters:
        for _ in range(3):
            tell(cluster)

    def purge_all():
        for cluster in clusters:
            try:
                purge(cluster)
            except IntegrityError:
                # On PostgreSQL, a brief has referred to the cluster meanwhile; the transaction is rolled back.
                continue

    answers = threads.together([*(lambda turn=turn: publish(turn) for turn in turns), purge_all, purge_all])

    assert [each for each in answers if isinstance(each, Exception)] == []
    brief = Brief.objects.get()
    assert len([each for each in answers if each]) == 1
    assert brief.items.count() >= 2
    assert breaches("a_brief_is_there_as_a_whole") == []
    named = set(BriefArticle.objects.values_list("raw_article", flat=True))
    assert named == set(RawArticle.objects.filter(pk__in=named).values_list("pk", flat=True))
