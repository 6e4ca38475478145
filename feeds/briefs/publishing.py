"""A brief is there as a whole, or not at all: all of its rows are inserted in one transaction."""

import time
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

import structlog
from django.conf import settings
from django.db import IntegrityError, connection, models, transaction

from feeds.briefs import choosing
from feeds.briefs.choosing import Draft, Values
from feeds.briefs.news import window_of
from feeds.briefs.waiting import why_wait
from feeds.models import Brief, BriefArticle, BriefItem, EventCluster, RawArticle
from runs.jobs import JobFailed, Turn, cron
from work import failpoints
from work.contention import patiently

# Another one is necessary when something has gone meanwhile: a cleanup under way may get ahead of several.
TRIES = 20
PAUSE_SECONDS = 0.2

log = structlog.get_logger(__name__)


def publish(turn: Turn) -> int:
    """The brief of this slot, unless one of this morning's slots has it already, or a later one is to have it. Answers
    how many rows it has taken.
    """
    slot = turn.scheduled_for
    if _has_its_brief(turn):
        return 0
    if why := why_wait(turn, window_of(slot).until):
        log.info("brief.waits", scheduled_for=slot.isoformat(), why=why)
        return 0
    for _ in range(TRIES):
        turn.go_on()
        if _is_published(slot):
            return 0
        draft = choosing.draft(slot)
        turn.go_on()
        if inserted := patiently(partial(_insert, draft)):
            return inserted
        time.sleep(PAUSE_SECONDS)
    raise JobFailed(
        f"expected events that stay while they are written down, found some gone {TRIES} times;"
        " trigger the job again when no cleanup is under way"
    )


def _has_its_brief(turn: Turn) -> bool:
    """The day by its schedule; what somebody has published by hand besides does not count."""
    is_slot = partial(cron.is_slot, turn.job.cron, turn.job.time_zone)
    day = turn.scheduled_for.astimezone(ZoneInfo(turn.job.time_zone)).date()
    of_the_day = Brief.objects.filter(name__startswith=day.isoformat()).values_list("scheduled_for", flat=True)
    return is_slot(turn.scheduled_for) and any(map(is_slot, of_the_day))


def _insert(draft: Draft) -> int:
    """0 when something of it has gone, or somebody else has published it."""
    try:
        with transaction.atomic():
            return _write(draft) if _hold(draft) else 0
    except IntegrityError:
        if _is_published(draft.brief["scheduled_for"]):
            return 0
        # Of another slot of this day, which has taken the name; or SQL Server has let something go all the same.
        log.info("brief.contended", scheduled_for=draft.brief["scheduled_for"].isoformat(), exc_info=True)
        return 0


def _hold(draft: Draft) -> bool:
    """Keep what it names from going away until the end of the transaction. False: some of it has gone."""
    is_whole = all(articles for _, articles in draft.items)
    # Articles first, as whoever deletes them does.
    wanted = ((RawArticle, draft.article_ids), (EventCluster, draft.cluster_ids))
    return is_whole and all(_held(model, ids) == len(ids) for model, ids in wanted)


def _held(model: type[models.Model], ids: Iterable[int]) -> int:
    rows = model._default_manager.filter(pk__in=list(ids)).order_by("pk").values_list("pk")
    # As a reference does at the commit, which would be too late; who writes to the rows is not disturbed. On SQLite
    # the transaction is one already.
    lock = {"postgresql": " FOR KEY SHARE", "sqlite": ""}.get(connection.vendor)
    if not ids or lock is None:
        return len(rows.select_for_update()) if ids else 0
    sql, params = rows.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"{sql}{lock}", params)
        return len(cursor.fetchall())


def _write(draft: Draft) -> int:
    zone = settings.ADE_BRIEF_TIME_ZONE
    name = _name(draft.brief["scheduled_for"].astimezone(ZoneInfo(zone)))
    brief = Brief.objects.create(name=name, time_zone=zone, **draft.brief)
    articles = [article for values, of_it in draft.items for article in _written_item(brief, values, of_it)]
    BriefArticle.objects.bulk_create(articles)
    failpoints.hit("brief.published")
    log.info("brief.published", brief=brief.pk, name=name, items=len(draft.items), articles=len(articles))
    return 1 + len(draft.items) + len(articles)


def _written_item(brief: Brief, values: Values, articles: list[Values]) -> list[BriefArticle]:
    item = BriefItem.objects.create(brief=brief, **values)
    return [BriefArticle(item=item, **article) for article in articles]


def _name(slot: datetime) -> str:
    """Of the same day by these clocks, the second has a number behind it."""
    day = slot.date().isoformat()
    earlier = Brief.objects.filter(name__startswith=day).count()
    return f"{day}-{earlier + 1}" if earlier else day


def _is_published(slot: datetime) -> bool:
    return Brief.objects.filter(scheduled_for=slot).exists()
