from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, connection, transaction

from feeds.briefs import guards, publishing
from feeds.briefs.job import DAILY_BRIEF
from feeds.briefs.publishing import publish
from feeds.clustering.job import EVENT_CLUSTERING
from feeds.ingestion import INGESTION
from feeds.models import Brief, BriefArticle, BriefItem, ClusterArticle, Immutable, RawArticle
from schedules import job_runs
from schedules.jobs import JobFailed, all_jobs
from tests.breaches import breaches, plant, unguard
from tests.factories import (
    BriefArticleFactory,
    BriefItemFactory,
    ClusterArticleFactory,
    FeedFactory,
    ScheduledJobFactory,
    write,
)
from tests.feeds.hostile_words import TITLES, URLS
from tests.feeds.telling import SLOT, event, headlines, published, ran, run, tell, words_of
from tests.feeds.turns import turn_of
from work import clock
from work.claims import Interrupted

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
HALF_AN_HOUR = timedelta(minutes=30)


def articles_of(brief, position=0):
    return list(BriefArticle.objects.filter(item__brief=brief, item__position=position).order_by("position"))


def test_it_is_one_of_the_jobs_and_says_how_late_it_may_be():
    assert DAILY_BRIEF in all_jobs()
    assert (DAILY_BRIEF.name, DAILY_BRIEF.cron, DAILY_BRIEF.coalesce) == ("daily_brief", "0,30 6-11 * * *", True)
    assert DAILY_BRIEF.misfire_grace == timedelta(hours=12)
    assert DAILY_BRIEF.max_runtime == timedelta(minutes=5)


def test_a_brief_has_events_with_their_articles_and_says_why():
    bridge, cats = event("Bridge closed"), event("Cats sleep")
    first, second = FeedFactory(title="First News"), FeedFactory(title="Second News")
    one = tell(bridge, first, title="The bridge is closed", summary="Since <b>Monday</b>.", similarity=0.95)
    two = tell(bridge, second, title="Bridge: closed!", hours=2)
    tell(cats, first, hours=20)

    rows = run()

    brief = Brief.objects.get()
    assert rows == 1 + 2 + 3
    assert (brief.name, brief.scheduled_for, brief.time_zone) == ("2026-05-04", SLOT, "UTC")
    assert (brief.window_from, brief.window_until) == (SLOT - DAY, SLOT)
    assert (brief.articles_seen, brief.clusters_seen) == (3, 2)
    assert headlines(brief) == ["Bridge closed", "Cats sleep"]
    item = brief.items.get(position=0)
    assert (item.cluster_id, item.article_count, item.summary) == (bridge.pk, 2, "Since <b>Monday</b>.")
    assert item.score == pytest.approx(sum(reason["share"] for reason in item.reasons))
    assert words_of(item)["coverage"] == "2 articles from 2 sources"
    assert words_of(item)["freshness"] == "began 5 hours earlier"
    shown = articles_of(brief)
    assert [(each.raw_article_id, each.url, each.title, each.source, each.happened_at) for each in shown] == [
        (one.pk, one.url, "The bridge is closed", "First News", one.happened_at),
        (two.pk, two.url, "Bridge: closed!", "Second News", two.happened_at),
    ]


def test_a_slot_publishes_once():
    tell(event())
    assert run() == 3
    tell(event("Later"))
    turn = turn_of(DAILY_BRIEF, SLOT + timedelta(hours=1))
    turn.scheduled_for = SLOT

    assert publish(turn) == 0

    assert headlines(Brief.objects.get()) == ["Bridge closed"]


def test_the_window_begins_where_the_one_before_ended():
    told, new = event("Told"), event("New")
    tell(told, hours=30)
    yesterday = published(SLOT - DAY)
    tell(new, hours=3)

    today = published()

    assert headlines(yesterday) == ["Told"]
    assert headlines(today) == ["New"]
    assert today.window_from == yesterday.window_until == SLOT - DAY


def test_a_first_window_is_a_day_and_none_is_longer_than_three():
    assert published(SLOT - 10 * DAY).window_from == SLOT - 11 * DAY

    assert published().window_from == SLOT - 3 * DAY


def test_a_slot_that_is_run_before_its_time_ends_now():
    slot = clock.now() + timedelta(hours=5)
    tell(event(), hours=6, slot=slot)

    brief = published(slot)

    assert headlines(brief) == ["Bridge closed"]
    assert brief.window_until < slot - timedelta(hours=4)


def test_what_came_after_the_slot_is_for_the_next_one():
    bridge = event()
    tell(bridge, hours=3)
    tell(bridge, hours=-1)
    tell(event("Later"), hours=-2)

    late = published()

    assert headlines(late) == ["Bridge closed"]
    assert late.items.get().article_count == 1
    assert set(headlines(published(SLOT + DAY))) == {"Bridge closed", "Later"}


def test_what_was_clustered_late_is_told_late():
    tell(event(), hours=30, linked=2)
    published(SLOT - DAY)

    assert headlines(published()) == ["Bridge closed"]


def test_a_link_that_was_not_committed_when_the_brief_before_was_made_is_told():
    brief = published(SLOT - DAY)
    tell(event(), hours=24.05)
    assert not brief.items.exists()

    assert headlines(published()) == ["Bridge closed"]


def test_what_the_brief_before_has_told_is_no_news():
    bridge = event()
    tell(bridge, hours=24.05)
    assert headlines(published(SLOT - DAY)) == ["Bridge closed"]

    assert headlines(published()) == []


def test_an_event_that_goes_on_says_that_it_was_told():
    bridge = event()
    tell(bridge, hours=30)
    published(SLOT - DAY)
    for _ in range(3):
        tell(bridge, hours=2)

    item = published().items.get()

    assert words_of(item)["told"] == "also in the brief of 2026-05-03, 3 new articles since"
    assert words_of(item)["coverage"] == "3 new articles from 3 sources, 4 in all"
    assert words_of(item)["second source"] == "reported by more than one source for the first time"
    assert item.article_count == 4


def test_an_event_says_so_too_when_what_was_told_has_become_a_part_of_it():
    told, larger = event("Told"), event("Larger")
    tell(told, hours=30)
    published(SLOT - DAY)
    ClusterArticle.objects.filter(cluster=told).update(cluster=larger)
    write(told, article_count=0, merged_into=larger)
    tell(larger, hours=2)

    (item,) = published().items.all()

    assert (item.headline, item.cluster_id) == ("Larger", larger.pk)
    assert words_of(item)["told"] == "also in the brief of 2026-05-03, 1 new article since"


def move(links, cluster):
    """Move the links to this cluster as clustering does: by new links."""
    for link in list(links):
        link.delete()
        ClusterArticleFactory(cluster=cluster, raw_article=link.raw_article, linked_at=SLOT - timedelta(hours=1))


def test_articles_that_are_only_moved_are_no_news():
    told, larger, largest = event("Told"), event("Larger"), event("Largest")
    for _ in range(3):
        tell(told, hours=30)
    assert headlines(published(SLOT - DAY)) == ["Told"]
    move(told.links.all(), largest)
    write(told, merged_into=larger)
    write(larger, merged_into=largest)

    assert headlines(published(SLOT - timedelta(minutes=30))) == []
    tell(largest, hours=0.4)

    assert words_of(published().items.get())["coverage"] == "1 new article from 1 source, 4 in all"


def test_what_was_seen_just_before_an_event_was_told_and_clustered_after_is_news():
    bridge = event()
    tell(bridge, hours=30)
    published(SLOT - DAY)
    tell(bridge, hours=24.1, linked=23.9)

    assert words_of(published().items.get())["coverage"] == "1 new article from 1 source, 2 in all"


def test_clusters_that_are_empty_or_merged_are_not_chosen():
    event("Empty")
    merged = event("Merged", merged_into=event("Other"))
    tell(merged)

    brief = published()

    assert (headlines(brief), brief.clusters_seen) == ([], 0)


def test_what_happened_long_ago_is_no_news_though_it_comes_now():
    tell(event("Archive"), hours=1, happened_at=SLOT - 30 * DAY)

    assert headlines(published()) == []


def test_the_best_ten_are_told_the_best_first():
    for n in range(12):
        cluster = event(f"Event of {n}")
        for _ in range(n + 1):
            tell(cluster, hours=4)

    brief = published()

    assert headlines(brief) == [f"Event of {n}" for n in range(11, 1, -1)]
    assert brief.clusters_seen == 12
    scores = list(brief.items.order_by("position").values_list("score", flat=True))
    assert scores == sorted(scores, reverse=True)
    assert len(articles_of(brief)) == 5
    assert brief.items.get(position=0).article_count == 12


def test_each_source_has_its_word_before_one_has_a_second():
    bridge, busy = event(), FeedFactory(title="Busy")
    for n in range(6):
        tell(bridge, busy, title=f"Busy {n}", similarity=0.99 - n / 100)
    tell(bridge, FeedFactory(title="Far"), similarity=0.6)
    tell(bridge, FeedFactory(title="Near"), similarity=0.97)

    brief = published()

    assert [each.source for each in articles_of(brief)] == ["Busy", "Near", "Far", "Busy", "Busy"]
    assert words_of(brief.items.get())["coverage"] == "8 articles from 3 sources, of which 5 count"


def test_feeds_of_one_site_are_one_source():
    bridge = event()
    for section in ("world", "politics", "science"):
        tell(bridge, FeedFactory(site_url=f"https://www.example.com/{section}"))
    tell(bridge, FeedFactory(site_url="https://example.com"))
    tell(bridge, FeedFactory())

    assert words_of(published().items.get())["coverage"] == "5 articles from 2 sources, of which 4 count"


def test_the_summary_is_that_of_the_most_central_article_that_has_one():
    bridge = event()
    tell(bridge, similarity=0.9, summary="Far")
    tell(bridge, similarity=0.99)
    tell(bridge, similarity=0.95, summary="word " * 1000)

    summary = published().items.get().summary

    assert summary.startswith("word word")
    assert summary.endswith("word…")
    assert len(summary) <= 400


def test_what_strangers_wrote_is_kept_harmless():
    for title, url in zip(TITLES, URLS, strict=False):
        tell(event(title.replace("\x00", "")), title=title, url=url, summary=title)
    if connection.vendor == "sqlite":
        tell(event("x" * 100_000), title="y" * 100_000, summary="z " * 100_000)

    brief = published()

    said = [text for item in brief.items.all() for text in (item.headline, item.summary)]
    said += [text for item in brief.items.all() for text in item.articles.values_list("title", flat=True)]
    assert len(said) > 20
    for text in said:
        assert len(text) <= 500
        assert all(each.isprintable() for each in text)


def test_a_source_without_a_name_is_its_host():
    tell(event(), FeedFactory(title="", url="https://www.example.com/feed.xml"))

    assert [each.source for each in articles_of(published())] == ["example.com"]


# No news


def answered(*, hours=2.0, **columns):
    return write(FeedFactory(**columns), succeeded_at=SLOT - timedelta(hours=hours), checked_at=SLOT)


def test_a_brief_without_anything_to_tell_is_published_too():
    answered()
    answered()

    assert run() == 1

    brief = Brief.objects.get()
    assert (brief.feeds_seen, brief.feeds_silent, brief.articles_seen, brief.clusters_seen) == (2, 0, 0, 0)
    assert not brief.items.exists()


def test_feeds_that_did_not_answer_are_told_from_those_that_had_nothing_to_tell():
    answered(hours=2)
    answered(hours=50)
    write(FeedFactory(), checked_at=SLOT - timedelta(hours=1), failures=1, failing_since=clock.now(), last_error="404")
    write(FeedFactory(), checked_at=SLOT - timedelta(hours=40), failures=9, failing_since=clock.now(), last_error="404")
    write(
        FeedFactory(),
        checked_at=SLOT,
        failures=1,
        failing_since=clock.now(),
        last_error="404",
        paused_at=SLOT,
        paused_by="olga",
    )

    brief = published()

    assert (brief.feeds_seen, brief.feeds_silent) == (1, 3)
    assert brief.last_answer_at == SLOT - timedelta(hours=2)


def test_feeds_that_nobody_has_asked_are_not_called_silent():
    write(answered(hours=2), checked_at=SLOT - timedelta(hours=2))
    FeedFactory()
    published(SLOT - timedelta(minutes=1))

    brief = published(SLOT + timedelta(microseconds=1))

    assert (brief.feeds_seen, brief.feeds_silent) == (0, 0)
    assert brief.last_answer_at == SLOT - timedelta(hours=2)


# Names and time zones


def test_the_day_is_that_of_the_time_zone(settings):
    settings.ADE_BRIEF_TIME_ZONE = "Pacific/Auckland"

    brief = published(datetime(2026, 5, 3, 18, tzinfo=UTC))

    assert (brief.name, brief.time_zone) == ("2026-05-04", "Pacific/Auckland")


def test_a_second_brief_of_a_day_has_a_number():
    by_hand = timedelta(microseconds=1)
    names = [published(SLOT + timedelta(hours=hours) + by_hand).name for hours in (0, 3, 1, 30)]

    assert names == ["2026-05-04", "2026-05-04-2", "2026-05-04-3", "2026-05-05"]


def test_a_name_that_was_taken_meanwhile_is_not_taken_twice(monkeypatch):
    published()
    names = iter(["2026-05-04", "2026-05-04-2"])
    monkeypatch.setattr(publishing, "_name", lambda slot: next(names))

    with transaction.atomic():
        assert published(SLOT + timedelta(hours=1, microseconds=1)).name == "2026-05-04-2"


def test_a_later_slot_of_the_morning_publishes_what_the_first_could_not():
    tell(event())
    dying = turn_of(DAILY_BRIEF, SLOT)
    dying.claim.lost.set()
    with pytest.raises(Interrupted):
        publish(dying)
    job_runs.fail(dying.claim, "its claim was lost")

    brief = published(SLOT + HALF_AN_HOUR)

    assert (brief.name, headlines(brief)) == ("2026-05-04", ["Bridge closed"])


def test_a_later_slot_of_the_morning_has_nothing_to_do_when_there_is_a_brief():
    published()
    tell(event("Later"))

    assert run(SLOT + HALF_AN_HOUR) == 0

    assert Brief.objects.count() == 1


def test_a_brief_that_was_made_by_hand_is_not_that_of_the_morning():
    published(SLOT - timedelta(hours=1, microseconds=-1))

    assert published().name == "2026-05-04-2"


# After a night without workers


QUARTER = timedelta(minutes=15)
BOOT = SLOT + timedelta(minutes=35)


@pytest.fixture
def publishes(monkeypatch):
    """Return a function that returns whether this slot publishes, five minutes after its time or at `at`."""

    def publishes(slot, *, at=None):
        moment = at or slot + timedelta(minutes=5)
        monkeypatch.setattr(clock, "now", lambda: moment)
        return bool(run(slot))

    return publishes


def ingest_and_cluster(at, **columns):
    ran(INGESTION, at)
    ran(EVENT_CLUSTERING, at + timedelta(minutes=5), **columns)


def test_after_a_night_without_a_worker_the_brief_waits_for_what_feeds_have_told(publishes):
    feed = FeedFactory()
    tell(event("In the evening"), feed, hours=11)
    ingest_and_cluster(SLOT - timedelta(hours=8))
    assert not publishes(SLOT + HALF_AN_HOUR)
    ingest_and_cluster(BOOT + timedelta(minutes=10))
    tell(event("In the night"), feed, hours=-0.85, happened_at=SLOT - timedelta(hours=3))

    assert publishes(SLOT + 2 * HALF_AN_HOUR)

    brief = Brief.objects.get()
    assert (brief.name, set(headlines(brief))) == ("2026-05-04", {"In the evening", "In the night"})


def test_what_is_clustered_after_the_slot_is_waited_for_also_when_the_slot_is_run_late(publishes):
    FeedFactory()
    ingest_and_cluster(SLOT + timedelta(minutes=6))

    assert not publishes(SLOT, at=SLOT + timedelta(minutes=20))
    assert publishes(SLOT + HALF_AN_HOUR)


@pytest.mark.parametrize("broken", [{"status": "failed"}, {"minutes": 20}])
def test_clustering_that_failed_or_has_not_come_to_its_end_is_waited_for(publishes, broken):
    FeedFactory()
    ingest_and_cluster(SLOT - QUARTER, **broken)

    assert not publishes(SLOT)


def test_clustering_that_began_before_feeds_were_asked_is_not_enough(publishes):
    FeedFactory()
    ran(EVENT_CLUSTERING, SLOT - timedelta(minutes=20), minutes=10)
    ran(INGESTION, SLOT - QUARTER)

    assert not publishes(SLOT)


def test_one_long_turn_of_ingestion_or_of_clustering_does_not_hold_up_the_brief(publishes):
    FeedFactory()
    ingest_and_cluster(SLOT - 3 * QUARTER)
    ran(INGESTION, SLOT - QUARTER, minutes=9)
    ran(EVENT_CLUSTERING, SLOT - timedelta(minutes=10), minutes=12)

    assert publishes(SLOT)


def test_the_last_slot_of_a_morning_waits_for_nothing(publishes):
    FeedFactory()
    last = SLOT.replace(hour=11, minute=30)

    assert not publishes(last - HALF_AN_HOUR)
    assert publishes(last)


def test_a_slot_of_the_past_that_is_run_by_hand_waits_for_nothing(publishes):
    FeedFactory()

    assert publishes(SLOT, at=SLOT + timedelta(hours=6))


def test_a_brief_that_somebody_asks_for_waits_for_nothing(publishes):
    FeedFactory()

    assert publishes(SLOT + timedelta(microseconds=1))


def test_without_a_feed_to_ask_nothing_is_waited_for(publishes):
    write(FeedFactory(), paused_at=SLOT, paused_by="olga")

    assert publishes(SLOT)


@pytest.mark.parametrize("paused", [INGESTION, EVENT_CLUSTERING])
def test_jobs_that_are_paused_are_not_waited_for(publishes, paused):
    FeedFactory()
    ScheduledJobFactory(name=paused.name, paused_at=SLOT, paused_by="olga")

    assert publishes(SLOT)


def test_jobs_that_are_not_run_here_are_not_waited_for(publishes, settings):
    settings.JOBS = ["feeds.briefs.job.DAILY_BRIEF"]
    FeedFactory()

    assert publishes(SLOT)


# Failures


def test_nothing_is_written_when_the_claim_is_gone():
    tell(event())
    turn = turn_of(DAILY_BRIEF, SLOT)
    turn.claim.lost.set()

    with pytest.raises(Interrupted):
        publish(turn)

    assert not Brief.objects.exists()


def test_what_goes_away_while_it_is_chosen_is_left_out(monkeypatch):
    kept, gone = event("Kept"), event("Gone")
    tell(kept)
    article = tell(gone)
    draft = publishing.drafting.draft

    def and_then_it_goes(slot):
        made = draft(slot)
        ClusterArticle.objects.filter(raw_article=article).delete()
        RawArticle.objects.filter(pk=article.pk).delete()
        return made

    monkeypatch.setattr(publishing.drafting, "draft", and_then_it_goes)

    assert headlines(published()) == ["Kept"]


def test_it_does_not_try_for_ever(monkeypatch):
    tell(event())
    tries = []
    monkeypatch.setattr(publishing, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(publishing, "_insert", lambda draft: tries.append(draft) and 0)

    with pytest.raises(JobFailed, match="The brief was not published: some of its events or articles were deleted"):
        publish(turn_of(DAILY_BRIEF, SLOT))

    assert len(tries) == publishing.TRIES


# Immutable


@pytest.fixture
def article():
    return BriefArticleFactory(item=BriefItemFactory(position=0), position=0)


def rows_of(article):
    return article, article.item, article.item.brief


def test_what_was_published_is_not_changed_by_its_models(article):
    for row in rows_of(article):
        rows = type(row).objects.filter(pk=row.pk)
        for change in (
            row.save,
            row.delete,
            rows.delete,
            lambda rows=rows: rows.update(pk=1),
            lambda rows=rows, row=row: rows.bulk_update([row], ["id"]),
        ):
            with pytest.raises(Immutable, match="is immutable"):
                change()


@pytest.mark.only_on("sqlite", "postgresql")
@pytest.mark.parametrize(
    ("table", "column"),
    [("briefs", "articles_seen"), ("brief_items", "article_count"), ("brief_articles", "position")],
)
def test_the_database_refuses_to_change_it(article, table, column):
    with pytest.raises(IntegrityError, match=guards.REFUSAL), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {column} = 7")  # noqa: S608  # no user input


@pytest.mark.only_on("sqlite", "postgresql")
@pytest.mark.parametrize("table", ["briefs", "brief_items", "brief_articles"])
def test_the_database_refuses_to_delete_it(article, table):
    """A missing article would go unnoticed, and retention might then delete the original."""
    with pytest.raises(IntegrityError, match=guards.REFUSAL), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table}")  # noqa: S608  # no user input


@pytest.mark.only_on("sqlite", "postgresql")
def test_a_database_that_refused_only_changes_refuses_deletions_too(article):
    connection.check_constraints()
    with connection.cursor() as cursor:
        end = " ON brief_articles" if connection.vendor == "postgresql" else ""
        cursor.execute(f"DROP TRIGGER brief_articles_remain{end}")

    guards.drop()
    guards.make()

    with pytest.raises(IntegrityError, match=guards.REFUSAL), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM brief_articles")


def test_the_database_does_not_delete_what_a_brief_names(article):
    item = article.item
    for table, id in (
        ("raw_articles", article.raw_article_id),
        ("event_clusters", item.cluster_id),
        ("briefs", item.brief_id),
        ("brief_items", item.pk),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            delete(table, id)


def delete(table, id):
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table} WHERE id = %s", [id])  # noqa: S608  # no user input
    connection.check_constraints()


# The invariant


def test_a_brief_that_is_not_whole(article):
    assert breaches("a_brief_is_there_as_a_whole") == []
    brief = article.item.brief
    unguard(BriefArticle)
    BriefArticle.objects.filter(pk=article.pk)._raw_delete("default")

    assert breaches("a_brief_is_there_as_a_whole") == [("brief", brief.pk)]


def test_a_brief_that_counts_less_than_it_shows(article):
    unguard(BriefItem)
    plant(article.item, article_count=0)

    assert breaches("a_brief_is_there_as_a_whole") == [("brief", article.item.brief_id)]
