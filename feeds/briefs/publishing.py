"""Publishes a brief. All of its rows are inserted in one transaction, so readers never see part of a brief."""

import time
from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

import structlog
from django.conf import settings
from django.db import IntegrityError, connection, models, transaction

from feeds.briefs import drafting
from feeds.briefs.drafting import Draft
from feeds.briefs.news import window_of
from feeds.briefs.waiting import why_wait
from feeds.models import Brief, BriefArticle, BriefItem, EventCluster, RawArticle
from schedules import cron
from schedules.jobs import JobContext, JobFailed
from work import failpoints
from work.sql.contention import patiently

# A draft fails if a row that it names was deleted in the meantime. A running cleanup may cause this several times in a
# row.
TRIES = 20
PAUSE_SECONDS = 0.2

log = structlog.get_logger(__name__)


def publish(turn: JobContext) -> int:
    """Publish the brief of this slot and return how many rows were inserted. Return 0 if a slot of this morning has
    already published one, or if a later slot is to publish it.
    """
    slot = turn.scheduled_for
    # Briefs that were published by hand between the slots of this day don't count.
    is_slot = partial(cron.is_slot, turn.job.cron, turn.job.time_zone)
    day = slot.astimezone(ZoneInfo(turn.job.time_zone)).date()
    of_the_day = Brief.objects.filter(name__startswith=day.isoformat()).values_list("scheduled_for", flat=True)
    if is_slot(slot) and any(map(is_slot, of_the_day)):
        return 0
    if why := why_wait(turn, window_of(slot).until):
        log.info("brief.waits", scheduled_for=slot.isoformat(), why=why)
        return 0
    for _ in range(TRIES):
        turn.go_on()
        if _is_published(slot):
            return 0
        draft = drafting.draft(slot)
        turn.go_on()
        if inserted := patiently(partial(_insert, draft)):
            return inserted
        time.sleep(PAUSE_SECONDS)
    raise JobFailed(
        f"The brief was not published: some of its events or articles were deleted while it was written, {TRIES} times"
        " in a row. Trigger the job again when no cleanup is running."
    )


def _insert(draft: Draft) -> int:
    """Insert the draft and return the number of rows. Return 0 if a row that the draft refers to has been deleted, or
    if another worker has published this slot.
    """
    try:
        with transaction.atomic():
            # Lock articles first, and in the order in which deletions lock them, to avoid deadlocks.
            rows = ((RawArticle, draft.article_ids), (EventCluster, draft.cluster_ids))
            is_whole = all(articles for _, articles in draft.items)
            is_whole = is_whole and all(_lock(model, ids) == len(ids) for model, ids in rows)
            return _write(draft) if is_whole else 0
    except IntegrityError:
        if _is_published(draft.brief["scheduled_for"]):
            return 0
        # Another slot of this day has taken the name, or, on SQL Server, a row was deleted in spite of the lock.
        log.info("brief.contended", scheduled_for=draft.brief["scheduled_for"].isoformat(), exc_info=True)
        return 0


def _lock(model: type[models.Model], ids: set[int]) -> int:
    """Lock rows until the end of the transaction and return how many still exist."""
    rows = model._default_manager.filter(pk__in=list(ids)).order_by("pk").values_list("pk")
    # Take the lock that the foreign keys would take only at the commit, which is too late. It doesn't block other
    # writers of these rows. On SQLite the transaction already excludes all other writers.
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
    articles = []
    for item_values, article_values in draft.items:
        item = BriefItem.objects.create(brief=brief, **item_values)
        articles += [BriefArticle(item=item, **values) for values in article_values]
    BriefArticle.objects.bulk_create(articles)
    failpoints.hit("brief.published")
    log.info("brief.published", brief=brief.pk, name=name, items=len(draft.items), articles=len(articles))
    return 1 + len(draft.items) + len(articles)


def _name(slot: datetime) -> str:
    """Return the date of the slot. A second brief on the same local day gets a numeric suffix."""
    day = slot.date().isoformat()
    earlier = Brief.objects.filter(name__startswith=day).count()
    return f"{day}-{earlier + 1}" if earlier else day


def _is_published(slot: datetime) -> bool:
    return Brief.objects.filter(scheduled_for=slot).exists()
