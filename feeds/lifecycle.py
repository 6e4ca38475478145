"""The verbs of feeds. Each writes the history of the feed."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Coalesce

from feeds.models import FeedSource, RawArticle
from work import clock, lifecycle
from work.changes import INFO, WARNING
from work.lifecycle import Data
from work.state_machine import StateMachine

FEED_STATES = StateMachine(
    kind="feed",
    model=FeedSource,
    initial="",
    created="FEED_ADDED",
    table={},
    events={
        "FEED_ADDED": "A person added or imported it.",
        "FEED_PAUSED": "A person paused it.",
        "FEED_RESUMED": "A person resumed it.",
        "FEED_RENAMED": "A person renamed it; the data have its `title` and the one `before`.",
        "FEED_CHECK_ASKED": "A person requested a check now.",
        "FEED_REMOVED": "A person removed it; it had no articles. The data have its `url` and `title`.",
        "FEED_FAILED": "A check failed: the first failure in a row, and each time the message changes.",
        "FEED_RECOVERED": "It works again.",
        "FEED_FLAWED": "It answered, but with broken syntax or unusable items; written each time the problem changes.",
        "FEED_MOVED": "Its server announced a permanent new address; the data have the addresses `from` and `to`.",
    },
)


def add(url: str, *, title: str = "", site_url: str = "", actor: str) -> FeedSource:
    """Add a feed; `url` must have its canonical spelling. Raises IntegrityError if the URL is taken."""
    feed: FeedSource = lifecycle.create_one(
        FEED_STATES, {"url": url, "title": title, "site_url": site_url}, actor=actor
    )
    return feed


def pause(feed_id: int, *, actor: str, reason: str = "") -> bool:
    """Pause a feed. Return False if it is already paused."""
    values: dict[str, Any] = {"paused_at": clock.now(), "paused_by": actor}
    guards = {"paused_at__isnull": True}
    return lifecycle.record(FEED_STATES, feed_id, "FEED_PAUSED", actor=actor, message=reason, guards=guards, **values)


def resume(feed_id: int, *, actor: str) -> bool:
    """Resume a feed and make it due at once. Return False if it is not paused."""
    values: dict[str, Any] = {"paused_at": None, "paused_by": "", "next_check_at": clock.now()}
    guards = {"paused_at__isnull": False}
    return lifecycle.record(FEED_STATES, feed_id, "FEED_RESUMED", actor=actor, guards=guards, **values)


def rename(feed_id: int, title: str, *, actor: str) -> bool:
    """Change the title of a feed. Return False if the feed already has this title, or is gone."""
    before = FeedSource.objects.filter(pk=feed_id).exclude(title=title).values_list("title", flat=True).first()
    if before is None:
        return False
    data = {"title": title, "before": before}
    return lifecycle.record(
        FEED_STATES, feed_id, "FEED_RENAMED", actor=actor, data=data, guards={"title": before}, title=title
    )


def ask_for_check(feed_id: int, *, actor: str) -> bool:
    """Make a feed due at once. Return False if it is paused."""
    guards = {"paused_at__isnull": True}
    return lifecycle.record(
        FEED_STATES, feed_id, "FEED_CHECK_ASKED", actor=actor, guards=guards, next_check_at=clock.now()
    )


def remove(feed_id: int, *, actor: str) -> bool:
    """Delete a feed and keep its history. Return False if it has articles, or is already gone."""
    with transaction.atomic():
        # If a worker is about to store the feed's first article, the lock makes it wait, and it then finds the feed
        # gone.
        feed = FeedSource.objects.select_for_update().filter(pk=feed_id).first()
        if feed is None or RawArticle.objects.filter(feed=feed).exists():
            return False
        data = {"url": feed.url, "title": feed.title}
        lifecycle.record(FEED_STATES, feed_id, "FEED_REMOVED", actor=actor, data=data)
        feed.delete()
    return True


def record_success(feed_id: int, next_check_at: datetime, *, actor: str, flaw: str | None = "", **columns: Any) -> bool:
    """Record a successful check. `columns` has the values from the server's response. `flaw` says what could not be
    read from the feed; None keeps the flaw that was recorded before. An event is written only if the feed had failed
    before, or if the flaw is new. Return False if the feed is gone.
    """
    now = clock.now()
    columns |= {"checked_at": now, "succeeded_at": now, "next_check_at": next_check_at}
    columns |= {"failures": 0, "failing_since": None}
    if flaw is not None:
        columns["last_error"] = flaw
    healthy = FeedSource.objects.filter(pk=feed_id, failures=0)
    if (healthy.filter(last_error=flaw) if flaw else healthy).update(**columns):
        return True
    columns["last_error"] = flaw or ""
    event: dict[str, Any] = {"actor": actor, "message": flaw or "", "level": WARNING if flaw else INFO}
    if flaw and lifecycle.record(FEED_STATES, feed_id, "FEED_FLAWED", guards={"failures": 0}, **event, **columns):
        return True
    return lifecycle.record(FEED_STATES, feed_id, "FEED_RECOVERED", **event, **columns)


def record_failure(
    feed: FeedSource, message: str, next_check_at: datetime, *, actor: str, data: Data | None = None
) -> bool:
    """Record a failed check. An event is written for the first failure in a row, and whenever the message changes."""
    now = clock.now()
    columns: dict[str, Any] = {"checked_at": now, "next_check_at": next_check_at, "failures": feed.failures + 1}
    # Use the value of the row, because the feed may have answered or failed since `feed` was loaded.
    columns["failing_since"] = Coalesce("failing_since", Value(now))
    if FeedSource.objects.filter(pk=feed.pk, failures__gt=0, last_error=message).update(**columns):
        return True
    return lifecycle.record(
        FEED_STATES, feed.pk, "FEED_FAILED", actor=actor, message=message, data=data, last_error=message, **columns
    )


def move(feed: FeedSource, url: str, *, actor: str) -> bool:
    """Change the URL after a permanent redirect. Raises IntegrityError if another feed has that URL."""
    data = {"from": feed.url, "to": url}
    return lifecycle.record(
        FEED_STATES, feed.pk, "FEED_MOVED", actor=actor, data=data, guards={"url": feed.url}, url=url
    )


def set_missing_details(feed_id: int, *, title: str, site_url: str) -> None:
    """Set the title and site URL that the feed gives, unless the feed's row has them already."""
    for column, value in (("title", title), ("site_url", site_url)):
        if value:
            FeedSource.objects.filter(pk=feed_id, **{column: ""}).update(**{column: value})
